//! docs/SETTINGS.md says what is true: every key that Kafka does not know, from the table that the node checks them by.
//! `UPDATE_PAGES=1` writes the page anew.

use barnabas_metadata::config::{ConfigKey, Resource, Scope, range};
use std::path::Path;

const HEAD: &str = "\
# Settings of our own

<!-- Written by core/metadata/tests/settings_page.rs from core/metadata/src/config/broker_own.rs. -->

Everything else is set by Kafka's keys, with Kafka's meaning: `barnabas config explain` lists all of them and says what becomes of
each, `barnabas config explain KEY` tells all that is known of one, these here included. A value outside of its range is refused: at
the start, and where a key may be changed while the node runs, by `kafka-configs` as well. What is in force stands in the log at each
start: a line for the node, and one for each log directory.

| key | unit | default | values | changed |
|---|---|---|---|---|
";

#[allow(clippy::disallowed_methods)] // This test writes a page of the documentation when it is asked to.
#[test]
fn the_page_is_as_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SETTINGS.md");
    let page = page();
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(&path, &page).expect("docs/SETTINGS.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/SETTINGS.md differs from the table: UPDATE_PAGES=1 cargo test -p barnabas-metadata --test settings_page"
    );
}

#[test]
fn each_number_has_a_unit_and_a_range_and_each_key_is_explained() {
    for key in Resource::own_keys() {
        let is_number = key.kind == barnabas_metadata::config::Kind::Long;
        assert_eq!(is_number, !key.unit.is_empty(), "{}", key.name);
        assert!(
            range(key).is_some_and(|words| !words.starts_with("at least")),
            "{}: no upper bound",
            key.name
        );
        assert!(key.doc.len() > 60, "{}", key.name);
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for key in Resource::own_keys() {
        let unit = if key.unit.is_empty() { "–" } else { key.unit };
        let values = range(key).unwrap_or_default();
        page.push_str(&format!(
            "| `{}` | {unit} | {} | {values} | {} |\n",
            key.name,
            default(key),
            changed(key)
        ));
    }
    for key in Resource::own_keys() {
        page.push_str(&format!("\n## {}\n\n{}\n", key.name, key.doc));
    }
    page
}

fn default(key: &ConfigKey) -> &'static str {
    key.default_value().unwrap_or("unset")
}

fn changed(key: &ConfigKey) -> &'static str {
    match key.scope {
        Scope::ReadOnly => "in the file",
        Scope::PerBroker => "while it runs, for one broker",
        Scope::ClusterWide => "while it runs",
    }
}
