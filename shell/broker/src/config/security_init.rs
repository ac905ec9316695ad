//! `barnabas security init`: an authority, certificates, an administrator and settings for one node or three, and the
//! commands that come next.
//!
//! Clients and brokers use SASL_SSL with SCRAM. The controllers' listener takes client certificates: SCRAM users are in
//! the metadata log, which the controllers must reach each other to read. No command that is printed holds a password:
//! credentials are in files of mode 0600, as salted passwords where that is enough.
//!
//! Always true: nothing is written over; a directory that holds something is refused.

mod files;

use crate::log_dirs::directories::random_uuid;
use barnabas_clock::Clock;
use barnabas_net::links;
use barnabas_sasl::Secret;
use barnabas_sasl::scram::Mechanism;
use barnabas_tls::{Authority, Validity};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::ArgMatches;
use files::{Folder, shell_word};
use std::error::Error;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

type Failure = Box<dyn Error>;

const AUTHORITY_DAYS: u64 = 3650;
const NODE_DAYS: u64 = 825;
const MECHANISM: Mechanism = Mechanism::Sha512;
const ITERATIONS: u32 = 8192;
const ADMIN: &str = "admin";
/// What brokers log in to each other with.
const BROKER: &str = "broker";

struct Node {
    id: usize,
    host: String,
    port: u16,
    controller_port: u16,
}

/// A user with a random password.
struct User {
    name: &'static str,
    password: Secret,
    /// As `storage format --add-scram` takes it.
    credential: String,
}

/// # Errors
/// What the operator has to put right. Nothing was written over.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("init", matches)) => init(matches),
        _ => Ok(ExitCode::FAILURE),
    }
}

fn init(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let port = *matches.get_one::<u16>("port").unwrap_or(&9092);
    let nodes = nodes(text("nodes"), text("host"), port)?;
    let root = std::path::absolute(text("dir"))?;
    let folder = Folder::make(&root)?;
    let now_s = u64::try_from(Clock::start().wall().0 / 1000)?;
    let (cluster_id, users) = (random_uuid().to_string(), [User::random(ADMIN), User::random(BROKER)]);
    let authority = Authority::new("Barnabas cluster", Validity { now_s, days: AUTHORITY_DAYS })?;
    folder.write("ca/ca.pem", &authority.certificate())?;
    folder.write_secret("ca/ca.key", authority.key().text().unwrap_or_default())?;
    for node in &nodes {
        let name = format!("node-{}", node.id);
        let issued =
            authority.issue(&name, std::slice::from_ref(&node.host), Validity { now_s, days: NODE_DAYS })?;
        folder.write(&format!("{name}/ca.pem"), &authority.certificate())?;
        let store = files::joined(issued.key.text().unwrap_or_default(), &issued.chain);
        folder.write_secret(&format!("{name}/node.pem"), store.text().unwrap_or_default())?;
        for user in &users {
            folder.write_secret(&format!("{name}/{}.scram", user.name), &user.credential)?;
        }
        let settings = files::server(node, &nodes, &root.join(&name), &users[1].password);
        folder.write_secret(&format!("{name}/server.properties"), &settings)?;
    }
    folder.write("client/ca.pem", &authority.certificate())?;
    let client = files::client(&root.join("client"), &users[0].password);
    folder.write_secret("client/client.properties", &client)?;
    write!(std::io::stdout(), "{}", next(&root, &nodes, &cluster_id))?;
    Ok(ExitCode::SUCCESS)
}

/// # Errors
/// Neither one host nor one for each node.
fn nodes(count: &str, hosts: &str, first_port: u16) -> Result<Vec<Node>, Failure> {
    let count: usize = count.parse()?;
    let hosts: Vec<&str> = hosts.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
    if let Some(wrong) = hosts.iter().find(|host| !is_host(host)) {
        return Err(format!(
            "--host: {wrong:?} is neither a host name nor an address. Example: --host broker1.example.com"
        )
        .into());
    }
    let is_shared = hosts.len() == 1;
    if !is_shared && hosts.len() != count {
        let example = "--nodes 3 --host a.example.com,b.example.com,c.example.com";
        return Err(format!(
            "--host names {} hosts for {count} nodes: expected one, or one for each. Example: {example}",
            hosts.len()
        )
        .into());
    }
    let node = |at: usize| {
        let host = hosts[if is_shared { 0 } else { at }].to_owned();
        // Nodes of one machine have ports of their own.
        let step = u16::try_from(if is_shared { 2 * at } else { 0 }).ok()?;
        let port = first_port.checked_add(step)?;
        Some(Node { id: at + 1, host, port, controller_port: port.checked_add(1)? })
    };
    let nodes: Option<Vec<Node>> = (0..count).map(node).collect();
    nodes.ok_or_else(|| format!("--port {first_port} leaves no ports for {count} nodes").into())
}

