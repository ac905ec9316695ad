//! The settings as the node uses them: roles, names, directories, sockets.
//!
//! Limits and intervals are not here: their users read them from core/metadata's definitions. Source: Kafka
//! `KafkaConfig`, `KRaftConfigs`, `QuorumConfig`.

mod follow;
mod listeners;

pub use listeners::{Listener, Listeners};

use crate::settings::{ConfigError, Settings};
use barnabas_base::{BrokerId, Text};
use barnabas_metadata::config::check_cordoned_log_dirs;
use std::path::{Path, PathBuf};

/// Where a node without a configuration file keeps its data.
const DEFAULT_DIRECTORY: &str = "./barnabas-data";
/// More voters make a quorum slower and hardly safer.
const VOTERS_MAX: usize = 7;

/// One node, as its operator described it.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    pub node_id: BrokerId,
    pub rack: Option<Text>,
    pub listeners: Listeners,
    pub log_dirs: Vec<PathBuf>,
    pub metadata_log_dir: PathBuf,
    pub is_broker: bool,
    pub is_controller: bool,
    /// `controller.quorum.voters`: the quorum's voters, where they stand in the file (kraft.version 0) and not in the
    /// metadata log.
    pub static_voters: Vec<StaticVoter>,
    /// `controller.quorum.bootstrap.servers`: whom to ask who leads.
    pub bootstrap_servers: Vec<(Text, u16)>,
    /// A directory without meta.properties is formatted at the start instead of refusing it.
    pub formats_itself: bool,
    pub settings: Settings,
}

/// One of `controller.quorum.voters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticVoter {
    pub id: BrokerId,
    pub host: Text,
    pub port: u16,
}

impl NodeConfig {
    /// The node of `barnabas server` without a file.
    ///
    /// # Errors
    /// An override that cannot be.
    pub fn without_file(mut settings: Settings) -> Result<Self, ConfigError> {
        settings.set_default("process.roles", "broker,controller");
        settings.set_default("node.id", "1");
        settings.set_default("controller.listener.names", "CONTROLLER");
        // What cannot be read is judged below.
        let (is_broker, is_controller) = roles(&settings).unwrap_or((true, true));
        let listeners =
            [(is_broker, "PLAINTEXT://localhost:9092"), (is_controller, "CONTROLLER://localhost:9093")];
        let listeners = listeners.iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, listener)| *listener);
        settings.set_default("listeners", &listeners.collect::<Vec<_>>().join(","));
        if settings.get("log.dir").is_none() {
            settings.set_default("log.dirs", DEFAULT_DIRECTORY);
        }
        let mut config = Self::read(settings)?;
        config.formats_itself = true;
        Ok(config)
    }

    /// # Errors
    /// The first value that cannot be or contradicts another.
    pub fn read(mut settings: Settings) -> Result<Self, ConfigError> {
        let (is_broker, is_controller) = roles(&settings)?;
        let node_id = node_id(&settings)?;
        follow::follow(&mut settings, node_id, is_controller);
        let static_voters = voters(&settings, node_id, is_controller)?;
        let bootstrap_servers = bootstrap_servers(&settings)?;
        check_quorum_is_named(&static_voters, &bootstrap_servers, is_controller)?;
        let listeners = listeners::read(&settings, is_broker, is_controller)?;
        let log_dirs = log_dirs(&settings)?;
        check_cordoned(&settings)?;
        let metadata_log_dir =
            settings.get("metadata.log.dir").map_or_else(|| log_dirs[0].clone(), PathBuf::from);
        let rack = settings.get("broker.rack").filter(|rack| !rack.is_empty()).map(Text::from);
        Ok(Self {
            node_id,
            rack,
            listeners,
            log_dirs,
            metadata_log_dir,
            is_broker,
            is_controller,
            static_voters,
            bootstrap_servers,
            formats_itself: false,
            settings,
        })
    }

    pub fn has_static_voters(&self) -> bool {
        !self.static_voters.is_empty()
    }

    /// Every directory of the node, the metadata log's included, each once.
    pub fn directories(&self) -> Vec<&Path> {
        let mut directories: Vec<&Path> = self.log_dirs.iter().map(PathBuf::as_path).collect();
        if !directories.contains(&self.metadata_log_dir.as_path()) {
            directories.push(&self.metadata_log_dir);
        }
        directories
    }
}

