//! The cluster at one look, and the metadata quorum.

use super::{REFUSED, Refused};
use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::http::shape::Shape::{Bool, Int, List, Object, OrNull, Text};
use crate::http::shape::{Doc, INT_OR_NULL, Shape, TEXT_OR_NULL};
use crate::kafka::log_dirs::{self, LogDir};
use crate::kafka::{groups, metadata, quorum};
use barnabas_wire::messages::describe_quorum_response::{PartitionData, ReplicaState};
use barnabas_wire::messages::metadata_response::MetadataResponsePartition;
use serde_json::{Value, json};

const BROKER: Shape = Object(&[
    ("id", Int),
    ("host", Text),
    ("port", Int),
    ("rack", TEXT_OR_NULL),
    ("leads", Int),
    ("replicas", Int),
]);
const LOG_DIR: Shape = Object(&[
    ("broker", Int),
    ("path", Text),
    ("total_bytes", INT_OR_NULL),
    ("usable_bytes", INT_OR_NULL),
    ("error", TEXT_OR_NULL),
]);
const REPLICA: Shape = Object(&[
    ("id", Int),
    ("directory", Text),
    ("log_end_offset", Int),
    ("lag", Int),
    ("last_fetch_ms", INT_OR_NULL),
    ("last_caught_up_ms", INT_OR_NULL),
]);
const VOTES: Shape = Object(&[
    ("leader_id", Int),
    ("leader_epoch", Int),
    ("high_watermark", Int),
    ("voters", List(&REPLICA)),
    ("observers", List(&REPLICA)),
]);
pub const QUORUM: Doc = Doc::get("The metadata quorum", &[], VOTES);
pub const OVERVIEW: Doc = Doc::get(
    "The cluster at one look",
    &[],
    Object(&[
        ("cluster_id", Text),
        ("user", TEXT_OR_NULL),
        ("is_read_only", Bool),
        ("controller_id", Int),
        ("brokers", List(&BROKER)),
        ("topics", Int),
        ("partitions", Int),
        ("under_replicated", Int),
        ("offline", Int),
        ("offline_replicas", Int),
        ("groups", INT_OR_NULL),
        ("quorum", OrNull(&VOTES)),
        ("log_dirs", OrNull(&List(&LOG_DIR))),
        ("refused", REFUSED),
    ]),
);

pub async fn overview(call: &mut Call) -> Result<Answer, Problem> {
    let mut refused = Refused::default();
    let known = metadata::ask_each(&mut call.cluster, None).await?;
    let groups = refused.part("groups", groups::list(&mut call.cluster).await)?;
    let quorum = refused.part("quorum", quorum::describe(&mut call.cluster).await)?;
    let sizes = refused.part("log_dirs", log_dirs::describe(&mut call.cluster, None).await)?;
    let topics: Vec<_> = known.topics.iter().filter(|topic| topic.error_code == 0).collect();
    let partitions = || topics.iter().flat_map(|topic| &topic.partitions);
    let broker = |broker: &barnabas_wire::messages::metadata_response::MetadataResponseBroker| {
        let leads = partitions().filter(|row| row.leader_id == broker.node_id).count();
        let holds = partitions().filter(|row| row.replica_nodes.contains(&broker.node_id)).count();
        json!({
            "id": broker.node_id,
            "host": &*broker.host,
            "port": broker.port,
            "rack": broker.rack.as_deref(),
            "leads": leads,
            "replicas": holds,
        })
    };
    Ok(Answer::json(json!({
        "cluster_id": call.cluster.id(),
        "user": call.cluster.user(),
        "is_read_only": call.at.is_read_only,
        "controller_id": known.controller_id,
        "brokers": known.brokers.iter().map(broker).collect::<Vec<_>>(),
        "topics": topics.len(),
        "partitions": partitions().count(),
        "under_replicated": partitions().filter(|row| is_under_replicated(row)).count(),
        "offline": partitions().filter(|row| row.leader_id < 0).count(),
        "offline_replicas": partitions().map(|row| row.offline_replicas.len()).sum::<usize>(),
        "groups": groups.map(|groups| groups.len()),
        "quorum": quorum.map(|told| quorum_document(&told)),
        "log_dirs": sizes.map(|sizes| sizes.dirs.iter().map(log_dir).collect::<Vec<_>>()),
        "refused": refused.0,
    })))
}

pub fn is_under_replicated(row: &MetadataResponsePartition) -> bool {
    row.isr_nodes.len() < row.replica_nodes.len()
}

fn log_dir(dir: &LogDir) -> Value {
    let bytes = |bytes: i64| (bytes >= 0).then_some(bytes);
    json!({
        "broker": dir.broker.get(),
        "path": dir.path,
        "total_bytes": bytes(dir.total_bytes),
        "usable_bytes": bytes(dir.usable_bytes),
        "error": dir.error.map(|code| code.name()),
    })
}

pub async fn quorum(call: &mut Call) -> Result<Answer, Problem> {
    let told = quorum::describe(&mut call.cluster).await?;
    Ok(Answer::json(quorum_document(&told)))
}

fn quorum_document(told: &PartitionData) -> Value {
    let time = |ms: i64| (ms >= 0).then_some(ms);
    let end = told.current_voters.iter().find(|voter| voter.replica_id == told.leader_id);
    let end = end.map_or(told.high_watermark, |leader| leader.log_end_offset);
    let replica = |replica: &ReplicaState| {
        json!({
            "id": replica.replica_id,
            "directory": replica.replica_directory_id.to_string(),
            "log_end_offset": replica.log_end_offset,
            "lag": (end - replica.log_end_offset).max(0),
            "last_fetch_ms": time(replica.last_fetch_timestamp),
            "last_caught_up_ms": time(replica.last_caught_up_timestamp),
        })
    };
    json!({
        "leader_id": told.leader_id,
        "leader_epoch": told.leader_epoch,
        "high_watermark": told.high_watermark,
        "voters": told.current_voters.iter().map(replica).collect::<Vec<_>>(),
        "observers": told.observers.iter().map(replica).collect::<Vec<_>>(),
    })
}
