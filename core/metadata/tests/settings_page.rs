//! Compares docs/SETTINGS.md with the table of keys that Kafka does not have, which also validates
//! the node's configuration. `UPDATE_PAGES=1` rewrites the page.

use barnabas_metadata::config::{ConfigKey, Resource, Scope, Status, of_plug_in, range, status};
use std::path::Path;

const HEAD: &str = "\
# Settings of our own

<!-- Written by core/metadata/tests/settings_page.rs from core/metadata/src/config/tables/broker_own.rs. -->

Everything else is set by Kafka's keys, with Kafka's meaning: `barnabas config explain` lists all of them and says what becomes of
each, `barnabas config explain KEY` tells all that is known of one, these here included. A value outside of its range is refused: at
the start, and where a key may be changed while the node runs, by `kafka-configs` as well. What is in force stands in the log at each
start: a line for the node, and one for each log directory.

| key | unit | default | values | changed |
|---|---|---|---|---|
";

const SECURITY_HEAD: &str = "
## Kafka's keys for security

A setting is refused at the start if Kafka would protect the cluster with it and this node would not. A setting that protects nothing
by itself, in Kafka either, is a WARN that names the key.

| key | here | why |
|---|---|---|
| `security.inter.broker.protocol` | refused, if the map gives the listener of that name another protocol | Kafka takes the protocol from here; the two must agree |
| `sasl.enabled.mechanisms`, `sasl.mechanism.inter.broker.protocol`, `sasl.mechanism.controller.protocol` | refused, if a listener with SASL names another mechanism than PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER and GSSAPI | the others are not implemented |
| `sasl.server.callback.handler.class`, `sasl.client.callback.handler.class`, `sasl.login.callback.handler.class`, `sasl.login.class` | refused on a listener with SASL, unless it is Kafka's own class for PLAIN, SCRAM or OAUTHBEARER; for OAUTHBEARER the first must be set, and Kafka's default of it is accepted on loopback alone | Barnabas has no Java virtual machine and cannot load a class |
";

/// Keys for security and what stands in the page's second column. A row ending in `*` stands for every key with that
/// beginning.
const SECURITY: &[&str] = &[
    "authorizer.class.name",
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
    "super.users",
    "allow.everyone.if.no.acl.found",
    "principal.builder.class",
    "sasl.*",
    "sasl.kerberos.*",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.ticket.*",
    "sasl.login.refresh.*",
    "connections.max.reauth.ms",
    "connection.failed.authentication.delay.ms",
    "delegation.token.*",
    "security.providers",
    "client.quota.callback.class",
    "config.providers",
];

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

/// What becomes of every key that fits a row: one word and one reason for all of them.
fn security_row(row: &str) -> (&'static str, &'static str) {
    let beginning = row.strip_suffix('*');
    let longer = |name: &str| {
        SECURITY.iter().filter(|other| other.len() > row.len()).any(|other| {
            other.strip_suffix('*').map_or(name == *other, |beginning| name.starts_with(beginning))
        })
    };
    let fits =
        |name: &str| beginning.map_or(name == row, |beginning| name.starts_with(beginning)) && !longer(name);
    // Keys that name a class have reasons of their own.
    let is_class = |name: &str| name.ends_with(".class");
    let keys =
        Resource::Broker.keys().filter(|key| fits(key.name) && (row == key.name || !is_class(key.name)));
    let mut found: Vec<Status> = keys.map(|key| status(Resource::Broker, key)).collect();
    found.extend(of_plug_in(row));
    assert!(!found.is_empty() && found.iter().all(|status| *status == found[0]), "{row}: {found:?}");
    match found[0] {
        Status::Refused(reason) => ("refused", reason),
        Status::NotAvailable(reason) => ("WARN", reason),
        Status::Applied => ("applied", "as in Kafka"),
        Status::Emulated(reason) => ("applied", reason),
        Status::Ignored(reason) => ("ignored", reason),
    }
}

#[test]
fn every_key_for_security_is_in_the_table() {
    let is_listed = |name: &str| {
        let fits =
            |row: &&str| row.strip_suffix('*').map_or(name == *row, |beginning| name.starts_with(beginning));
        SECURITY.iter().any(fits)
    };
    for key in Resource::Broker.keys() {
        let status = status(Resource::Broker, key);
        let is_of_security =
            ["sasl.", "delegation.", "security.prov"].iter().any(|part| key.name.starts_with(part));
        let must_be = is_of_security
            || matches!(status, Status::Refused(_))
            || status.reason().contains("TLS and SASL");
        assert!(!must_be || is_listed(key.name), "{}", key.name);
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
    page.push_str(SECURITY_HEAD);
    for row in SECURITY {
        let (here, reason) = security_row(row);
        page.push_str(&format!("| `{row}` | {here} | {reason} |\n"));
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
