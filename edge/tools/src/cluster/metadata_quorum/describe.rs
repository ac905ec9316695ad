//! The quorum's state, in Kafka's lines.

use super::TOOL;
use crate::waiting::telling;
use crate::{ToolError, now_ms, say};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::DescribeQuorumRequest;
use barnabas_wire::messages::describe_cluster_request::DescribeClusterRequest;
use barnabas_wire::messages::describe_quorum_request::{PartitionData as Asked, TopicData};
use barnabas_wire::messages::describe_quorum_response::{
    DescribeQuorumResponse, Node, PartitionData, ReplicaState,
};
use serde_json::{Value, json};

/// DescribeCluster's types of endpoints.
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;
const TOPIC: &str = "__cluster_metadata";

async fn describe(cluster: &mut Cluster) -> Result<(DescribeQuorumResponse, PartitionData), ToolError> {
    let topic =
        TopicData { topic_name: TOPIC.into(), partitions: vec![Asked::default()], ..TopicData::default() };
    let request = DescribeQuorumRequest { topics: vec![topic], ..DescribeQuorumRequest::default() };
    let answer = telling(TOOL, cluster.config().clone(), cluster.ask_any(&request)).await?;
    let partition = answer.topics.first().and_then(|topic| topic.partitions.first()).cloned();
    let partition = partition.unwrap_or_default();
    let code = [answer.error_code, partition.error_code].into_iter().find(|&code| code != 0);
    match code.map(ErrorCode::from_code) {
        None => Ok((answer, partition)),
        Some(code) => {
            let told = [&answer.error_message, &partition.error_message];
            let why = told.into_iter().flatten().find(|why| !why.is_empty());
            let why = why.map_or_else(String::new, |why| format!(": {}", why.as_str()));
            Err(ToolError::Usage(format!("the quorum cannot be described now: {}{why}", code.name())))
        }
    }
}

fn lag(leader_end: i64, replica: &ReplicaState) -> i64 {
    leader_end - replica.log_end_offset
}

fn leader_of(partition: &PartitionData) -> ReplicaState {
    let leader = partition.current_voters.iter().find(|voter| voter.replica_id == partition.leader_id);
    leader.cloned().unwrap_or_default()
}

pub async fn status(cluster: &mut Cluster, is_json: bool) -> Result<(), ToolError> {
    let (answer, partition) = describe(cluster).await?;
    let endpoint_type = if cluster.config().is_of_controllers { CONTROLLERS } else { BROKERS };
    let request = DescribeClusterRequest { endpoint_type, ..Default::default() };
    let known = cluster.ask_any(&request).await?;
    if known.error_code != 0 {
        let why = known.error_message.as_deref();
        Err(ClientError::refused("asking for the cluster's id", known.error_code, why))?;
    }
    let leader = leader_of(&partition);
    let followers =
        || partition.current_voters.iter().filter(|voter| voter.replica_id != partition.leader_id);
    let furthest = followers().map(|voter| lag(leader.log_end_offset, voter)).max().unwrap_or(0);
    let slowest = followers().max_by_key(|voter| lag(leader.log_end_offset, voter));
    let late_ms = match slowest {
        None => 0,
        Some(voter) if voter.last_caught_up_timestamp < 0 => -1,
        Some(voter) => (leader.last_caught_up_timestamp - voter.last_caught_up_timestamp).max(0),
    };
    let list = |replicas: &[ReplicaState]| {
        let shown: Vec<String> = replicas.iter().map(|one| voter(one, &answer.nodes)).collect();
        shown.join(", ")
    };
    if is_json {
        let replicas = |replicas: &[ReplicaState]| -> Vec<Value> {
            replicas.iter().filter_map(|one| serde_json::from_str(&voter(one, &answer.nodes)).ok()).collect()
        };
        let status = json!({
            "clusterId": known.cluster_id.as_str(),
            "leaderId": partition.leader_id,
            "leaderEpoch": partition.leader_epoch,
            "highWatermark": partition.high_watermark,
            "maxFollowerLag": furthest,
            "maxFollowerLagTimeMs": late_ms,
            "currentVoters": replicas(&partition.current_voters),
            "currentObservers": replicas(&partition.observers),
        });
        return say(&status.to_string());
    }
    say(&format!("ClusterId:              {}", known.cluster_id))?;
    say(&format!("LeaderId:               {}", partition.leader_id))?;
    say(&format!("LeaderEpoch:            {}", partition.leader_epoch))?;
    say(&format!("HighWatermark:          {}", partition.high_watermark))?;
    say(&format!("MaxFollowerLag:         {furthest}"))?;
    say(&format!("MaxFollowerLagTimeMs:   {late_ms}"))?;
    say(&format!("CurrentVoters:          [{}]", list(&partition.current_voters)))?;
    say(&format!("CurrentObservers:       [{}]", list(&partition.observers)))
}

