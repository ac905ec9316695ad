//! Which build this is: its version, and the commit that `build.rs` found.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

/// `0.1.0 (commit 1a2b3c4d5e6f)`; `unknown` for a build outside a git checkout.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("BARNABAS_COMMIT"), ")");

/// `barnabas version`.
///
/// # Errors
/// Standard output takes nothing.
pub fn print() -> Result<ExitCode, Box<dyn Error>> {
    writeln!(std::io::stdout(), "barnabas {VERSION}")?;
    Ok(ExitCode::SUCCESS)
}
