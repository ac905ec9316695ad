//! Two looks at a cluster, some seconds apart, as the facts that the rules judge.
//!
//! A node that does not answer once is not asked again: what it would have told is "not seen". Nothing here fails but
//! the first question, which finds the cluster.
//!
//! | file | asks for |
//! |---|---|
//! | `look/ask.rs` | – sends requests, and remembers which nodes do not answer |
//! | `look/nodes.rs` | brokers, settings, features, log directories |
//! | `look/figures.rs` | metrics pages |
//! | `look/topics.rs` | topics, their settings and offsets |
//! | `look/groups.rs` | groups, what they have committed, how old what they have not read is |
//! | `look/cluster.rs` | quorum, reassignments, quotas, ACLs, SCRAM, transactions |

mod ask;
mod cluster;
mod figures;
mod groups;
mod nodes;
mod topics;

use ask::Asker;
use barnabas_client::{ClientError, Cluster};
use barnabas_findings::Facts;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How to look.
#[derive(Debug, Clone)]
pub struct Looking {
    /// Between the two looks.
    pub interval: Duration,
    /// The flags by which a command reaches the same cluster.
    pub connect: String,
}

/// Looks twice.
///
/// # Errors
/// No node answers.
pub async fn look(cluster: Cluster, looking: &Looking) -> Result<Facts, ClientError> {
    let mut asker = Asker::new(cluster);
    let metadata = asker.cluster.refresh(None, false).await?;
    let brokers = nodes::brokers(&mut asker, &metadata).await;
    let mut nodes = Vec::new();
    for broker in &brokers {
        nodes.push(nodes::node(&mut asker, broker).await);
    }
    let alive: Vec<i32> = nodes.iter().filter(|node| !node.is_fenced).map(|node| node.id).collect();
    let listed = groups::list(&mut asker, &alive).await;

    let begun = Instant::now();
    let pages = figures::pages(&mut asker, &alive).await;
    let ends = topics::latest(&mut asker, &metadata).await;
    let names = topics::names(&metadata);
    let committed = groups::committed(&mut asker, &listed, &names).await;
    tokio::time::sleep(looking.interval).await;
    let pages_later = figures::pages(&mut asker, &alive).await;
    for node in &mut nodes {
        node.figures = figures::between(node.id, &pages, &pages_later);
    }
    let committed_later = groups::committed(&mut asker, &listed, &names).await;
    let seconds = begun.elapsed().as_secs_f64();
    let metadata_later = asker.cluster.refresh(None, false).await?;
    let now_ms = now_ms();
    let topics = topics::topics(&mut asker, &metadata, &metadata_later, &ends).await;
    let groups = groups::describe(&mut asker, &listed, &committed, &committed_later, &topics).await;
    Ok(Facts {
        connect: looking.connect.clone(),
        now_ms,
        seconds,
        nodes,
        topics: Ok(topics),
        groups,
        quorum: cluster::quorum(&mut asker).await,
        reassigning: cluster::reassigning(&mut asker).await,
        quotas: cluster::quotas(&mut asker).await,
        acls: cluster::acls(&mut asker).await,
        scram: cluster::scram(&mut asker).await,
        transactions: cluster::transactions(&mut asker, &alive).await,
    })
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
