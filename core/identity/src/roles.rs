//! Whether `process.roles` fits what the node's directories were formatted and used for.
//!
//! meta.properties names no role, so nothing is refused here: as with Kafka the node starts, and one that finds no
//! leader of the metadata quorum waits. The start names what will keep it waiting, and what stays unused.
//!
//! | formatted or used as | `process.roles` | said |
//! |---|---|---|
//! | the only voter (`--standalone`) | `broker` | ERROR: the cluster has no controller |
//! | one of several voters | `broker` | WARN: the quorum counts on a voter that does not run |
//! | a broker, or `--no-initial-controllers` | with `controller`, no other one named | ERROR: there is no voter |
//! | the same | with `controller`, others named | INFO: it follows until it is added |
//! | a broker that holds partitions | `controller` | WARN: they are not served |
//!
//! Neighbour: shell/broker/src/server/membership.rs, which says it.

use barnabas_base::DirectoryId;
use barnabas_config::NodeConfig;
use barnabas_quorum::Voters;
use std::path::Path;

/// What the operator has to know, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleNotice {
    /// The node cannot come up like this.
    Error(String),
    Warning(String),
    Info(String),
}

/// What is known of the directories once the metadata log is read.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// As the metadata log or `controller.quorum.voters` says.
    pub voters: &'a Voters,
    /// Of the metadata log.
    pub directory: DirectoryId,
    /// The name of a partition in one of the log directories, the metadata log's aside, and where it lies.
    pub partition: Option<(&'a Path, &'a str)>,
}

/// See the file's header.
pub fn role_notices(config: &NodeConfig, found: Found<'_>) -> Vec<RoleNotice> {
    let mut notices = Vec::new();
    if config.is_controller {
        notices.extend(not_voting(config, found));
    } else {
        notices.extend(voter_without_role(config, found));
    }
    if let Some((path, partition)) = found.partition.filter(|_| !config.is_broker) {
        notices.push(RoleNotice::Warning(format!(
            "{} holds partitions ({partition} and perhaps more), and process.roles=controller: they are not served. Start with \
             process.roles=broker,controller to serve them; delete them only when their replicas were moved to other brokers",
            path.display()
        )));
    }
    notices
}

/// A broker alone in a voter's directory.
fn voter_without_role(config: &NodeConfig, found: Found<'_>) -> Option<RoleNotice> {
    let (id, voters) = (config.node_id, found.voters);
    let directory = config.metadata_log_dir.display();
    if !voters.includes(id, found.directory) {
        return None;
    }
    if voters.len() == 1 {
        return Some(RoleNotice::Error(format!(
            "process.roles=broker, but {directory} was formatted for a controller: its metadata log says that node {id} is the only voter \
             of the metadata quorum. A broker runs no controller, so this cluster has no metadata leader and the node waits for one. Start \
             with process.roles=broker,controller; or, to join another cluster as a broker, format an empty directory for it"
        )));
    }
    let count = voters.len();
    Some(RoleNotice::Warning(format!(
        "process.roles=broker, but the metadata log in {directory} says that node {id} is one of {count} voters of the metadata quorum. \
         A broker does not vote: the quorum counts node {id} as a voter that is down. Start with process.roles=broker,controller, or \
         remove the voter: barnabas metadata-quorum --bootstrap-server HOST:PORT remove-controller --controller-id {id} \
         --controller-directory-id {}",
        found.directory
    )))
}

/// A controller that cannot vote: the metadata log knows no voters, or others.
fn not_voting(config: &NodeConfig, found: Found<'_>) -> Option<RoleNotice> {
    let (id, voters) = (config.node_id, found.voters);
    if voters.get(id).is_some() {
        return None;
    }
    let directory = config.metadata_log_dir.display();
    let joins = "It follows the quorum, and votes once it is added: barnabas metadata-quorum add-controller";
    if !voters.is_empty() {
        let known: Vec<String> = voters.ids().iter().map(ToString::to_string).collect();
        return Some(RoleNotice::Info(format!(
            "this controller (node {id}) is no voter of the metadata quorum, whose voters are {}. {joins}",
            known.join(", ")
        )));
    }
    if names_others(config) {
        return Some(RoleNotice::Info(format!(
            "the metadata log in {directory} knows no voters yet: it was formatted for a broker, or with --no-initial-controllers. \
             {joins}"
        )));
    }
    Some(RoleNotice::Error(format!(
        "process.roles holds controller, but the metadata log in {directory} knows no voters and controller.quorum.bootstrap.servers names \
         this node alone: it was formatted for a broker, or with --no-initial-controllers. The node waits for a leader that cannot be \
         elected. The first controller of a new cluster is formatted, in an empty directory, with: barnabas storage format --standalone. \
         To join a cluster, name its controllers in controller.quorum.bootstrap.servers"
    )))
}

