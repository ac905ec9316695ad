//! Which controllers answer: asked where the metadata quorum has no leader, at the addresses that the brokers' settings
//! name.

use super::ask::Asker;
use barnabas_client::{ClientError, Connection, Dial};
use barnabas_findings::{Controller, Node, Seen, Unseen};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// For a connection, and for its first answer.
const WITHIN: Duration = Duration::from_secs(2);

/// In the order of the setting. All are asked side by side.
pub async fn controllers(asker: &Asker, nodes: &[Node]) -> Seen<Vec<Controller>> {
    let addresses = addresses(nodes)?;
    let config = asker.cluster.config();
    let dial = Dial {
        client_id: config.client_id.clone(),
        timeout: WITHIN,
        buffers: (-1, -1),
        security: config.security.clone(),
        progress: config.progress.clone(),
    };
    let mut asked = JoinSet::new();
    for (at, address) in addresses.into_iter().enumerate() {
        let (dial, pending) = (dial.clone(), asker.pending.clone());
        asked.spawn(async move {
            let _waiting = pending.begin(format!("controller {address}"));
            let answers = answers(&address, &dial).await.map_err(Unseen);
            (at, Controller { address, answers })
        });
    }
    let mut found = asked.join_all().await;
    found.sort_by_key(|(at, _)| *at);
    Ok(found.into_iter().map(|(_, controller)| controller).collect())
}

/// As the first broker that shows its settings names them.
fn addresses(nodes: &[Node]) -> Seen<Vec<String>> {
    const SERVERS: &str = "controller.quorum.bootstrap.servers";
    const VOTERS: &str = "controller.quorum.voters";
    let named = |node: &Node| {
        let configs = node.configs.as_ref().ok()?;
        let value = |key| configs.get(key)?.value.as_deref().filter(|value| !value.is_empty());
        let value = value(VOTERS).or_else(|| value(SERVERS))?;
        let address = |entry: &str| entry.trim().rsplit('@').next().unwrap_or_default().to_owned();
        Some(value.split(',').map(address).filter(|address| !address.is_empty()).collect())
    };
    let missing = || Unseen(format!("no broker shows {SERVERS} or {VOTERS}"));
    nodes.iter().find_map(named).ok_or_else(missing)
}

/// Whether there is a process that does something with a connection. What it says does not count: its listener may ask
/// for another login than the brokers'.
async fn answers(address: &str, dial: &Dial) -> Result<(), String> {
    match tokio::time::timeout(WITHIN, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => drop(stream),
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("no connection within {} s", WITHIN.as_secs())),
    }
    let silent = || format!("it takes connections, and answers nothing within {} s", WITHIN.as_secs());
    // Below the time that the connection itself allows for an answer: what ends sooner was ended by the node.
    match tokio::time::timeout(WITHIN.mul_f64(0.9), Connection::open_with(address, dial)).await {
        Ok(Err(ClientError::Unreachable { why, .. })) => Err(why),
        Ok(_) => Ok(()),
        Err(_) => Err(silent()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_client::{Cluster, ClusterConfig};
    use barnabas_findings::{Config, Configs};
    use tokio::net::TcpListener;

    fn node(key: &str, value: &str) -> Node {
        let config = Config { value: Some(value.to_owned()), ..Default::default() };
        let missing = || Unseen("not asked".to_owned());
        Node {
            id: 1,
            host: "h".to_owned(),
            port: 9092,
            rack: None,
            is_fenced: false,
            reached: Ok(()),
            configs: Ok(Configs::from([(key.to_owned(), config)])),
            features: Err(missing()),
            dirs: Err(missing()),
            figures: Err(missing()),
        }
    }

    #[test]
    fn addresses_come_from_either_setting() {
        let of = |key, value| addresses(&[node(key, value)]).expect("named");
        assert_eq!(of("controller.quorum.voters", "1@a:1, 2@b:2"), ["a:1", "b:2"]);
        assert_eq!(of("controller.quorum.bootstrap.servers", "a:1,b:2"), ["a:1", "b:2"]);
        assert!(addresses(&[node("controller.quorum.voters", "")]).is_err());
    }

    #[tokio::test]
    async fn controllers_that_are_gone_or_hang_do_not_answer() {
        let listen = async || TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = |listener: &TcpListener| listener.local_addr().expect("bound").to_string();
        let (closing, hanging, gone) = (listen().await, listen().await, listen().await);
        let servers = [address(&closing), address(&hanging), address(&gone)].join(",");
        drop(gone);
        // Of another protocol.
        tokio::spawn(async move { while closing.accept().await.is_ok() {} });
        let cluster = Cluster::new(ClusterConfig::new("h:1", "test"));
        let asker = Asker::new(cluster, crate::Pending::default());
        let nodes = [node("controller.quorum.bootstrap.servers", &servers)];
        let found = controllers(&asker, &nodes).await.expect("named");
        assert_eq!(found.iter().map(|one| one.answers.is_ok()).collect::<Vec<_>>(), [true, false, false]);
        drop(hanging);
    }
}
