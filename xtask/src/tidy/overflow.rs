//! Each core crate is built with overflow checks in a release: what it counts with comes from the wire.

use std::path::Path;

pub fn check(root: &Path, findings: &mut Vec<String>) {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    let Ok(crates) = std::fs::read_dir(root.join("core")) else {
        findings.push("core: cannot be read".to_string());
        return;
    };
    let names = crates.flatten().filter(|entry| entry.path().join("Cargo.toml").exists());
    for name in names.map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        if !is_checked(&manifest, &name) {
            findings.push(format!("core/{name} has no overflow-checks among the release profile's packages"));
        }
    }
}

fn is_checked(manifest: &str, name: &str) -> bool {
    let header = format!("[profile.release.package.barnabas-{name}]");
    let section = manifest.split_once(&header).map(|(_, rest)| rest.split("\n[").next().unwrap_or(rest));
    section.is_some_and(|section| section.lines().any(|line| line.trim() == "overflow-checks = true"))
}

#[cfg(test)]
mod tests {
    use super::is_checked;

    #[test]
    fn a_crate_that_is_missing_is_found() {
        let manifest = "[profile.release.package.barnabas-wire]\noverflow-checks = true\n\n\
                        [profile.release.package.barnabas-api]\nopt-level = 2\n\n\
                        [profile.release.package.barnabas-base]\noverflow-checks = true\n";
        assert!(is_checked(manifest, "wire") && is_checked(manifest, "base"));
        assert!(!is_checked(manifest, "api"), "the next section's line is not this one's");
        assert!(!is_checked(manifest, "quorum"));
    }
}
