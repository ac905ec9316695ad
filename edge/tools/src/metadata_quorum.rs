//! `metadata-quorum`, as Kafka's `kafka-metadata-quorum`: how the quorum of controllers stands, and who votes in it.
//!
//! What it prints is Kafka's, since scripts read it. Source: Kafka `MetadataQuorumCommand`, `ToolsUtils.prettyPrintTable`.

use crate::waiting::telling;
use crate::{ToolError, block_on, bootstrap_server, number, say, switch, text, value};
use barnabas_base::{ErrorCode, Uuid};
use barnabas_client::{Cluster, ClusterConfig};
use barnabas_wire::messages::describe_quorum_request::{PartitionData as Asked, TopicData};
use barnabas_wire::messages::describe_quorum_response::{
    DescribeQuorumResponse, PartitionData, ReplicaState,
};
use barnabas_wire::messages::{DescribeClusterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest};
use clap::{Arg, ArgMatches};
use std::time::{SystemTime, UNIX_EPOCH};

const TOPIC: &str = "__cluster_metadata";
const ACTIONS: [&str; 2] = ["describe", "remove-controller"];

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server(),
        Arg::new("action").value_name("describe|remove-controller").help("What to do").required(true),
        switch("status", "With describe: who leads, who votes, who follows"),
        switch("replication", "With describe: how far every replica has come"),
        switch("human-readable", "With describe --replication: times as how long ago"),
        value("controller-id", "id", "With remove-controller: the voter"),
        value("controller-directory-id", "id", "With remove-controller: the id of its metadata directory"),
        switch("dry-run", "With remove-controller: say what would be done, and do nothing"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = text(matches, "action").unwrap_or_default();
    if !ACTIONS.contains(&action) {
        return Err(ToolError::Usage(format!("'{action}' is none of {}", ACTIONS.join(", "))));
    }
    let bootstrap = text(matches, "bootstrap-server").unwrap_or_default();
    let mut cluster = Cluster::new(ClusterConfig::new(bootstrap, "barnabas-metadata-quorum"));
    block_on(async {
        if action == "remove-controller" {
            return remove(&mut cluster, matches).await;
        }
        match (matches.get_flag("status"), matches.get_flag("replication")) {
            (true, false) => status(&mut cluster).await,
            (false, true) => replication(&mut cluster, matches.get_flag("human-readable")).await,
            _ => Err(ToolError::Usage("describe takes exactly one of --status and --replication".to_owned())),
        }
    })
}

async fn describe(cluster: &mut Cluster) -> Result<(DescribeQuorumResponse, PartitionData), ToolError> {
    let topic =
        TopicData { topic_name: TOPIC.into(), partitions: vec![Asked::default()], ..TopicData::default() };
    let request = DescribeQuorumRequest { topics: vec![topic], ..DescribeQuorumRequest::default() };
    let answer = telling("metadata-quorum", cluster.config().clone(), cluster.ask_any(&request)).await?;
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

async fn status(cluster: &mut Cluster) -> Result<(), ToolError> {
    let (answer, partition) = describe(cluster).await?;
    let known = cluster.ask_any(&DescribeClusterRequest::default()).await?;
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
    let replica = |replica: &ReplicaState| {
        let endpoints = answer.nodes.iter().find(|node| node.node_id == replica.replica_id);
        let endpoints: Vec<String> = endpoints
            .iter()
            .flat_map(|node| &node.listeners)
            .map(|at| format!("\"{}://{}:{}\"", at.name, at.host, at.port))
            .collect();
        let mut fields = vec![format!("\"id\": {}", replica.replica_id)];
        let id = replica.replica_directory_id;
        fields.push(if id.is_zero() {
            "\"directoryId\": null".to_owned()
        } else {
            format!("\"directoryId\": \"{id}\"")
        });
        if !endpoints.is_empty() {
            fields.push(format!("\"endpoints\": [{}]", endpoints.join(", ")));
        }
        format!("{{{}}}", fields.join(", "))
    };
    let list = |replicas: &[ReplicaState]| replicas.iter().map(replica).collect::<Vec<_>>().join(", ");
    say(&format!("ClusterId:              {}", known.cluster_id))?;
    say(&format!("LeaderId:               {}", partition.leader_id))?;
    say(&format!("LeaderEpoch:            {}", partition.leader_epoch))?;
    say(&format!("HighWatermark:          {}", partition.high_watermark))?;
    say(&format!("MaxFollowerLag:         {furthest}"))?;
    say(&format!("MaxFollowerLagTimeMs:   {late_ms}"))?;
    say(&format!("CurrentVoters:          [{}]", list(&partition.current_voters)))?;
    say(&format!("CurrentObservers:       [{}]", list(&partition.observers)))
}

async fn replication(cluster: &mut Cluster, is_for_people: bool) -> Result<(), ToolError> {
    let (_, partition) = describe(cluster).await?;
    let leader = leader_of(&partition);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let time = |at: i64| {
        if is_for_people && at >= 0 { format!("{} ms ago", (now - at).max(0)) } else { at.to_string() }
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
    say_table(&rows)
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

async fn remove(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let id: Option<i32> = number(matches, "controller-id")?;
    let id = id.ok_or_else(|| ToolError::Usage("remove-controller needs --controller-id".to_owned()))?;
    let directory = text(matches, "controller-directory-id").unwrap_or_default();
    let parsed = Uuid::parse(directory).ok_or_else(|| {
        ToolError::Usage(format!("--controller-directory-id takes a directory's id, not '{directory}'"))
    })?;
    let would = if matches.get_flag("dry-run") { "DRY RUN of removing" } else { "Removed" };
    if !matches.get_flag("dry-run") {
        let request = RemoveRaftVoterRequest {
            // Whoever is asked knows its own; the schema's default would be another one's.
            cluster_id: None,
            voter_id: id,
            voter_directory_id: parsed,
            ..RemoveRaftVoterRequest::default()
        };
        let answer = telling("metadata-quorum", cluster.config().clone(), cluster.ask_any(&request)).await?;
        if answer.error_code != 0 {
            let why = answer.error_message.as_ref().map_or("", |message| message.as_str());
            let code = ErrorCode::from_code(answer.error_code);
            return Err(ToolError::Usage(format!("the voter was not removed: {code} {why}")));
        }
    }
    say(&format!("{would}  KRaft controller {id} with directory id {directory}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_broker::fake_broker;
    use barnabas_wire::RequestBody;

    #[tokio::test]
    async fn why_the_quorum_cannot_be_described_is_said_in_the_brokers_words() {
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