fn roles(settings: &Settings) -> Result<(bool, bool), ConfigError> {
    const KEY: &str = "process.roles";
    const EXAMPLE: &str = "process.roles=broker,controller";
    let Some(text) = settings.get(KEY).filter(|text| !text.is_empty()) else {
        let hint = "is not set; a node with ZooKeeper, which Kafka 4 dropped, is not available";
        return Err(ConfigError::value(KEY, hint, EXAMPLE));
    };
    let mut is_broker = false;
    let mut is_controller = false;
    for role in text.split(',').map(str::trim) {
        let seen = match role {
            "broker" => &mut is_broker,
            "controller" => &mut is_controller,
            other => {
                let problem = format!("'{other}' is no role: expected broker, controller, or both");
                return Err(ConfigError::value(KEY, problem, EXAMPLE));
            }
        };
        if std::mem::replace(seen, true) {
            return Err(ConfigError::value(KEY, format!("'{role}' stands there twice"), EXAMPLE));
        }
    }
    Ok((is_broker, is_controller))
}

fn node_id(settings: &Settings) -> Result<BrokerId, ConfigError> {
    let of = |key: &str| -> Result<Option<i32>, ConfigError> {
        let Some(text) = settings.get(key) else { return Ok(None) };
        let id = text.parse::<i32>().ok().filter(|id| *id >= 0);
        id.map(Some).ok_or_else(|| {
            ConfigError::value(key, format!("'{text}' is no whole number from 0 on"), format!("{key}=1"))
        })
    };
    match (of("node.id")?, of("broker.id")?) {
        (Some(node), Some(broker)) if node != broker => {
            Err(ConfigError::value("broker.id", format!("{broker} contradicts node.id={node}"), "node.id=1"))
        }
        (Some(id), _) | (None, Some(id)) => Ok(BrokerId(id)),
        (None, None) => Err(ConfigError::value("node.id", "is not set", "node.id=1")),
    }
}

fn log_dirs(settings: &Settings) -> Result<Vec<PathBuf>, ConfigError> {
    const DEFAULT: &str = "/tmp/kafka-logs";
    let (key, text) = match (settings.get("log.dirs"), settings.get("log.dir")) {
        (Some(text), _) => ("log.dirs", text),
        (None, Some(text)) => ("log.dir", text),
        (None, None) => ("log.dirs", DEFAULT),
    };
    let example = || format!("{key}=/data/1,/data/2");
    let mut directories: Vec<PathBuf> = Vec::new();
    for entry in text.split(',').map(str::trim).filter(|_| !text.trim().is_empty()) {
        if entry.is_empty() {
            return Err(ConfigError::value(key, format!("an entry is empty in '{text}'"), example()));
        }
        let directory = PathBuf::from(entry);
        // One that stands there twice counts once, as in Kafka since KIP-1161; core/config/src/values.rs warns of it.
        if directories.contains(&directory) {
            continue;
        }
        let is_within = |other: &&PathBuf| directory.starts_with(other) || other.starts_with(&directory);
        if let Some(other) = directories.iter().find(is_within) {
            let (inner, outer) =
                if directory.starts_with(other) { (&directory, other) } else { (other, &directory) };
            let problem = format!("{} lies within {}", inner.display(), outer.display());
            return Err(ConfigError::value(key, problem, example()));
        }
        directories.push(directory);
    }
    if directories.is_empty() {
        return Err(ConfigError::value(key, "names no directory", format!("{key}=/var/lib/barnabas")));
    }
    Ok(directories)
}

fn check_cordoned(settings: &Settings) -> Result<(), ConfigError> {
    const KEY: &str = "cordoned.log.dirs";
    let Some(value) = settings.get(KEY) else { return Ok(()) };
    let dirs = settings.get("log.dirs").or_else(|| settings.get("log.dir")).unwrap_or_default();
    let dirs: Vec<&str> = dirs.split(',').map(str::trim).collect();
    let example = format!("{KEY}={}", dirs.first().copied().unwrap_or("*"));
    check_cordoned_log_dirs(value, &dirs).map_err(|problem| ConfigError::value(KEY, problem, example))
}

