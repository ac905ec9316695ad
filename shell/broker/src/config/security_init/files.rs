//! The files of `barnabas security init`, and how they are written.

use super::{ADMIN, BROKER, Failure, MECHANISM, Node};
use barnabas_sasl::Secret;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Holds secrets: the owner reads it.
const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o644;
const DIRECTORY: u32 = 0o700;

/// The directory in which everything is made.
pub struct Folder(PathBuf);

impl Folder {
    /// # Errors
    /// It holds something, or cannot be made.
    pub fn make(root: &Path) -> Result<Self, Failure> {
        let at = |error: std::io::Error| format!("{}: {error}", root.display());
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(DIRECTORY).create(root).map_err(at)?;
        if std::fs::read_dir(root).map_err(at)?.next().is_some() {
            return Err(format!(
                "{} is not empty, and nothing is written over. Choose another directory. Example: --dir ./security-2",
                root.display()
            )
            .into());
        }
        Ok(Self(root.to_owned()))
    }

    pub fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        self.create(name, text, PUBLIC)
    }

    pub fn write_secret(&self, name: &str, text: &str) -> Result<(), Failure> {
        self.create(name, text, SECRET)
    }

    fn create(&self, name: &str, text: &str, mode: u32) -> Result<(), Failure> {
        let path = self.0.join(name);
        let at = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(DIRECTORY).create(folder).map_err(at)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path).map_err(at)?;
        file.write_all(text.as_bytes()).map_err(at)?;
        Ok(())
    }
}

/// A key and its certificates in one store.
pub fn joined(key: &str, chain: &str) -> Secret {
    Secret::from(format!("{key}{chain}"))
}

/// A node's `server.properties`.
pub fn server(node: &Node, nodes: &[Node], folder: &Path, password: &Secret) -> String {
    let Node { id, host, port, controller_port } = node;
    // A name that others reach this machine by may be its loopback's here.
    let bound = if is_loopback(host) { host.as_str() } else { "" };
    let voters: Vec<String> =
        nodes.iter().map(|node| format!("{}@{}:{}", node.id, node.host, node.controller_port)).collect();
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
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// As one word for a shell.
pub fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_safe = |letter: char| letter.is_alphanumeric() || "/._-+@".contains(letter);
    if text.chars().all(is_safe) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
