//! `barnabas security init`: which nodes it makes files for, what stands in them, and the commands that come next.
//!
//! Clients and brokers use SASL_SSL with SCRAM. The controllers' listener takes client certificates: SCRAM users are in
//! the metadata log, which the controllers must reach each other to read. No command that is printed holds a password:
//! credentials are in files of mode 0600, as salted passwords where that is enough.
//!
//! Neighbour: shell/broker/src/config/security_init.rs, which makes keys and writes the files.

use barnabas_sasl::Secret;
use barnabas_sasl::scram::Mechanism;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::net::IpAddr;
use std::path::Path;

const MECHANISM: Mechanism = Mechanism::Sha512;
const ITERATIONS: u32 = 8192;
pub const ADMIN: &str = "admin";
/// What brokers log in to each other with.
pub const BROKER: &str = "broker";

/// One node of the cluster to be.
#[derive(Debug)]
pub struct Node {
    pub id: usize,
    pub host: String,
    pub port: u16,
    pub controller_port: u16,
}

/// A user with a random password.
#[derive(Debug)]
pub struct User {
    pub name: &'static str,
    pub password: Secret,
    /// As `storage format --add-scram` takes it, or `--add-scram-file` as a line.
    pub credential: Secret,
}

impl Node {
    /// The host as an endpoint has it: an IPv6 address stands in brackets.
    fn name(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }
}

impl User {
    pub fn new(name: &'static str, password: Secret, salt: &[u8]) -> Self {
        let salted = MECHANISM.salted_password(&password, salt, ITERATIONS);
        let credential = format!(
            "{}=[name={name},iterations={ITERATIONS},salt={},saltedpassword={}]",
            MECHANISM.name(),
            STANDARD.encode(salt),
            STANDARD.encode(salted.bytes())
        );
        Self { name, password, credential: Secret::from(credential) }
    }
}