/// A name as certificates and resolvers take it (RFC 1123), or an address without brackets.
fn is_host(host: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    let is_name =
        host.len() <= 253 && host.split('.').all(is_label) && !host.rsplit('.').next().is_some_and(is_number);
    is_name || host.parse::<IpAddr>().is_ok()
}

impl User {
    fn random(name: &'static str) -> Self {
        let (password, salt) = (Secret::from(links::nonce()), links::salt());
        let salted = MECHANISM.salted_password(&password, &salt, ITERATIONS);
        let credential = format!(
            "{}=[name={name},iterations={ITERATIONS},salt={},saltedpassword={}]",
            MECHANISM.name(),
            STANDARD.encode(&salt),
            STANDARD.encode(salted.bytes())
        );
        Self { name, password, credential }
    }
}

/// What was made, and the commands that come next.
fn next(root: &Path, nodes: &[Node], cluster_id: &str) -> String {
    let at = |path: &str| shell_word(&root.join(path));
    let mut text = format!(
        "Made in {}:\n  ca/      the authority. Keep ca.key off the nodes: it issues certificates\n  \
         node-N/  key, certificate, credentials and settings of a node. Copy the directory to the same path on its machine\n  \
         client/  client.properties for every tool, as user {ADMIN}\n",
        root.display()
    );
    for Node { id, host, .. } in nodes {
        let node = format!("node-{id}");
        let credential = |user: &str| {
            let file = shell_word(&PathBuf::from(format!("{}/{node}/{user}.scram", root.display())));
            format!("--add-scram \"$(cat {file})\"")
        };
        let settings = at(&format!("{node}/server.properties"));
        text += &format!(
            "\nOn {host}, node {id}:\n  barnabas storage format --config {settings} --cluster-id {cluster_id} {} {}\n  \
             barnabas server {settings}\n",
            credential(ADMIN),
            credential(BROKER)
        );
    }
    let server =
        nodes.iter().map(|node| format!("{}:{}", node.host, node.port)).collect::<Vec<_>>().join(",");
    let reach = format!("--bootstrap-server {server} --command-config {}", at("client/client.properties"));
    text += &format!(
        "\nThen, in another terminal:\n  barnabas topics {reach} --create --topic first --partitions 1\n  \
         echo hello | barnabas console-producer {reach} --topic first\n  \
         barnabas console-consumer {reach} --topic first --from-beginning --max-messages 1\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_one_host_have_ports_of_their_own() {
        let of = |hosts: &str| -> Vec<(String, u16, u16)> {
            let nodes = nodes("3", hosts, 9092).expect("sound");
            nodes.into_iter().map(|node| (node.host, node.port, node.controller_port)).collect()
        };
        assert_eq!(
            of("a"),
            [("a".to_owned(), 9092, 9093), ("a".to_owned(), 9094, 9095), ("a".to_owned(), 9096, 9097)]
        );
        assert!(of("a,b,c").iter().all(|node| (node.1, node.2) == (9092, 9093)));
        assert!(nodes("3", "a,b", 9092).is_err() && nodes("1", "a", 65535).is_err());
    }

    #[test]
    fn host_that_no_certificate_can_name_is_refused() {
        for host in ["localhost", "a", "broker-1.example.com", "10.0.0.1", "::1", "1a"] {
            assert!(nodes("1", host, 9092).is_ok(), "{host}");
        }
        let long = "a".repeat(64);
        for host in [
            "bad host!",
            "a_b",
            "-a",
            "a-",
            "a..b",
            "a.",
            "1.2.3",
            "999.1.1.1",
            "a:9092",
            "[::1]",
            "*",
            &long,
        ] {
            let refused = nodes("1", host, 9092).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains("is neither a host name nor an address"), "{host}: {refused}");
        }
    }

    #[test]
    fn no_printed_line_holds_a_secret() {
        let user = User::random(ADMIN);
        let text = next(Path::new("/a b/c"), &nodes("1", "localhost", 9092).expect("sound"), "id");
        assert!(
            !text.contains(user.password.text().unwrap_or_default()) && !text.contains("saltedpassword"),
            "{text}"
        );
        assert!(text.contains("--config '/a b/c/node-1/server.properties'"), "{text}");
    }
}