/// Whether `controller.quorum.bootstrap.servers` names a controller that may be another node.
fn names_others(config: &NodeConfig) -> bool {
    let mine = || config.listeners.all.iter().filter(|listener| listener.is_controller);
    let is_mine = |host: &str, port: u16| {
        let is_loopback = matches!(host, "localhost" | "127.0.0.1" | "::1");
        mine()
            .any(|listener| listener.endpoint.port == port && (is_loopback || listener.endpoint.host == host))
    };
    config.bootstrap_servers.iter().any(|(host, port)| !is_mine(host, *port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::BrokerId;
    use barnabas_config::Settings;
    use barnabas_quorum::Voter;

    const MINE: [u8; 16] = [7; 16];

    fn config(roles: &str, bootstrap: &str) -> NodeConfig {
        let mut listeners = Vec::new();
        if roles.contains("broker") {
            listeners.push("PLAINTEXT://:9092");
        }
        if roles.contains("controller") {
            listeners.push("CONTROLLER://:9093");
        }
        let mut settings = Settings::default();
        settings.set_default("process.roles", roles);
        settings.set_default("node.id", "1");
        settings.set_default("listeners", &listeners.join(","));
        settings.set_default("controller.listener.names", "CONTROLLER");
        settings.set_default("controller.quorum.bootstrap.servers", bootstrap);
        settings.set_default("log.dirs", "/data");
        NodeConfig::read(settings).expect("sound")
    }

    fn voters(ids: &[i32]) -> Voters {
        Voters::new(ids.iter().map(|id| Voter {
            id: BrokerId(*id),
            directory: DirectoryId::from_random([if *id == 1 { MINE[0] } else { 9 }; 16]),
            endpoints: Vec::new(),
            kraft_min: 0,
            kraft_max: 1,
        }))
    }

    /// The level of each notice with the words that it must have.
    fn notices(roles: &str, bootstrap: &str, ids: &[i32], partition: bool) -> Vec<(char, String)> {
        let voters = voters(ids);
        let partition = partition.then_some((Path::new("/data"), "orders-0"));
        let found = Found { voters: &voters, directory: DirectoryId::from_random(MINE), partition };
        let level = |notice| match notice {
            RoleNotice::Error(words) => ('E', words),
            RoleNotice::Warning(words) => ('W', words),
            RoleNotice::Info(words) => ('I', words),
        };
        role_notices(&config(roles, bootstrap), found).into_iter().map(level).collect()
    }

    #[test]
    fn every_role_in_every_directory_says_what_does_not_fit() {
        const OTHER: &str = "other:9093";
        const OWN: &str = "localhost:9093";
        for (roles, bootstrap, ids, partition, expected) in [
            // Formatted with --standalone.
            ("broker,controller", OWN, &[1][..], true, &[][..]),
            ("controller", OWN, &[1], false, &[]),
            ("controller", OWN, &[1], true, &[('W', "/data holds partitions (orders-0")]),
            ("broker", OWN, &[1], true, &[('E', "node 1 is the only voter")]),
            (
                "broker",
                OTHER,
                &[1],
                false,
                &[('E', "process.roles=broker, but /data was formatted for a controller")],
            ),
            // One of several voters.
            ("broker,controller", OTHER, &[1, 2, 3], false, &[]),
            ("broker", OTHER, &[1, 2, 3], false, &[('W', "node 1 is one of 3 voters")]),
            // Formatted for a broker, not started yet.
            ("broker", OTHER, &[], false, &[]),
            ("broker,controller", OWN, &[], false, &[('E', "knows no voters")]),
            ("controller", OWN, &[], false, &[('E', "storage format --standalone")]),
            ("broker,controller", OTHER, &[], false, &[('I', "knows no voters yet")]),
            // A broker of another cluster of controllers.
            ("broker", OTHER, &[2, 3, 4], true, &[]),
            ("broker,controller", OTHER, &[2, 3, 4], true, &[('I', "whose voters are 2, 3, 4")]),
            (
                "controller",
                OTHER,
                &[2, 3, 4],
                true,
                &[('I', "votes once it is added"), ('W', "process.roles=controller: they are not served")],
            ),
        ] {
            let said = notices(roles, bootstrap, ids, partition);
            let fits = said.len() == expected.len()
                && said
                    .iter()
                    .zip(expected)
                    .all(|(said, wanted)| said.0 == wanted.0 && said.1.contains(wanted.1));
            assert!(fits, "{roles} {bootstrap} {ids:?} {partition}: {said:?}");
        }
    }
}
