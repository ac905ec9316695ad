//! The metadata quorum: who leads it, how far its voters and observers are; or that no broker reaches a leader.
//!
//! Brokers forward the question to the leader, and hold it back for longer than it is waited for here where there is
//! none. All that answered before are asked side by side: one of them may be cut off from the controllers.

use super::ask::{Asker, checked};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::ClientError;
use barnabas_findings::{Quorum, Seen, Unseen, Voter};
use barnabas_wire::messages::DescribeQuorumRequest;
use barnabas_wire::messages::describe_quorum_request::{PartitionData, TopicData};
use barnabas_wire::messages::describe_quorum_response::{DescribeQuorumResponse, ReplicaState};
use tokio::task::JoinSet;

const WHAT: &str = "the metadata quorum";
/// Brokers that are asked.
const ASKED_MAX: usize = 5;

/// What was seen of the quorum.
#[derive(Debug)]
pub struct Told {
    pub quorum: Seen<Quorum>,
    /// How the question ended where there is no leader.
    pub no_leader: Option<String>,
}

/// Asks the brokers of `nodes`; any where there is none.
pub async fn quorum(asker: &Asker, nodes: &[i32]) -> Told {
    let mut asked = JoinSet::new();
    let nodes: Vec<Option<i32>> = match nodes {
        [] => vec![None],
        nodes => nodes.iter().take(ASKED_MAX).copied().map(Some).collect(),
    };
    for node in nodes {
        let fork = asker.fork();
        asked.spawn(ask(fork, node));
    }
    let mut last = Told { quorum: Err(Unseen(format!("{WHAT} was not asked"))), no_leader: None };
    while let Some(told) = asked.join_next().await {
        match told {
            // The others are not waited for.
            Ok(told) if told.quorum.is_ok() => return told,
            Ok(told) if told.no_leader.is_some() || last.no_leader.is_none() => last = told,
            Ok(_) => {}
            Err(error) => last.quorum = Err(Unseen(format!("{WHAT}: {error}"))),
        }
    }
    last
}

async fn ask(mut asker: Asker, node: Option<i32>) -> Told {
    let partitions = vec![PartitionData { partition_index: 0, ..Default::default() }];
    let topic = TopicData { topic_name: "__cluster_metadata".into(), partitions, ..Default::default() };
    let request = DescribeQuorumRequest { topics: vec![topic], ..Default::default() };
    let _waiting = asker.pending.begin("the metadata quorum (DescribeQuorum)".to_owned());
    let answer = match node {
        Some(node) => asker.cluster.ask_with(BrokerId(node), |_| request.clone()).await,
        None => asker.cluster.ask_any_with(|_| request.clone()).await,
    };
    match answer {
        Ok(answer) => read(&answer),
        Err(error) => {
            let words = error.to_string();
            // The broker has answered everything else.
            let is_held_back = matches!(error, ClientError::Lost { .. } | ClientError::TimedOut { .. });
            let no_leader = is_held_back.then(|| format!("DescribeQuorum is not answered: {words}"));
            Told { quorum: Err(Unseen(format!("{WHAT}: {words}"))), no_leader }
        }
    }
}

fn read(answer: &DescribeQuorumResponse) -> Told {
    let partition = answer.topics.first().and_then(|topic| topic.partitions.first());
    let codes = [answer.error_code, partition.map_or(0, |partition| partition.error_code)];
    if let Some(code) = codes.into_iter().map(ErrorCode::from_code).find(|code| is_leaderless(*code)) {
        let words = format!("DescribeQuorum: {}", code.name());
        return Told { quorum: Err(Unseen(format!("{WHAT}: {}", code.name()))), no_leader: Some(words) };
    }
    let quorum = quorum_of(answer);
    let no_leader = quorum.as_ref().is_ok_and(|quorum| quorum.leader < 0);
    Told { quorum, no_leader: no_leader.then(|| "DescribeQuorum names none".to_owned()) }
}

/// A refusal for want of a leader, by a broker or by a controller that does not lead.
fn is_leaderless(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::RequestTimedOut
            | ErrorCode::NotLeaderOrFollower
            | ErrorCode::NotController
            | ErrorCode::LeaderNotAvailable
            | ErrorCode::BrokerNotAvailable
    )
}

fn quorum_of(answer: &DescribeQuorumResponse) -> Seen<Quorum> {
    checked(WHAT, answer.error_code, answer.error_message.as_deref())?;
    let partition = answer.topics.first().and_then(|topic| topic.partitions.first());
    let partition = partition.ok_or_else(|| Unseen(format!("{WHAT}: nothing was told")))?;
    checked(WHAT, partition.error_code, partition.error_message.as_deref())?;
    let leader = partition.current_voters.iter().find(|voter| voter.replica_id == partition.leader_id);
    let newest = leader.map_or(-1, |leader| leader.last_caught_up_timestamp);
    let newest_fetch = leader.map_or(-1, |leader| leader.last_fetch_timestamp);
    let voter = |state: &ReplicaState| Voter {
        id: state.replica_id,
        directory: state.replica_directory_id.to_string(),
        behind_ms: match (newest, state.last_caught_up_timestamp) {
            // DescribeQuorum 0 has no times.
            (..0, _) => Err(Unseen(format!("{WHAT}: no times were told"))),
            (_, ..0) => Ok(None),
            (newest, last) => Ok(Some((newest - last).max(0))),
        },
        silent_ms: match (newest_fetch, state.last_fetch_timestamp) {
            (..0, _) | (_, ..0) => None,
            (newest, last) => Some((newest - last).max(0)),
        },
    };
    Ok(Quorum {
        leader: partition.leader_id,
        voters: partition.current_voters.iter().map(voter).collect(),
        observers: partition.observers.iter().map(voter).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_wire::messages::describe_quorum_response as response;

    fn answer(leader_id: i32, error_code: i16, last_fetch: i64) -> DescribeQuorumResponse {
        let state = |(replica_id, at): (i32, i64)| ReplicaState {
            replica_id,
            last_fetch_timestamp: at,
            last_caught_up_timestamp: at,
            ..Default::default()
        };
        let partition = response::PartitionData {
            leader_id,
            error_code,
            current_voters: [(1, 50_000), (2, last_fetch)].map(state).into(),
            ..Default::default()
        };
        let topic = response::TopicData { partitions: vec![partition], ..Default::default() };
        DescribeQuorumResponse { topics: vec![topic], ..Default::default() }
    }

    #[test]
    fn leader_and_the_silence_of_each_voter_are_read() {
        let told = read(&answer(1, 0, 20_000));
        assert_eq!(told.no_leader, None);
        let quorum = told.quorum.expect("seen");
        let silence: Vec<_> = quorum.voters.iter().map(|voter| voter.silent_ms).collect();
        assert_eq!(silence, [Some(0), Some(30_000)]);
    }

    #[test]
    fn want_of_a_leader_differs_from_other_refusals() {
        let told = read(&answer(1, ErrorCode::RequestTimedOut.code(), 0));
        assert_eq!(told.no_leader.as_deref(), Some("DescribeQuorum: REQUEST_TIMED_OUT"));
        assert!(told.quorum.is_err());
        assert!(read(&answer(-1, 0, 0)).no_leader.is_some());
        let told = read(&answer(1, ErrorCode::ClusterAuthorizationFailed.code(), 0));
        assert_eq!(told.no_leader, None, "it may not be seen");
        assert!(told.quorum.is_err());
    }
}
