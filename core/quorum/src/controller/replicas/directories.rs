//! AssignReplicasToDirs: a broker says in which directory it holds its replicas.
//!
//! Source: KIP-858; Kafka `ReplicationControlManager.handleAssignReplicasToDirs`.

use barnabas_base::{BrokerId, ErrorCode, PartitionIndex, TopicId};
use barnabas_metadata::Broker;
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::assign_replicas_to_dirs_request::DirectoryData as Asked;
use barnabas_wire::messages::assign_replicas_to_dirs_response::{DirectoryData, PartitionData, TopicData};
use barnabas_wire::messages::{AssignReplicasToDirsRequest, AssignReplicasToDirsResponse};

use crate::controller::brokers::check_epoch;
use crate::controller::partition_change::PartitionChange;
use crate::controller::{Case, Outcome};

pub(crate) fn assign(case: &Case<'_>, request: &AssignReplicasToDirsRequest) -> Outcome {
    let refuse = |code: ErrorCode| {
        let error_code = code.code();
        let response = AssignReplicasToDirsResponse { error_code, ..AssignReplicasToDirsResponse::default() };
        Outcome::new(Vec::new(), response)
    };
    if !case.image.metadata_version().has_directories() {
        return refuse(ErrorCode::UnsupportedVersion);
    }
    let broker = match check_epoch(case.image, request.broker_id, request.broker_epoch) {
        Ok(broker) => broker,
        Err(refusal) => return refuse(refusal.code),
    };
    let mut records = Vec::new();
    let directories = request.directories.iter().map(|asked| directory(case, broker, asked, &mut records));
    let response = AssignReplicasToDirsResponse {
        directories: directories.collect(),
        ..AssignReplicasToDirsResponse::default()
    };
    Outcome::new(records, response)
}

fn directory(
    case: &Case<'_>,
    broker: &Broker,
    asked: &Asked,
    records: &mut Vec<MetadataRecord>,
) -> DirectoryData {
    let topics = asked.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let index = PartitionIndex(partition.partition_index);
            let code = match move_to(case, broker, asked, topic.topic_id, index) {
                Ok(record) => {
                    records.extend(record);
                    ErrorCode::None
                }
                Err(code) => code,
            };
            PartitionData {
                partition_index: index.get(),
                error_code: code.code(),
                ..PartitionData::default()
            }
        });
        TopicData { topic_id: topic.topic_id, partitions: partitions.collect(), ..TopicData::default() }
    });
    DirectoryData { id: asked.id, topics: topics.collect(), ..DirectoryData::default() }
}

fn move_to(
    case: &Case<'_>,
    broker: &Broker,
    asked: &Asked,
    topic: TopicId,
    index: PartitionIndex,
) -> Result<Option<MetadataRecord>, ErrorCode> {
    let topic = case.image.topics.by_id(topic).ok_or(ErrorCode::UnknownTopicId)?;
    let partition = topic.partition(index).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let id: BrokerId = broker.id;
    if !partition.has_replica(id) {
        return Err(ErrorCode::NotLeaderOrFollower);
    }
    let online = broker.has_online_directory(asked.id);
    // A replica in a directory that is gone can neither lead nor follow.
    let electorate = if online { case.electorate() } else { case.electorate().without(id) };
    let mut change = PartitionChange::new(electorate, topic, index, partition);
    change.directory = Some((id, asked.id));
    if !online {
        change.target_isr.retain(|&member| member != id);
    }
    Ok(change.build().map(MetadataRecord::from))
}
