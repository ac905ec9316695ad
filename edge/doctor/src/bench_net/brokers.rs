//! `bench-net --bootstrap-server`: round trips to each broker of a cluster, by ApiVersions.
//!
//! Works with any broker. A round trip has the broker's own work in it: with a fast answer (both Barnabas and Apache
//! Kafka answer from memory) it is the path and a thread's turn. One request at a time, a thousand a second at most.

use super::{ROUNDS_HEAD, ROUNDS_MAX, RoundTrips, ms};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::ApiVersionsRequest;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Between two requests.
const PAUSE: Duration = Duration::from_millis(1);

/// The round trips to one broker.
#[derive(Debug)]
pub struct BrokerRounds {
    pub node: i32,
    pub address: String,
    /// Or why there are none.
    pub rounds: Result<RoundTrips, String>,
}

/// Measures each broker for `each`, one after the other.
///
/// # Errors
/// No broker can be asked for the others.
pub async fn bench_brokers(cluster: &mut Cluster, each: Duration) -> Result<Vec<BrokerRounds>, ClientError> {
    let mut brokers = Vec::new();
    for node in cluster.nodes().await? {
        let address = cluster.address(node)?.to_owned();
        let mut times = Vec::new();
        let measured = async {
            let request = ApiVersionsRequest {
                client_software_name: "barnabas".into(),
                client_software_version: env!("CARGO_PKG_VERSION").into(),
                ..Default::default()
            };
            // Connects and logs in.
            cluster.ask(node, &request).await?;
            let begun = Instant::now();
            while times.is_empty() || begun.elapsed() < each && times.len() < ROUNDS_MAX {
                let sent = Instant::now();
                cluster.ask(node, &request).await?;
                times.push(sent.elapsed());
                tokio::time::sleep(PAUSE).await;
            }
            Ok::<(), ClientError>(())
        };
        let rounds = match measured.await {
            Ok(()) => Ok(RoundTrips::of(times).expect("one at least")),
            Err(error) => Err(error.to_string()),
        };
        brokers.push(BrokerRounds { node: node.0, address, rounds });
    }
    Ok(brokers)
}

/// The table, and what it means.
pub fn brokers_text(brokers: &[BrokerRounds]) -> String {
    let mut lines = vec![ROUNDS_HEAD.to_owned()];
    for broker in brokers {
        let name = format!("{} {}", broker.node, broker.address);
        lines.push(match &broker.rounds {
            Ok(rounds) => rounds.row(&name),
            Err(why) => format!("{name:<28} {why}"),
        });
    }
    lines.extend(sentences(brokers));
    lines.join("\n")
}

impl BrokerRounds {
    pub fn json(&self) -> Value {
        let (rounds, error) = match &self.rounds {
            Ok(rounds) => (Some(rounds.json()), None),
            Err(why) => (None, Some(why)),
        };
        json!({ "node": self.node, "address": self.address, "roundTrips": rounds, "error": error })
    }

    /// What the figures of all mean.
    pub fn sentences(brokers: &[Self]) -> Vec<String> {
        sentences(brokers)
    }
}

fn sentences(brokers: &[BrokerRounds]) -> Vec<String> {
    let known = brokers.iter().filter_map(|broker| Some((broker, broker.rounds.as_ref().ok()?)));
    let Some((near, near_rounds)) = known.clone().min_by_key(|(_, rounds)| rounds.p50) else {
        return Vec::new();
    };
    let (far, far_rounds) = known.max_by_key(|(_, rounds)| rounds.p50).expect("one is known");
    let acks = 1.0 / far_rounds.p50.as_secs_f64().max(1e-9);
    let mut lines = vec![format!(
        "from here, an answer of node {} takes {} (p50): a client with one request in flight gets 1 / {} = {acks:.0} answers a \
         second from it at most, acks=0 left aside",
        far.node,
        ms(far_rounds.p50),
        ms(far_rounds.p50)
    )];
    if near.node != far.node {
        lines.push(format!(
            "the nearest is node {} with {}: a consumer near it saves {} a fetch with client.rack and \
             replica.selector.class (N9)",
            near.node,
            ms(near_rounds.p50),
            ms(far_rounds.p50 - near_rounds.p50)
        ));
    }
    lines.push(
        "this is the path from here, with each broker's own work: run it on a node's machine, or bench-net --listen and \
         --to, for what acks=all waits for between nodes"
            .to_owned(),
    );
    lines
}
