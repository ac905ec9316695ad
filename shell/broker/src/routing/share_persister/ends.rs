//! Where logs end for consumers, wherever they are led: here their owners are asked, elsewhere their leaders, by
//! ListOffsets.
//!
//! Source: Kafka 4.4 `NetworkPartitionMetadataClient`.

use crate::mailbox::{AskItem, PartitionKey, Question, Said, Search};
use crate::node::Node;
use crate::node::peers::broker_links::Purpose;
use crate::routing::broker_requests::{patience, while_there};
use crate::routing::owners;
use barnabas_api::replication::list_offsets::{self, Ask, End};
use barnabas_base::{
    BrokerId, DurationMs, ErrorCode, LeaderEpoch, Map, Offset, PartitionIndex, Text, TopicId, TopicPartition,
};
use barnabas_coordinator::SharePartitionKey;
use barnabas_partition::Isolation;
use std::collections::BTreeMap;

type Ends = Map<(TopicId, PartitionIndex), Result<Offset, ErrorCode>>;

/// The ends of share-partitions' logs as consumers see them.
pub async fn log_ends<'a>(node: &Node, keys: impl Iterator<Item = &'a SharePartitionKey>) -> Ends {
    ends_of(node, keys.map(|key| PartitionKey { topic: key.topic, partition: key.partition })).await
}

/// The ends of logs as consumers see them.
pub async fn ends_of(node: &Node, keys: impl Iterator<Item = PartitionKey>) -> Ends {
    let mut ends = Ends::default();
    let (mut here, mut remote) = (Vec::new(), BTreeMap::<BrokerId, Vec<(Text, PartitionKey)>>::new());
    {
        let image = node.cluster.image.load();
        for at in keys {
            let topic = image.topics.by_id(at.topic);
            let led =
                topic.and_then(|topic| Some((topic.name.clone(), topic.partition(at.partition)?.leader)));
            match led {
                Some((_, leader)) if leader == node.identity.broker_id => here.push(at),
                Some((_, BrokerId::NONE)) | None => {
                    ends.insert((at.topic, at.partition), Err(ErrorCode::LeaderNotAvailable));
                }
                Some((name, leader)) => remote.entry(leader).or_default().push((name, at)),
            }
        }
    }
    ends.extend(ask_here(node, here).await);
    for (leader, partitions) in remote {
        ends.extend(ask_leader(node, leader, partitions).await);
    }
    ends
}

async fn ask_here(node: &Node, keys: Vec<PartitionKey>) -> Ends {
    let items = keys.iter().enumerate().map(|(slot, &partition)| AskItem {
        slot: slot as u32,
        partition,
        leader_epoch: None,
        question: Question::List {
            isolation: Isolation::ReadUncommitted,
            search: Search::Nothing,
            from_any: false,
        },
    });
    let outcomes = owners::ask(node, items.collect()).await.all().await;
    let said = outcomes.into_iter().filter_map(|outcome| {
        let key = *keys.get(outcome.slot as usize)?;
        let end = match outcome.result {
            Ok(Said::Listed { bounds, .. }) => Ok(bounds.readable_end),
            Ok(_) => Err(ErrorCode::UnknownServerError),
            Err(declined) => Err(declined.code()),
        };
        Some(((key.topic, key.partition), end))
    });
    said.collect()
}

async fn ask_leader(node: &Node, leader: BrokerId, mut partitions: Vec<(Text, PartitionKey)>) -> Ends {
    partitions.sort();
    let all = |code| {
        let each = partitions.iter().map(|(_, at)| ((at.topic, at.partition), Err(code)));
        each.collect::<Ends>()
    };
    let Some(link) = node.peers.broker_links.to(node, leader, Purpose::LogEnds) else {
        return all(ErrorCode::LeaderNotAvailable);
    };
    let asks = partitions.iter().map(|(topic, at)| Ask {
        topic: topic.clone(),
        partition: at.partition,
        leader_epoch: LeaderEpoch::NONE,
    });
    // As a consumer, who is shown what is on every replica in sync.
    let request = list_offsets::request(BrokerId::NONE, End::End, DurationMs(0), asks);
    let _counted = node.peers.broker_links.awaited(Purpose::LogEnds).begin();
    let asked = link.send_with(patience(node), |_| Some(request));
    let answer = match while_there(node, (leader, Purpose::LogEnds), asked).await {
        Some(Ok(answer)) => answer,
        Some(Err(error)) => {
            tracing::debug!(%error, "a leader did not say where its logs end");
            return all(ErrorCode::NetworkException);
        }
        None => return all(ErrorCode::LeaderNotAvailable),
    };
    let by_name: Map<TopicPartition, PartitionKey> = partitions
        .iter()
        .map(|(topic, at)| (TopicPartition::new(topic.clone(), at.partition), *at))
        .collect();
    let mut ends = all(ErrorCode::UnknownServerError);
    for said in list_offsets::answers(answer) {
        if let Some(at) = by_name.get(&TopicPartition::new(said.topic, said.partition)) {
            ends.insert((at.topic, at.partition), said.result);
        }
    }
    ends
}