/// Host and port of `text`.
fn address(text: &str) -> Option<(Text, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = port.parse::<u16>().ok().filter(|port| *port > 0)?;
    (!host.is_empty()).then(|| (Text::from(host), port))
}

/// Judges `controller.quorum.voters`.
fn voters(
    settings: &Settings,
    node_id: BrokerId,
    is_controller: bool,
) -> Result<Vec<StaticVoter>, ConfigError> {
    const KEY: &str = "controller.quorum.voters";
    const EXAMPLE: &str = "controller.quorum.voters=1@localhost:9093";
    let Some(text) = settings.get(KEY).filter(|text| !text.is_empty()) else { return Ok(Vec::new()) };
    let mut voters: Vec<StaticVoter> = Vec::new();
    for entry in text.split(',').map(str::trim) {
        let voter = entry.split_once('@').and_then(|(id, at)| {
            let (host, port) = address(at)?;
            let id = id.parse::<i32>().ok().filter(|id| *id >= 0)?;
            Some(StaticVoter { id: BrokerId(id), host, port })
        });
        let problem = || format!("'{entry}' is no voter: expected ID@HOST:PORT");
        let voter = voter.ok_or_else(|| ConfigError::value(KEY, problem(), EXAMPLE))?;
        if voters.iter().any(|known| known.id == voter.id) {
            let problem = format!("voter {} stands there twice", voter.id);
            return Err(ConfigError::value(
                KEY,
                problem,
                "controller.quorum.voters=1@a:9093,2@b:9093,3@c:9093",
            ));
        }
        voters.push(voter);
    }
    let is_voter = voters.iter().any(|voter| voter.id == node_id);
    if is_controller && !is_voter {
        let problem =
            format!("process.roles holds controller, but node.id={node_id} is no voter of '{text}'");
        return Err(ConfigError::value(KEY, problem, format!("{KEY}={node_id}@localhost:9093")));
    }
    if !is_controller && is_voter {
        let problem = format!("process.roles is broker alone, but node.id={node_id} is a voter of '{text}'");
        return Err(ConfigError::value(KEY, problem, "process.roles=broker,controller"));
    }
    if voters.len() > VOTERS_MAX {
        let problem = format!("{} voters; at most {VOTERS_MAX} are of use", voters.len());
        return Err(ConfigError::value(KEY, problem, "controller.quorum.voters=1@a:9093,2@b:9093,3@c:9093"));
    }
    Ok(voters)
}

/// Judges `controller.quorum.bootstrap.servers`.
fn bootstrap_servers(settings: &Settings) -> Result<Vec<(Text, u16)>, ConfigError> {
    const KEY: &str = "controller.quorum.bootstrap.servers";
    let text = settings.get(KEY).unwrap_or_default();
    let mut servers = Vec::new();
    for entry in text.split(',').map(str::trim).filter(|_| !text.is_empty()) {
        let example = format!("{KEY}=a:9093,b:9093,c:9093");
        let problem = || format!("'{entry}' is no address: expected HOST:PORT");
        servers.push(address(entry).ok_or_else(|| ConfigError::value(KEY, problem(), example))?);
    }
    Ok(servers)
}

