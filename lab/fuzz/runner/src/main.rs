//! One libFuzzer binary for all targets; `FUZZ_TARGET` names the one to run.

#![no_main]

use barnabas_fuzz::Target;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

#[global_allocator]
static ALLOCATOR: barnabas_fuzz::limit::Limited = barnabas_fuzz::limit::Limited;

static CHOSEN: OnceLock<Target> = OnceLock::new();

fn chosen() -> Target {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    barnabas_fuzz::find(&name).unwrap_or_else(|| panic!("FUZZ_TARGET names no target: '{name}'"))
}

fuzz_target!(|data: &[u8]| {
    CHOSEN.get_or_init(chosen).feed(data);
});
