//! Compares docs/COMPAT.md with its sources: the headers of this crate's files and of the quorum's
//! for each API version of Kafka 4.4, and lab/compat/DIFFERENCES.md for the differences.
//! `UPDATE_PAGES=1` rewrites the page.

use barnabas_api::headers::{Header, headers, parse};
use barnabas_api::k18_api_versions::{ANSWERED, ANSWERED_BY_CONTROLLERS};
use barnabas_wire::ApiKey;
use std::path::Path;

/// All of Kafka 4.4's.
const APIS: usize = 91;

/// What is not there yet, and what it belongs to.
const NOT_YET: &[(&str, &[i16])] = &[];

macro_rules! of_quorum {
    ($($file:literal),* $(,)?) => {
        /// What members of the quorum ask each other is described where it is decided.
        const OF_QUORUM: &[(&str, &str)] =
            &[$(($file, include_str!(concat!("../../quorum/src/raft/requests/", $file, ".rs")))),*];
    };
}
of_quorum!(
    "k52_vote",
    "k53_begin_quorum_epoch",
    "k54_end_quorum_epoch",
    "k59_fetch_snapshot",
    "k82_update_raft_voter",
);

/// This crate's and the quorum's, by key.
fn all_headers() -> Vec<Header> {
    let of_quorum = OF_QUORUM.iter().filter_map(|(file, text)| parse(file, text));
    let mut all: Vec<Header> = headers().into_iter().chain(of_quorum).collect();
    all.sort_by_key(|header| header.key);
    all
}

#[allow(clippy::disallowed_methods)] // This test writes a page of the documentation when it is asked to.
#[test]
fn the_page_is_as_the_files_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let differences =
        std::fs::read_to_string(root.join("lab/compat/DIFFERENCES.md")).expect("the differences");
    let page = page(&all_headers(), &differences);
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
         <!-- Written by core/api/tests/compat_page.rs from core/api/src/k*.rs, core/quorum/src/raft/requests/k*.rs and\n\
         lab/compat/DIFFERENCES.md. -->\n\n\
         Which of Apache Kafka 4.4's APIs are here, in which versions, and what differs. What is not here is not in ApiVersions\n\
         either, so no client is promised anything that does not work. Where Kafka 3.9 still took older versions than 4.4 does, so do\n\
         we: clients from 0.9 on work.\n\n## APIs\n\n",
    );
    let row_of = |key: &ApiKey| there.iter().find(|header| header.key == key.number());
    let of_clients: Vec<&Header> = ANSWERED.iter().filter_map(row_of).collect();
    let of_controllers: Vec<&Header> = ANSWERED_BY_CONTROLLERS.iter().filter_map(row_of).collect();
    page.push_str(&format!(
        "{} of {APIS}: {} on brokers' listeners, and {} that only controllers' listeners answer.\n\n",
        of_clients.len() + of_controllers.len(),
        of_clients.len(),
        of_controllers.len(),
    ));
    table(&mut page, &of_clients);
    page.push_str(
        "\n## On controllers' listeners\n\n\
         What brokers and controllers ask of controllers, besides Fetch (1) of the metadata log and, as on brokers' listeners, what\n\
         clients ask of the cluster's controller.\n\n",
    );
    table(&mut page, &of_controllers);
    if !NOT_YET.is_empty() {
        page.push_str("\n## Not yet\n\n| what | APIs |\n|---|---|\n");
    }
    for (what, keys) in NOT_YET {
        let names: Vec<String> = keys.iter().map(|key| name(*key)).collect();
        page.push_str(&format!("| {what} | {} |\n", names.join(", ")));
    }
    page.push('\n');
    page.push_str(differences.trim_end());
    page.push('\n');
    page
}

fn table(page: &mut String, headers: &[&Header]) {
    page.push_str("| key | API | versions | left out |\n|---|---|---|---|\n");
    for header in headers {
        let left_out = if header.left_out.is_empty() { "–".to_owned() } else { header.left_out.join(" ") };
        let row = format!(
            "| {} | {} | {}–{} | {left_out} |\n",
            header.key, header.name, header.min_version, header.max_version
        );
        page.push_str(&row);
    }
}

fn name(key: i16) -> String {
    ApiKey::from_number(key)
        .map_or_else(|| key.to_string(), |key| format!("{} ({})", key.name(), key.number()))
}

#[test]
fn every_api_is_there_or_explained() {
    let there = all_headers();
    for header in &there {
        assert_eq!(header.check(), Ok(()));
    }
    let answered = |key: ApiKey| ANSWERED.contains(&key) || ANSWERED_BY_CONTROLLERS.contains(&key);
    let all = || ApiKey::ALL.iter().copied().filter(|key| key.versions().max >= 0);
    assert_eq!(all().count(), APIS);
    for key in all() {
        let is_explained = NOT_YET.iter().any(|row| row.1.contains(&key.number()));
        let is_described = there.iter().any(|header| header.key == key.number());
        assert_eq!(answered(key), is_described, "{key}: answered, and described?");
        assert_ne!(answered(key), is_explained, "{key}: either answered or explained");
    }
}