/// A broker alone must know where its controllers are.
fn check_quorum_is_named(
    voters: &[StaticVoter],
    servers: &[(Text, u16)],
    is_controller: bool,
) -> Result<(), ConfigError> {
    if is_controller || !voters.is_empty() || !servers.is_empty() {
        return Ok(());
    }
    const KEY: &str = "controller.quorum.bootstrap.servers";
    let problem =
        "is not set, nor is controller.quorum.voters: a broker alone must know where its controllers are";
    Err(ConfigError::value(KEY, problem, format!("{KEY}=localhost:9093")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<NodeConfig, ConfigError> {
        let mut settings = Settings::default();
        settings.set("process.roles", "broker,controller");
        settings.set("node.id", "1");
        settings.set("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093");
        settings.set("controller.listener.names", "CONTROLLER");
        for (key, value) in pairs {
            settings.set(key, value);
        }
        NodeConfig::read(settings)
    }

    fn refused(pairs: &[(&str, &str)]) -> String {
        with(pairs).expect_err("refused").to_string()
    }

    #[test]
    fn a_node_without_a_file_is_one_combined_node_on_loopback() {
        let config = NodeConfig::without_file(Settings::default()).expect("sound");
        assert!(config.formats_itself);
        assert_eq!(config.log_dirs, [PathBuf::from(DEFAULT_DIRECTORY)]);
        let shown: Vec<_> =
            config.listeners.all.iter().map(|listener| listener.endpoint.to_string()).collect();
        assert_eq!(shown, ["PLAINTEXT://localhost:9092", "CONTROLLER://localhost:9093"]);
    }

    #[test]
    fn refusals_name_key_problem_and_example() {
        assert!(
            refused(&[
                ("process.roles", "broker"),
                ("listeners", "PLAINTEXT://:9092"),
                ("controller.quorum.voters", "")
            ])
            .starts_with("controller.quorum.bootstrap.servers: ")
        );
        assert!(refused(&[("process.roles", "zookeeper")]).contains("Example: process.roles="));
        assert!(refused(&[("node.id", "-1")]).starts_with("node.id: '-1'"));
        assert!(refused(&[("broker.id", "2")]).contains("contradicts node.id=1"));
        assert!(refused(&[("log.dirs", "/a,,/b")]).contains("an entry is empty in '/a,,/b'"));
        assert!(refused(&[("log.dirs", "/a,")]).contains("an entry is empty"));
        assert!(refused(&[("log.dirs", "/a,/a/b")]).contains("/a/b lies within /a"));
        assert!(refused(&[("log.dirs", "/a/b/c,/a/b")]).contains("/a/b/c lies within /a/b"));
        assert!(refused(&[("log.dirs", " ")]).contains("names no directory"));
        assert!(refused(&[("controller.quorum.voters", "2@h:1")]).contains("no voter"));
        assert!(refused(&[("controller.quorum.voters", "1@h:1,1@h:2")]).contains("twice"));
        for servers in ["h", ",", "h:1,"] {
            assert!(refused(&[("controller.quorum.bootstrap.servers", servers)]).contains("HOST:PORT"));
        }
        assert!(refused(&[("controller.quorum.voters", "x")]).contains("ID@HOST:PORT"));
    }

    /// Kafka `KafkaConfig.validateValues` refuses these too.
    #[test]
    fn listeners_of_another_role_are_refused() {
        let servers = ("controller.quorum.bootstrap.servers", "h:9093");
        let text = refused(&[("process.roles", "broker"), servers]);
        assert_eq!(
            text,
            "listeners: process.roles is broker alone, but CONTROLLER://:9093 is a controller's listener \
             (controller.listener.names). Remove it, or add the role. Example: listeners=PLAINTEXT://:9092"
        );
        let text = refused(&[("process.roles", "controller"), servers]);
        assert!(
            text.contains("controller alone, but PLAINTEXT://:9092 is no controller's listener"),
            "{text}"
        );
        for (roles, listeners) in [("broker", "PLAINTEXT://:9092"), ("controller", "CONTROLLER://:9093")] {
            with(&[("process.roles", roles), ("listeners", listeners), servers]).expect("sound");
        }
    }

    #[test]
    fn node_without_a_file_listens_as_its_roles_say() {
        for (roles, expected) in
            [("broker", "PLAINTEXT://localhost:9092"), ("controller", "CONTROLLER://localhost:9093")]
        {
            let mut settings = Settings::default();
            settings.set("process.roles", roles);
            settings.set("controller.quorum.bootstrap.servers", "h:9093");
            let config = NodeConfig::without_file(settings).expect("sound");
            let shown: Vec<_> = config.listeners.all.iter().map(|one| one.endpoint.to_string()).collect();
            assert_eq!(shown, [expected], "{roles}");
        }
    }

    #[test]
    fn directories_and_voters_are_read() {
        let config = with(&[
            ("log.dirs", "/a, /b,/a"),
            ("metadata.log.dir", "/m"),
            ("controller.quorum.voters", "1@localhost:9093"),
        ])
        .expect("sound");
        assert!(config.has_static_voters());
        assert_eq!(config.directories(), [Path::new("/a"), Path::new("/b"), Path::new("/m")]);
    }
}
