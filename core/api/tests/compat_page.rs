//! docs/COMPAT.md says what is true: every API of Kafka 4.4, version by version, from the headers of this crate's files; then how
//! we differ from Apache Kafka, from lab/compat/DIFFERENCES.md. `UPDATE_PAGES=1` writes the page anew.

use barnabas_api::headers::{Header, headers};
use barnabas_wire::ApiKey;
use std::path::Path;

/// What is not there yet, and what it belongs to.
const NOT_YET: &[(&str, &[i16])] = &[
    ("transactions", &[24, 25, 26, 27, 28, 65, 66]),
    ("share groups, streams groups", &[68, 69, 76, 77, 78, 79, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93]),
    (
        "several nodes: quorum, registration, replication, reassignment",
        &[45, 46, 52, 53, 54, 56, 58, 59, 62, 63, 64, 67, 70, 73, 80, 81, 82, 94],
    ),
    ("moves between log directories", &[34]),
    ("authentication, authorisation, quotas", &[17, 29, 30, 31, 36, 38, 39, 40, 41, 48, 49, 50, 51]),
    ("client metrics", &[71, 72]),
];

#[allow(clippy::disallowed_methods)] // This test writes a page of the documentation when it is asked to.
#[test]
fn the_page_is_as_the_files_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let differences =
        std::fs::read_to_string(root.join("lab/compat/DIFFERENCES.md")).expect("the differences");
    let page = page(&headers(), &differences);
    let path = root.join("docs/COMPAT.md");
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(&path, &page).expect("docs/COMPAT.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/COMPAT.md differs from the API files: UPDATE_PAGES=1 cargo test -p barnabas-api --test compat_page"
    );
}

fn page(there: &[Header], differences: &str) -> String {
    let mut page = String::from(
        "# Compatibility\n\n\
         <!-- Written by core/api/tests/compat_page.rs from core/api/src/k*.rs and lab/compat/DIFFERENCES.md. -->\n\n\
         Which of Apache Kafka 4.4's APIs are here, in which versions, and what differs. What is not here is not in ApiVersions\n\
         either, so no client is promised anything that does not work. Where Kafka 3.9 still took older versions than 4.4 does, so do\n\
         we: clients from 0.9 on work.\n\n## APIs\n\n",
    );
    page.push_str(&format!(
        "{} of 91. The versions are those on the broker's listener.

",
        there.len()
    ));
    page.push_str("| key | API | versions | left out |\n|---|---|---|---|\n");
    for header in there {
        let left_out = if header.left_out.is_empty() { "–".to_owned() } else { header.left_out.join(" ") };
        let row = format!(
            "| {} | {} | {}–{} | {left_out} |\n",
            header.key, header.name, header.min_version, header.max_version
        );
        page.push_str(&row);
    }
    page.push_str("\n## Not yet\n\n| what | APIs |\n|---|---|\n");
    for (what, keys) in NOT_YET {
        let missing = keys.iter().filter(|key| !there.iter().any(|header| header.key == **key));
        let names: Vec<String> = missing.map(|key| name(*key)).collect();
        if !names.is_empty() {
            page.push_str(&format!("| {what} | {} |\n", names.join(", ")));
        }
    }
    page.push('\n');
    page.push_str(differences.trim_end());
    page.push('\n');
    page
}

fn name(key: i16) -> String {
    ApiKey::from_number(key)
        .map_or_else(|| key.to_string(), |key| format!("{} ({})", key.name(), key.number()))
}

#[test]
fn every_api_is_there_or_explained() {
    let there = headers();
    let explained = |key: i16| NOT_YET.iter().any(|row| row.1.contains(&key));
    let unexplained: Vec<String> = (0..=94)
        .filter(|key| ApiKey::from_number(*key).is_some_and(|key| key.versions().max >= 0))
        .filter(|key| !explained(*key) && !there.iter().any(|header| header.key == *key))
        .map(name)
        .collect();
    assert!(unexplained.is_empty(), "neither there nor explained: {}", unexplained.join(", "));
}
