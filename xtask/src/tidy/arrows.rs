//! Who may depend on whom: DESIGN's ranks, checked against what cargo says is really linked.
//!
//! Dev-dependencies are free within a rank (tests may use what they like of lower ranks), ordinary ones are not.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A crate of ours and what it may use of ours. A crate that is missing here is a finding.
const ARROWS: &[(&str, &[&str])] = &[
    ("barnabas-base", &[]),
    ("barnabas-messages", &["base"]),
    ("barnabas-wire", &["base", "messages"]),
    ("barnabas-metadata", &["base", "wire"]),
    ("barnabas-config", &["base", "metadata", "certificates", "sasl"]),
    ("barnabas-security", &["base", "metadata"]),
    ("barnabas-telemetry", &["base", "wire", "metadata"]),
    ("barnabas-partition", &["base"]),
    ("barnabas-storage", &["base", "wire"]),
    ("barnabas-replica", &["base", "wire", "metadata", "partition", "storage"]),
    ("barnabas-log-dirs", &["base", "wire", "metadata", "partition", "storage"]),
    ("barnabas-coordinator", &["base", "wire", "metadata"]),
    ("barnabas-quorum", &["base", "wire", "metadata", "security", "sasl", "telemetry"]),
    ("barnabas-metadata-log", &["base", "wire", "quorum", "storage"]),
    (
        "barnabas-identity",
        &["base", "wire", "metadata", "config", "metadata-log", "quorum", "sasl", "storage"],
    ),
    ("barnabas-certificates", &["base"]),
    ("barnabas-sasl", &["base", "wire", "certificates"]),
    ("barnabas-amqp", &["base"]),
    ("barnabas-mq", &["base"]),
    ("barnabas-api", &["base", "wire", "metadata", "security", "telemetry"]),
    ("barnabas-findings", &["base"]),
    ("barnabas-decoders", &["base", "wire"]),
    ("barnabas-clock", &["base"]),
    ("barnabas-disk", &["base", "clock", "storage"]),
    ("barnabas-tls", &["base", "certificates", "clock"]),
    ("barnabas-oauth", &["base", "certificates", "clock", "sasl", "tls"]),
    ("barnabas-net", &["base", "clock", "wire", "sasl", "tls"]),
    ("barnabas-exposition", &[]),
    ("barnabas-metrics", &["base", "wire", "coordinator", "exposition", "clock"]),
    ("barnabas-client", &["base", "wire", "sasl", "net", "tls", "oauth"]),
    ("barnabas-console", &["base", "wire", "decoders", "sasl", "net", "tls", "oauth", "client"]),
    ("barnabas-amqp-records", &["base", "amqp", "client"]),
    ("barnabas-bridge", &["base", "net", "tls", "amqp", "mq", "amqp-records", "client"]),
    ("barnabas-queue-access", &["base", "wire", "sasl", "net", "tls", "client"]),
    ("barnabas-queues", &["base", "sasl", "net", "amqp", "amqp-records", "client", "queue-access"]),
    ("barnabas-mq-queues", &["base", "sasl", "net", "mq", "client", "queue-access"]),
    ("barnabas-doctor", &["base", "wire", "security", "findings", "client"]),
    (
        "barnabas-tools",
        &["base", "wire", "metadata", "security", "decoders", "sasl", "tls", "client", "doctor", "findings"],
    ),
    (
        "barnabas",
        &[
            "base",
            "wire",
            "metadata",
            "config",
            "security",
            "telemetry",
            "partition",
            "storage",
            "replica",
            "log-dirs",
            "coordinator",
            "quorum",
            "findings",
            "identity",
            "metadata-log",
            "certificates",
            "sasl",
            "api",
            "clock",
            "disk",
            "tls",
            "oauth",
            "net",
            "metrics",
            "tools",
            "console",
            "bridge",
            "queues",
            "mq-queues",
        ],
    ),
];

/// What of other people's the core may use: data and arithmetic, nothing that touches the machine.
const CORE_MAY_USE: &[&str] = &[
    "aes",
    "base64",
    "bytes",
    "crc-fast",
    "crc32fast",
    "flate2",
    "foldhash",
    "hmac",
    "imbl",
    "lz4_flex",
    "p12-keystore",
    "pbkdf2",
    "pkcs8",
    "regex",
    "rustls-pki-types",
    "serde_json",
    "sha1",
    "sha2",
    "smallvec",
    "snap",
    "subtle",
    "thiserror",
    "twox-hash",
    "x509-parser",
    "zeroize",
    "zstd",
];

/// Checks every package of the workspace; returns the line that says what was checked.
pub fn check(root: &Path, findings: &mut Vec<String>) -> String {
    let metadata = match cargo_metadata(root) {
        Ok(metadata) => metadata,
        Err(why) => {
            findings.push(format!("cargo metadata: {why}"));
            return String::new();
        }
    };
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let documented = std::fs::read_to_string(root.join("docs/DEPENDENCIES.md")).unwrap_or_default();
    let mut checked = 0;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let rank =
            manifest.strip_prefix(&*root.to_string_lossy()).unwrap_or(manifest).trim_start_matches('/');
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            checked += 1;
            let target = dependency["name"].as_str().unwrap_or_default();
            let is_dev = dependency["kind"].as_str() == Some("dev");
            if let Some(ours) = target.strip_prefix("barnabas-") {
                if !is_dev {
                    check_ours(name, ours, rank, &allowed, findings);
                }
                continue;
            }
            if rank.starts_with("core/") && !is_dev && !CORE_MAY_USE.contains(&target) {
                findings.push(format!("{name} is core and may not depend on {target}"));
            }
            if !documented.contains(&format!("| {target} |")) {
                findings.push(format!("{target} (used by {name}) has no line in docs/DEPENDENCIES.md"));
            }
        }
    }
    format!("arrows: {checked} dependencies of {} crates", allowed.len())
}

fn check_ours(
    name: &str,
    target: &str,
    rank: &str,
    allowed: &BTreeMap<&str, &[&str]>,
    findings: &mut Vec<String>,
) {
    if rank.starts_with("lab/") || name == "xtask" {
        return;
    }
    match allowed.get(name) {
        Some(targets) if targets.contains(&target) => {}
        Some(_) => findings.push(format!("{name} may not depend on {target}: DESIGN.md, the arrows")),
        None => findings
            .push(format!("{name} has no place among the arrows: DESIGN.md and xtask/src/tidy/arrows.rs")),
    }
}

fn cargo_metadata(root: &Path) -> Result<serde_json::Value, String> {
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}
