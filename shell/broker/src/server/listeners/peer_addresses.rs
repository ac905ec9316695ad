//! Which addresses are those of the cluster's other nodes: replication's reserve of request memory, and half of the
//! connections of brokers and controllers, are kept for them.
//!
//! They come from the registrations in the image, and from the voters and bootstrap servers of the settings. Names are
//! resolved again once a minute: a node in a container returns under another address. A node that connects from an
//! address which none of its listeners has, as behind a NAT, shares with strangers what is left for them.
//!
//! This is no authentication. A process on another node's machine has that node's address.

use crate::node::Node;
use barnabas_base::{BrokerId, Text};
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_net::Gate;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const VOTERS: &str = "controller.quorum.voters";
const BOOTSTRAP: &str = "controller.quorum.bootstrap.servers";
/// How often it is looked whether the image names other hosts.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks until names are resolved again.
const RESOLVE_EVERY: u32 = 60;
const RESOLVE_PATIENCE: Duration = Duration::from_secs(3);

/// Keeps `gate` and the workers' memory informed, until the links' thread ends.
pub fn watch(node: &Arc<Node>, gate: Gate) {
    node.peers.links.handle().spawn(run(node.clone(), gate));
}

async fn run(node: Arc<Node>, gate: Gate) {
    let mut hosts = BTreeSet::new();
    let mut known: BTreeMap<Text, Vec<IpAddr>> = BTreeMap::new();
    let (mut image, mut looks) = (None, 0);
    loop {
        let now = node.cluster.image.load_full();
        let is_new = image.as_ref().is_none_or(|image| !Arc::ptr_eq(image, &now));
        if is_new {
            hosts = hosts_of(&now, &node.cluster.config.load(), node.identity.broker_id);
            image = Some(now);
        }
        let is_due = looks % RESOLVE_EVERY == 0;
        known.retain(|host, _| hosts.contains(host));
        for host in &hosts {
            if !is_due && known.contains_key(host) {
                continue;
            }
            // While the name server is away, the last addresses count.
            match resolve(host).await {
                Some(found) => drop(known.insert(host.clone(), found)),
                None => drop(known.entry(host.clone()).or_default()),
            }
        }
        if is_due || is_new {
            let addresses: BTreeSet<IpAddr> = known.values().flatten().copied().collect();
            let addresses: Vec<IpAddr> = addresses.into_iter().collect();
            node.workers.set_peers(&addresses);
            gate.set_peers(&addresses);
        }
        looks += 1;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn resolve(host: &str) -> Option<Vec<IpAddr>> {
    if let Ok(address) = host.parse() {
        return Some(vec![address]);
    }
    let found = timeout(RESOLVE_PATIENCE, tokio::net::lookup_host((host, 0))).await.ok()?.ok()?;
    Some(found.map(|address| address.ip().to_canonical()).collect())
}

/// The hosts of all nodes but `me`.
fn hosts_of(image: &Image, config: &BrokerConfig, me: BrokerId) -> BTreeSet<Text> {
    let brokers = image.cluster.brokers().map(|broker| (broker.id, &broker.endpoints));
    let controllers = image.cluster.controllers().map(|controller| (controller.id, &controller.endpoints));
    let registered = brokers.chain(controllers).filter(|(id, _)| *id != me);
    let registered = registered.flat_map(|(_, endpoints)| endpoints.iter().map(|one| one.host.clone()));
    let (voters, bootstrap) = (config.list(VOTERS), config.list(BOOTSTRAP));
    let mine = format!("{me}@");
    let others = voters.iter().filter(|voter| !voter.trim().starts_with(&mine));
    let configured = others.chain(&bootstrap).filter_map(|entry| host_of(entry)).map(Text::from);
    registered.chain(configured).collect()
}

/// Of `[id@]host:port`.
fn host_of(entry: &str) -> Option<&str> {
    let address = entry.trim().rsplit('@').next()?;
    let (host, _) = address.rsplit_once(':')?;
    Some(host.trim_start_matches('[').trim_end_matches(']')).filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_stands_between_id_and_port() {
        let hosts = ["1@a.example:9093", "b:9093", "3@[::1]:9093", " 4@10.0.0.4:9093 ", "", "no-port"];
        assert_eq!(
            hosts.map(host_of),
            [Some("a.example"), Some("b"), Some("::1"), Some("10.0.0.4"), None, None]
        );
    }
}