/// One voter or observer. A directory without an id is left out.
fn voter(replica: &ReplicaState, nodes: &[Node]) -> String {
    let mut fields = vec![format!("\"id\": {}", replica.replica_id)];
    if !replica.replica_directory_id.is_zero() {
        fields.push(format!("\"directoryId\": \"{}\"", replica.replica_directory_id));
    }
    let node = nodes.iter().find(|node| node.node_id == replica.replica_id);
    let endpoints = node.iter().flat_map(|node| &node.listeners);
    let endpoints: Vec<String> =
        endpoints.map(|at| format!("\"{}://{}:{}\"", at.name, at.host, at.port)).collect();
    if !endpoints.is_empty() {
        fields.push(format!("\"endpoints\": [{}]", endpoints.join(", ")));
    }
    format!("{{{}}}", fields.join(", "))
}

pub async fn replication(cluster: &mut Cluster, is_for_people: bool, is_json: bool) -> Result<(), ToolError> {
    let (_, partition) = describe(cluster).await?;
    let leader = leader_of(&partition);
    let time = |at: i64| {
        if is_for_people && at >= 0 { format!("{} ms ago", (now_ms() - at).max(0)) } else { at.to_string() }
    };
    let header = [
        "NodeId",
        "DirectoryId",
        "LogEndOffset",
        "Lag",
        "LastFetchTimestamp",
        "LastCaughtUpTimestamp",
        "Status",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    let mut add = |replica: &ReplicaState, status: &str| {
        rows.push([
            replica.replica_id.to_string(),
            replica.replica_directory_id.to_string(),
            replica.log_end_offset.to_string(),
            lag(leader.log_end_offset, replica).to_string(),
            time(replica.last_fetch_timestamp),
            time(replica.last_caught_up_timestamp),
            status.to_owned(),
        ]);
    };
    add(&leader, "Leader");
    for voter in partition.current_voters.iter().filter(|voter| voter.replica_id != partition.leader_id) {
        add(voter, "Follower");
    }
    partition.observers.iter().for_each(|observer| add(observer, "Observer"));
    if is_json {
        let object = |row: &[String; 7]| {
            json!({
                "nodeId": row[0].parse::<i32>().ok(),
                "directoryId": row[1],
                "logEndOffset": row[2].parse::<i64>().ok(),
                "lag": row[3].parse::<i64>().ok(),
                "lastFetchTimestamp": number_or_words(&row[4]),
                "lastCaughtUpTimestamp": number_or_words(&row[5]),
                "status": row[6],
            })
        };
        return say(&Value::from(rows[1..].iter().map(object).collect::<Vec<_>>()).to_string());
    }
    say_table(&rows)
}

/// A number or, with `--human-readable`, the words about it.
fn number_or_words(cell: &str) -> Value {
    cell.parse::<i64>().map_or_else(|_| cell.into(), Value::from)
}

fn say_table<const N: usize>(rows: &[[String; N]]) -> Result<(), ToolError> {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}\t"));
        say(&cells.collect::<String>())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_broker::fake_broker;
    use barnabas_client::ClusterConfig;
    use barnabas_wire::RequestBody;
    use barnabas_wire::messages::describe_quorum_response::Listener;

    #[test]
    fn voter_without_a_directory_id_is_shown_without_one() {
        let listener = Listener { name: "C".into(), host: "h".into(), port: 9, ..Default::default() };
        let node = Node { node_id: 2, listeners: vec![listener], ..Default::default() };
        let replica = |id: i32, byte: u8| ReplicaState {
            replica_id: id,
            replica_directory_id: barnabas_base::Uuid([byte; 16]),
            ..Default::default()
        };
        let nodes = [node];
        assert_eq!(voter(&replica(1, 0), &nodes), "{\"id\": 1}");
        assert_eq!(
            voter(&replica(2, 7), &nodes),
            "{\"id\": 2, \"directoryId\": \"BwcHBwcHBwcHBwcHBwcHBw\", \"endpoints\": [\"C://h:9\"]}"
        );
    }

    #[tokio::test]
    async fn failed_describe_shows_the_brokers_error_message() {
        let address = fake_broker(&[(55, 2)], |asked| {
            let RequestBody::DescribeQuorum(_) = asked else { panic!("{asked:?}") };
            let answer = DescribeQuorumResponse {
                error_code: ErrorCode::RequestTimedOut.code(),
                error_message: Some("No active controller could be reached.".into()),
                ..Default::default()
            };
            Some(answer.into())
        })
        .await;
        let mut cluster = Cluster::new(ClusterConfig::new(&address, "test"));
        let error = describe(&mut cluster).await.expect_err("it has no answer");
        let wanted =
            "the quorum cannot be described now: REQUEST_TIMED_OUT: No active controller could be reached.";
        assert_eq!(error.to_string(), wanted);
    }
}
