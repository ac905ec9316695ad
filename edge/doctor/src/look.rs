//! Two looks at a cluster, some seconds apart, as the facts that the rules judge.
//!
//! A node that does not answer once is not asked again: what it would have told is "not seen". Nothing here fails but
//! the first question, which finds the cluster. What may be silent is asked side by side: all nodes at first, then the
//! quorum and the controllers. What is waited for stands in [`Pending`].
//!
//! | file | asks for |
//! |---|---|
//! | `look/ask.rs` | – sends requests, and remembers which nodes do not answer |
//! | `look/pending.rs` | – what is waited for |
//! | `look/nodes.rs` | brokers, settings, features, log directories |
//! | `look/figures.rs` | metrics pages |
//! | `look/topics.rs` | topics, their settings and offsets |
//! | `look/samples.rs` | batches that topics took between the looks |
//! | `look/groups.rs` | groups, what they have committed, how old what they have not read is |
//! | `look/quorum.rs` | the metadata quorum |
//! | `look/controllers.rs` | controllers, where the quorum has no leader |
//! | `look/cluster.rs` | reassignments, quotas, ACLs, SCRAM, transactions |

mod ask;
mod cluster;
mod controllers;
mod figures;
mod groups;
mod nodes;
mod pending;
mod quorum;
mod samples;
mod topics;

pub use pending::Pending;

use ask::Asker;
use barnabas_client::{ClientError, Cluster};
use barnabas_findings::{Controller, Facts, Node, Seen};
use barnabas_wire::messages::MetadataResponse;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How to look.
#[derive(Debug, Clone)]
pub struct Looking {
    /// Between the two looks.
    pub interval: Duration,
    /// The flags by which a command reaches the same cluster.
    pub connect: String,
    /// What is waited for.
    pub pending: Pending,
}

/// Looks twice.
///
/// # Errors
/// No node answers.
pub async fn look(cluster: Cluster, looking: &Looking) -> Result<Facts, ClientError> {
    let mut asker = Asker::new(cluster, looking.pending.clone());
    let metadata = refresh(&mut asker).await?;
    let brokers = nodes::brokers(&mut asker, &metadata).await;
    let mut nodes = nodes::nodes(&mut asker, brokers).await;
    let alive: Vec<i32> = nodes.iter().filter(|node| !node.is_fenced).map(|node| node.id).collect();
    let listed = groups::list(&mut asker, &alive).await;

    let begun = Instant::now();
    let pages = figures::pages(&mut asker, &alive).await;
    let ends = topics::latest(&mut asker, &metadata).await;
    let names = topics::names(&metadata);
    let committed = groups::committed(&mut asker, &listed, &names).await;
    rest(looking).await;
    let pages_later = figures::pages(&mut asker, &alive).await;
    for node in &mut nodes {
        node.figures = figures::between(node.id, &pages, &pages_later);
    }
    let committed_later = groups::committed(&mut asker, &listed, &names).await;
    let seconds = begun.elapsed().as_secs_f64();
    let metadata_later = refresh(&mut asker).await?;
    let now_ms = now_ms();
    let topics = topics::topics(&mut asker, &metadata, &metadata_later, &ends).await;
    let groups = groups::describe(&mut asker, &listed, &committed, &committed_later, &topics).await;
    let samples = samples::samples(&mut asker, &topics).await;
    let mut beside = asker.fork();
    let (reassigning, (told, controllers)) =
        tokio::join!(cluster::reassigning(&mut beside), quorum_and_controllers(&asker, &nodes));
    Ok(Facts {
        connect: looking.connect.clone(),
        now_ms,
        seconds,
        nodes,
        topics: Ok(topics),
        groups,
        quorum: told.quorum,
        no_leader: told.no_leader,
        controllers,
        reassigning,
        quotas: cluster::quotas(&mut asker).await,
        acls: cluster::acls(&mut asker).await,
        scram: cluster::scram(&mut asker).await,
        transactions: cluster::transactions(&mut asker, &alive).await,
        samples: Ok(samples),
    })
}

async fn refresh(asker: &mut Asker) -> Result<MetadataResponse, ClientError> {
    let _waiting = asker.pending.begin("any node (Metadata)".to_owned());
    asker.cluster.refresh(None, false).await
}

async fn rest(looking: &Looking) {
    let seconds = looking.interval.as_secs_f64();
    let _waiting =
        looking.pending.begin(format!("the second look, {seconds:.0} s after the first (--interval)"));
    tokio::time::sleep(looking.interval).await;
}

/// Controllers are asked only where there is no leader.
async fn quorum_and_controllers(asker: &Asker, nodes: &[Node]) -> (quorum::Told, Seen<Vec<Controller>>) {
    let answering: Vec<i32> = nodes
        .iter()
        .filter(|node| asker.check(node.id).is_ok() && node.reached.is_ok())
        .map(|node| node.id)
        .collect();
    let told = quorum::quorum(asker, &answering).await;
    let controllers = match &told.no_leader {
        Some(_) => controllers::controllers(asker, nodes).await,
        None => Ok(Vec::new()),
    };
    (told, controllers)
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
