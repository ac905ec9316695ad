//! A leader's AlterPartition, versions 2–3: who is in sync, by topic id.
//!
//! | version | what it added |
//! |---|---|
//! | 2 | topic ids (KIP-841) |
//! | 3 | each member with the life in which it fetched (KIP-903) |

use barnabas_base::{BrokerEpoch, BrokerId, ErrorCode, LeaderEpoch, PartitionEpoch, PartitionIndex, TopicId};
use barnabas_wire::messages::alter_partition_request::{
    AlterPartitionRequest, BrokerState, PartitionData, TopicData,
};
use barnabas_wire::messages::alter_partition_response::AlterPartitionResponse;

/// One partition's question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question<'a> {
    pub topic: TopicId,
    pub partition: PartitionIndex,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
    /// The followers; the leader, who asks, is added.
    pub in_sync: &'a [(BrokerId, BrokerEpoch)],
}

/// What the controller says to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub topic: TopicId,
    pub partition: PartitionIndex,
    pub result: Result<Altered, ErrorCode>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Altered {
    pub leader: BrokerId,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
    pub in_sync: Vec<BrokerId>,
}

/// The request of `broker` with its broker epoch. The recovery state is always RECOVERED: a replica
/// recovers before it leads (KIP-704).
pub fn request<'a>(
    broker: BrokerId,
    epoch: BrokerEpoch,
    version: i16,
    questions: impl IntoIterator<Item = Question<'a>>,
) -> AlterPartitionRequest {
    let mut topics: Vec<TopicData> = Vec::new();
    for question in questions {
        let partition = asked(broker, epoch, version, &question);
        match topics.last_mut() {
            Some(last) if last.topic_id == question.topic => last.partitions.push(partition),
            _ => topics.push(TopicData {
                topic_id: question.topic,
                partitions: vec![partition],
                ..TopicData::default()
            }),
        }
    }
    AlterPartitionRequest {
        broker_id: broker.get(),
        broker_epoch: epoch.get(),
        topics,
        ..AlterPartitionRequest::default()
    }
}

fn asked(broker: BrokerId, epoch: BrokerEpoch, version: i16, question: &Question<'_>) -> PartitionData {
    let mut partition = PartitionData {
        partition_index: question.partition.get(),
        leader_epoch: question.leader_epoch.get(),
        partition_epoch: question.partition_epoch.get(),
        ..PartitionData::default()
    };
    let members = std::iter::once((broker, epoch)).chain(question.in_sync.iter().copied());
    if version >= 3 {
        let state = |(broker, epoch): (BrokerId, BrokerEpoch)| BrokerState {
            broker_id: broker.get(),
            broker_epoch: epoch.get(),
            ..BrokerState::default()
        };
        partition.new_isr_with_epochs = members.map(state).collect();
    } else {
        partition.new_isr = members.map(|(broker, _)| broker.get()).collect();
    }
    partition
}

/// The answer's partitions. What stands over all of them is the response's own error code.
pub fn answers(response: AlterPartitionResponse) -> impl Iterator<Item = Answer> {
    response.topics.into_iter().flat_map(|topic| {
        let id = topic.topic_id;
        topic.partitions.into_iter().map(move |partition| Answer {
            topic: id,
            partition: PartitionIndex(partition.partition_index),
            result: match ErrorCode::from_code(partition.error_code) {
                ErrorCode::None => Ok(Altered {
                    leader: BrokerId(partition.leader_id),
                    leader_epoch: LeaderEpoch(partition.leader_epoch),
                    partition_epoch: PartitionEpoch(partition.partition_epoch),
                    in_sync: partition.isr.into_iter().map(BrokerId).collect(),
                }),
                code => Err(code),
            },
        })
    })
}
