//! Hands the commit of the checkout to the binary as `BARNABAS_COMMIT`.
//!
//! A release build looks again after each commit. A development build does not: it would be rebuilt for each one.

use std::process::Command;

fn main() {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=BARNABAS_COMMIT={commit}");
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release")
        && let Some(reflog) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
    {
        println!("cargo::rerun-if-changed={reflog}");
    }
}