/// The nodes of `--nodes`, `--host` and `--port`.
///
/// # Errors
/// Neither one host nor one for each node.
pub fn nodes(count: &str, hosts: &str, first_port: u16) -> Result<Vec<Node>, String> {
    let count = count.parse::<usize>().map_err(|error| error.to_string())?;
    let hosts: Vec<&str> = hosts.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
    if let Some(wrong) = hosts.iter().find(|host| !is_host(host)) {
        return Err(format!(
            "--host: {wrong:?} is neither a host name nor an address. Example: --host broker1.example.com"
        ));
    }
    let is_shared = hosts.len() == 1;
    if !is_shared && hosts.len() != count {
        let example = "--nodes 3 --host a.example.com,b.example.com,c.example.com";
        return Err(format!(
            "--host names {} hosts for {count} nodes: expected one, or one for each. Example: {example}",
            hosts.len()
        ));
    }
    let node = |at: usize| {
        let host = hosts[if is_shared { 0 } else { at }].to_owned();
        // Nodes of one machine have ports of their own.
        let step = u16::try_from(if is_shared { 2 * at } else { 0 }).ok()?;
        let port = first_port.checked_add(step)?;
        Some(Node { id: at + 1, host, port, controller_port: port.checked_add(1)? })
    };
    let nodes: Option<Vec<Node>> = (0..count).map(node).collect();
    nodes.ok_or_else(|| format!("--port {first_port} leaves no ports for {count} nodes"))
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

/// What was made, and the commands that come next.
pub fn next(root: &Path, nodes: &[Node], cluster_id: &str) -> String {
    let at = |path: &str| shell_word(&root.join(path));
    let mut text = format!(
        "Made in {}:\n  ca/      the authority. Keep ca.key off the nodes: it issues certificates\n  \
         node-N/  key, certificate, credentials and settings of a node. Copy the directory to the same path on its machine;\n  \
         \x20        delete its *.scram files once the node is formatted: they hold salted passwords\n  \
         client/  client.properties for every tool, as user {ADMIN}\n",
        root.display()
    );
    for Node { id, host, .. } in nodes {
        let node = format!("node-{id}");
        let credential = |user: &str| format!("--add-scram-file {}", at(&format!("{node}/{user}.scram")));
        let settings = at(&format!("{node}/server.properties"));
        text += &format!(
            "\nOn {host}, node {id}:\n  barnabas storage format --config {settings} --cluster-id {cluster_id} {} {}\n  \
             barnabas server {settings}\n",
            credential(ADMIN),
            credential(BROKER)
        );
    }
    let server =
        nodes.iter().map(|node| format!("{}:{}", node.name(), node.port)).collect::<Vec<_>>().join(",");
    let reach = format!("--bootstrap-server {server} --command-config {}", at("client/client.properties"));
    text += &format!(
        "\nThen, in another terminal:\n  barnabas topics {reach} --create --topic first --partitions 1\n  \
         echo hello | barnabas console-producer {reach} --topic first\n  \
         barnabas console-consumer {reach} --topic first --from-beginning --max-messages 1\n"
    );
    text
}

/// A key and its certificates in one store.
pub fn joined(key: &Secret, chain: &str) -> Secret {
    Secret::from(format!("{}{chain}", key.text().unwrap_or_default()))
}

/// A node's `server.properties`.
pub fn server(node: &Node, nodes: &[Node], folder: &Path, password: &Secret) -> String {
    let Node { id, port, controller_port, .. } = node;
    let host = node.name();
    // A name that others reach this machine by may be its loopback's here.
    let bound = if is_loopback(&node.host) { host.as_str() } else { "" };
    let voters: Vec<String> =
        nodes.iter().map(|node| format!("{}@{}:{}", node.id, node.name(), node.controller_port)).collect();
    let of_nodes: Vec<String> = nodes.iter().map(|node| format!("User:CN=node-{}", node.id)).collect();
    let (copies, in_sync) = if nodes.len() == 1 { (1, 1) } else { (3, 2) };
    let (voters, of_nodes, mechanism) = (voters.join(","), of_nodes.join(";"), MECHANISM.name());
    let (of_mechanism, module) = (mechanism.to_lowercase(), module(BROKER, password));
    let folder = folder.display();
    format!(
        "# Made by barnabas security init. It holds a password: mode 0600.
process.roles=broker,controller
node.id={id}
log.dirs={folder}/data
listeners=SASL_SSL://{bound}:{port},CONTROLLER://{bound}:{controller_port}
advertised.listeners=SASL_SSL://{host}:{port},CONTROLLER://{host}:{controller_port}
listener.security.protocol.map=SASL_SSL:SASL_SSL,CONTROLLER:SSL
controller.listener.names=CONTROLLER
controller.quorum.voters={voters}
security.inter.broker.protocol=SASL_SSL

ssl.keystore.type=PEM
ssl.keystore.location={folder}/node.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem

# Controllers are known by their certificates: users of SCRAM are in the metadata log, which they begin without.
listener.name.controller.ssl.client.auth=required

sasl.enabled.mechanisms={mechanism}
sasl.mechanism.inter.broker.protocol={mechanism}
listener.name.sasl_ssl.{of_mechanism}.sasl.jaas.config={module}

authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:{ADMIN};User:{BROKER};{of_nodes}
allow.everyone.if.no.acl.found=false
audit.log.file={folder}/audit.log

default.replication.factor={copies}
min.insync.replicas={in_sync}
offsets.topic.replication.factor={copies}
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={in_sync}
share.coordinator.state.topic.replication.factor={copies}
share.coordinator.state.topic.min.isr={in_sync}
"
    )
}

/// The administrator's `client.properties`.
pub fn client(folder: &Path, password: &Secret) -> String {
    let (folder, mechanism, module) = (folder.display(), MECHANISM.name(), module(ADMIN, password));
    format!(
        "# Made by barnabas security init. It holds a password: mode 0600.
security.protocol=SASL_SSL
sasl.mechanism={mechanism}
sasl.jaas.config={module}
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
"
    )
}

fn module(user: &str, password: &Secret) -> String {
    let class = "org.apache.kafka.common.security.scram.ScramLoginModule";
    format!("{class} required username=\"{user}\" password=\"{}\";", password.text().unwrap_or_default())
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// As one word for a shell.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_safe = |letter: char| letter.is_alphanumeric() || "/._-+@".contains(letter);
    if text.chars().all(is_safe) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
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
            let refused = nodes("1", host, 9092).err().unwrap_or_default();
            assert!(refused.contains("is neither a host name nor an address"), "{host}: {refused}");
        }
    }

    #[test]
    fn address_of_version_6_stands_in_brackets() {
        let nodes = nodes("1", "::1", 9092).expect("sound");
        let settings = server(&nodes[0], &nodes, Path::new("/n"), &Secret::from("x"));
        for line in [
            "listeners=SASL_SSL://[::1]:9092,CONTROLLER://[::1]:9093",
            "advertised.listeners=SASL_SSL://[::1]:9092,CONTROLLER://[::1]:9093",
            "controller.quorum.voters=1@[::1]:9093",
        ] {
            assert!(settings.contains(line), "{settings}");
        }
        assert!(next(Path::new("/n"), &nodes, "id").contains("--bootstrap-server [::1]:9092"));
    }

    #[test]
    fn no_printed_line_holds_a_secret() {
        let user = User::new(ADMIN, Secret::from("hunter2"), &[7; 16]);
        let text = next(Path::new("/a b/c"), &nodes("1", "localhost", 9092).expect("sound"), "id");
        assert!(
            !text.contains(user.password.text().unwrap_or_default()) && !text.contains("saltedpassword"),
            "{text}"
        );
        // The arguments of a process are seen by every user of the machine.
        assert!(!text.contains("$("), "{text}");
        assert!(text.contains("--config '/a b/c/node-1/server.properties'"), "{text}");
    }

    #[test]
    fn settings_of_a_node_name_its_files_and_both_kinds_of_users() {
        let nodes = nodes("3", "a,b,c", 9092).expect("sound");
        let text = server(&nodes[1], &nodes, Path::new("/s/node-2"), &Secret::from("hunter2"));
        for line in [
            "node.id=2",
            "log.dirs=/s/node-2/data",
            "listeners=SASL_SSL://:9092,CONTROLLER://:9093",
            "advertised.listeners=SASL_SSL://b:9092,CONTROLLER://b:9093",
            "controller.quorum.voters=1@a:9093,2@b:9093,3@c:9093",
            "super.users=User:admin;User:broker;User:CN=node-1;User:CN=node-2;User:CN=node-3",
            "min.insync.replicas=2",
        ] {
            assert!(text.lines().any(|each| each == line), "{line}: {text}");
        }
        assert!(text.contains("username=\"broker\" password=\"hunter2\";"), "{text}");
        let alone = super::nodes("1", "127.0.0.1", 9092).expect("sound");
        let text = server(&alone[0], &alone, Path::new("/s"), &Secret::from("x"));
        assert!(
            text.contains("listeners=SASL_SSL://127.0.0.1:9092,") && text.contains("min.insync.replicas=1\n")
        );
        let client = client(Path::new("/s/client"), &Secret::from("hunter2"));
        assert!(client.contains("username=\"admin\"") && client.contains("/s/client/ca.pem"), "{client}");
    }

    #[test]
    fn credential_is_one_that_format_takes_and_holds_no_password() {
        let user = User::new(BROKER, Secret::from("hunter2"), &[1, 2, 3]);
        let text = user.credential.text().unwrap_or_default();
        let beginning = "SCRAM-SHA-512=[name=broker,iterations=8192,salt=AQID,saltedpassword=";
        assert!(text.starts_with(beginning) && !text.contains("hunter2"), "{text}");
    }
}
