//! AlterPartition: the leader of a partition says who is in sync with it.
//!
//! Only its own leader's word counts, about the state that is known now; and no replica joins that could not lead:
//! fenced, on its way out, in another life than the one in which it fetched, without room to write, or damaged
//! ([`crate::controller::impaired`]).
//!
//! Source: KIP-497, KIP-704, KIP-841, KIP-903, KIP-966; Kafka `ReplicationControlManager.alterPartition`,
//! `validateAlterPartitionData`.

use barnabas_base::{BrokerEpoch, BrokerId, ErrorCode, LeaderEpoch, PartitionEpoch, PartitionIndex};
use barnabas_metadata::snapshot::numbers;
use barnabas_metadata::{LeaderRecoveryState, Partition, Topic};
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::alter_partition_request::PartitionData as Asked;
use barnabas_wire::messages::alter_partition_response::{PartitionData, TopicData};
use barnabas_wire::messages::{AlterPartitionRequest, AlterPartitionResponse};

use crate::controller::brokers::check_epoch;
use crate::controller::impaired::Impairment;
use crate::controller::partition_change::{Changed, PartitionChange};
use crate::controller::{Case, Outcome};

pub(crate) fn alter(case: &Case<'_>, request: &AlterPartitionRequest) -> Outcome {
    if let Err(refusal) = check_epoch(case.image, request.broker_id, request.broker_epoch) {
        let error_code = refusal.code.code();
        let response = AlterPartitionResponse { error_code, ..AlterPartitionResponse::default() };
        return Outcome::new(Vec::new(), response);
    }
    let leader = BrokerId(request.broker_id);
    let mut records = Vec::new();
    let topics = request.topics.iter().map(|asked| {
        let topic = case.image.topics.by_id(asked.topic_id);
        let partitions = asked.partitions.iter().map(|partition| {
            let altered = topic
                .ok_or(ErrorCode::UnknownTopicId)
                .and_then(|topic| alter_one(case, leader, topic, partition, &mut records));
            answer(partition.partition_index, altered)
        });
        TopicData { topic_id: asked.topic_id, partitions: partitions.collect(), ..TopicData::default() }
    });
    let response = AlterPartitionResponse { topics: topics.collect(), ..AlterPartitionResponse::default() };
    Outcome::new(records, response)
}

fn answer(partition_index: i32, altered: Result<Changed, ErrorCode>) -> PartitionData {
    match altered {
        Ok(now) => PartitionData {
            partition_index,
            leader_id: now.leader.get(),
            leader_epoch: now.leader_epoch.get(),
            isr: numbers(&now.isr),
            leader_recovery_state: now.recovery.code(),
            partition_epoch: now.partition_epoch.get(),
            ..PartitionData::default()
        },
        Err(code) => PartitionData { partition_index, error_code: code.code(), ..PartitionData::default() },
    }
}

fn alter_one(
    case: &Case<'_>,
    leader: BrokerId,
    topic: &Topic,
    asked: &Asked,
    records: &mut Vec<MetadataRecord>,
) -> Result<Changed, ErrorCode> {
    let index = PartitionIndex(asked.partition_index);
    let partition = topic.partition(index).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let isr = in_sync(case.asked.version, asked);
    let recovery = LeaderRecoveryState::from_code(asked.leader_recovery_state);
    let recovery = recovery.ok_or(ErrorCode::InvalidRequest)?;
    check_state(leader, partition, asked)?;
    check_members(case, (topic, index), partition, &isr, recovery)?;
    let mut change = PartitionChange::new(case.electorate(), topic, index, partition);
    change.target_isr = isr.iter().map(|&(member, _)| member).collect();
    change.recovery = recovery;
    let record = change.build();
    let now = Changed::after(partition, record.as_ref());
    records.extend(record.map(MetadataRecord::from));
    // The change ended a reassignment that had no place for the leader: it is made, and the leader is one no more.
    if now.leader != leader {
        return Err(ErrorCode::NewLeaderElected);
    }
    Ok(now)
}

/// Who shall be in sync, each with the life in which it fetched (from version 3 on).
fn in_sync(version: i16, asked: &Asked) -> Vec<(BrokerId, BrokerEpoch)> {
    if version >= 3 {
        let member = asked.new_isr_with_epochs.iter();
        return member.map(|member| (BrokerId(member.broker_id), BrokerEpoch(member.broker_epoch))).collect();
    }
    asked.new_isr.iter().map(|&member| (BrokerId(member), BrokerEpoch::NONE)).collect()
}

/// Whether the leader asks about the current state. A leader with a newer state than this controller has a newer
/// controller.
fn check_state(leader: BrokerId, partition: &Partition, asked: &Asked) -> Result<(), ErrorCode> {
    let (epoch, version) = (LeaderEpoch(asked.leader_epoch), PartitionEpoch(asked.partition_epoch));
    if epoch > partition.leader_epoch || version > partition.partition_epoch {
        return Err(ErrorCode::NotController);
    }
    if epoch < partition.leader_epoch {
        return Err(ErrorCode::FencedLeaderEpoch);
    }
    if leader != partition.leader {
        return Err(ErrorCode::InvalidRequest);
    }
    if version < partition.partition_epoch {
        return Err(ErrorCode::InvalidUpdateVersion);
    }
    Ok(())
}

fn check_members(
    case: &Case<'_>,
    (topic, index): (&Topic, PartitionIndex),
    partition: &Partition,
    isr: &[(BrokerId, BrokerEpoch)],
    recovery: LeaderRecoveryState,
) -> Result<(), ErrorCode> {
    let mut seen = barnabas_base::Set::default();
    let is_sound = isr.iter().all(|&(member, _)| seen.insert(member) && partition.has_replica(member));
    let has_leader = isr.iter().any(|&(member, _)| member == partition.leader);
    let recovers = recovery == LeaderRecoveryState::Recovering;
    let was_recovered = partition.placement.recovery == LeaderRecoveryState::Recovered;
    if !is_sound || !has_leader || recovers && (isr.len() > 1 || was_recovered) {
        return Err(ErrorCode::InvalidRequest);
    }
    let may_join = |member: BrokerId| {
        let directory = partition.directory(member);
        match case.impaired.of(case.image, member, (topic.id, index), directory) {
            Impairment::Nothing | Impairment::NoRoom => true,
            Impairment::Full => false,
            // An eligible leader replica counts already, and is not repaired while it does.
            Impairment::Damage => partition.elr().contains(&member),
        }
    };
    let is_eligible = |&(member, epoch): &(BrokerId, BrokerEpoch)| {
        let known = case.image.cluster.broker(member).filter(|broker| broker.is_active());
        known.is_some_and(|broker| epoch == BrokerEpoch::NONE || epoch == broker.epoch)
            && (partition.isr().contains(&member) || may_join(member))
    };
    if isr.iter().all(is_eligible) { Ok(()) } else { Err(ErrorCode::IneligibleReplica) }
}
