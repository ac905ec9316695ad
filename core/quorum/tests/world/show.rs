//! Records, batches and answers in a line each.

use barnabas_base::ErrorCode;
use barnabas_quorum::batches::{Content, Control, EncodedBatch, read_batch};
use barnabas_wire::messages::create_topics_response::CreatableTopicResult;
use barnabas_wire::messages::{
    BrokerRegistrationChangeRecord, PartitionChangeRecord, describe_quorum_response,
};
use barnabas_wire::records::batches;
use barnabas_wire::{MetadataRecord, ResponseBody, Str};

use super::Event;

pub fn event(event: &Event) -> String {
    match event {
        Event::State(text) => format!("write quorum-state {text}\n"),
        Event::Append(batch) => self::batch(batch),
        Event::Publish(image, changes) => {
            let mut what = Vec::new();
            if changes.everything {
                what.push("everything".to_owned());
            }
            let mut topics: Vec<String> = changes
                .topics
                .values()
                .map(|change| {
                    let sign = match (change.created, change.deleted) {
                        (true, true) => "±",
                        (true, false) => "+",
                        (false, true) => "−",
                        (false, false) => "~",
                    };
                    let partitions = if change.partitions.len() > 8 {
                        format!("{} partitions", change.partitions.len())
                    } else {
                        let all: Vec<String> = change.partitions.iter().map(ToString::to_string).collect();
                        all.join(",")
                    };
                    format!("{sign}{}[{partitions}]", change.name)
                })
                .collect();
            topics.sort();
            what.extend(topics);
            let mut configs: Vec<String> = changes
                .configs
                .iter()
                .map(|resource| format!("configs of {} '{}'", resource.kind.name(), resource.name))
                .collect();
            configs.sort();
            what.extend(configs);
            what.extend(changes.brokers.iter().map(|broker| format!("broker {broker}")));
            if changes.features {
                what.push("features".into());
            }
            if changes.producer_ids {
                what.push("producer ids".into());
            }
            if changes.acls {
                what.push("ACLs".into());
            }
            if changes.scram {
                what.push("SCRAM".into());
            }
            if changes.tokens {
                what.push("tokens".into());
            }
            what.extend(
                changes.quotas.iter().map(|entity| format!("quotas of {}", super::access::entity(entity))),
            );
            format!("publish up to {}: {}\n", image.provenance.end, what.join(" "))
        }
        Event::Respond(ticket, response) => format!("answer #{ticket} {}\n", self::response(response)),
        Event::Snapshot(id) => format!("write snapshot {id}\n"),
        Event::Delete(start, ids) => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            format!("delete below {start}, snapshots {}\n", ids.join(" "))
        }
    }
}

pub fn batch(batch: &EncodedBatch) -> String {
    let mut shown = String::new();
    for read in batches(batch.bytes.clone()) {
        let read = read.unwrap();
        let epoch = read.header().partition_leader_epoch;
        shown += &format!("append [{}, {}) epoch {epoch}\n", batch.base, batch.end);
        let lines: Vec<String> = match read_batch(&read).unwrap() {
            Content::Control(controls) => controls.iter().map(control).collect(),
            Content::Records(records) => records.iter().map(record).collect(),
        };
        let many = lines.len() > 12;
        for line in lines.iter().take(if many { 6 } else { 12 }) {
            shown += &format!("  {line}\n");
        }
        if many {
            shown += &format!("  … {} more\n", lines.len() - 6);
        }
    }
    shown
}

fn control(control: &Control) -> String {
    match control {
        Control::LeaderChange(message) => {
            let voters: Vec<i32> = message.voters.iter().map(|voter| voter.voter_id).collect();
            format!("LEADER_CHANGE leader={} voters={voters:?}", message.leader_id)
        }
        Control::KRaftVersion(record) => format!("KRAFT_VERSION {}", record.kraft_version),
        Control::Voters(record) => {
            let voter = |voter: &barnabas_wire::messages::voters_record::Voter| {
                let at: Vec<String> = voter
                    .endpoints
                    .iter()
                    .map(|endpoint| format!("{}://{}:{}", endpoint.name, endpoint.host, endpoint.port))
                    .collect();
                format!("{} in {} at {}", voter.voter_id, voter.voter_directory_id, at.join(" "))
            };
            let voters: Vec<String> = record.voters.iter().map(voter).collect();
            format!("KRAFT_VOTERS {}", voters.join("; "))
        }
        other => format!("{other:?}"),
    }
}

pub fn record(record: &MetadataRecord) -> String {
    match record {
        MetadataRecord::FeatureLevel(record) => {
            format!("FeatureLevel {} = {}", record.name, record.feature_level)
        }
        MetadataRecord::Topic(record) => format!("Topic {} {}", record.name, record.topic_id),
        MetadataRecord::RemoveTopic(record) => format!("RemoveTopic {}", record.topic_id),
        MetadataRecord::Partition(record) => format!(
            "Partition {} replicas={:?} isr={:?} leader={} epoch={}/{}",
            record.partition_id,
            record.replicas,
            record.isr,
            record.leader,
            record.leader_epoch,
            record.partition_epoch
        ),
        MetadataRecord::Config(record) => format!(
            "Config {} '{}' {} = {}",
            record.resource_type,
            record.resource_name,
            record.name,
            record.value.as_ref().map_or("null", Str::as_str)
        ),
        MetadataRecord::RegisterBroker(record) => format!(
            "RegisterBroker {} epoch={} fenced={} directories={}",
            record.broker_id,
            record.broker_epoch,
            record.fenced,
            record.log_dirs.len()
        ),
        MetadataRecord::ProducerIds(record) => {
            format!("ProducerIds broker={} next={}", record.broker_id, record.next_producer_id)
        }
        MetadataRecord::NoOp(_) => "NoOp".into(),
        MetadataRecord::BeginTransaction(record) => {
            format!("BeginTransaction {}", record.name.as_ref().map_or("", Str::as_str))
        }
        MetadataRecord::EndTransaction(_) => "EndTransaction".into(),
        MetadataRecord::AbortTransaction(record) => {
            format!("AbortTransaction {}", record.reason.as_ref().map_or("", Str::as_str))
        }
        MetadataRecord::BrokerRegistrationChange(record) => registration_change(record),
        MetadataRecord::PartitionChange(record) => partition_change(record),
        MetadataRecord::UnregisterBroker(record) => format!("UnregisterBroker {}", record.broker_id),
        MetadataRecord::RegisterController(record) => format!("RegisterController {}", record.controller_id),
        MetadataRecord::UnregisterController(record) => {
            format!("UnregisterController {}", record.controller_id)
        }
        MetadataRecord::ClearElr(record) => format!("ClearElr '{}'", record.topic_name),
        MetadataRecord::AccessControlEntry(_)
        | MetadataRecord::RemoveAccessControlEntry(_)
        | MetadataRecord::ClientQuota(_)
        | MetadataRecord::UserScramCredential(_)
        | MetadataRecord::RemoveUserScramCredential(_)
        | MetadataRecord::DelegationToken(_)
        | MetadataRecord::RemoveDelegationToken(_) => super::access::record(record),
        other => format!("{other:?}"),
    }
}

fn registration_change(record: &BrokerRegistrationChangeRecord) -> String {
    let mut shown = format!("BrokerRegistrationChange {}", record.broker_id);
    if record.fenced != 0 {
        shown += if record.fenced > 0 { " fenced" } else { " unfenced" };
    }
    if record.in_controlled_shutdown != 0 {
        shown += " in controlled shutdown";
    }
    if !record.log_dirs.is_empty() {
        shown += &format!(" directories={:?}", record.log_dirs);
    }
    shown
}

fn partition_change(record: &PartitionChangeRecord) -> String {
    let mut shown = format!("PartitionChange {}", record.partition_id);
    let fields = [
        ("replicas", &record.replicas),
        ("isr", &record.isr),
        ("elr", &record.eligible_leader_replicas),
        ("last-known-elr", &record.last_known_elr),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            shown += &format!(" {name}={value:?}");
        }
    }
    if record.leader != -2 {
        shown += &format!(" leader={}", record.leader);
    }
    if record.leader_recovery_state != -1 {
        shown += &format!(" recovery={}", record.leader_recovery_state);
    }
    if let Some(directories) = &record.directories {
        shown += &format!(" directories={directories:?}");
    }
    shown
}

pub(super) fn outcome(code: i16, message: Option<&Str>) -> String {
    match message.filter(|message| !message.is_empty()) {
        None => ErrorCode::from_code(code).name().to_owned(),
        Some(message) => format!("{} ({message})", ErrorCode::from_code(code)),
    }
}

/// An answer, and how long the client is throttled.
fn throttled(ms: i32, answer: String) -> String {
    if ms == 0 { answer } else { format!("{answer} throttle={ms}") }
}

/// What `show` says of each, or "nothing".
fn list<T>(items: impl IntoIterator<Item = T>, show: impl FnMut(T) -> String) -> String {
    let shown: Vec<String> = items.into_iter().map(show).collect();
    if shown.is_empty() { "nothing".to_owned() } else { shown.join("; ") }
}

pub fn response(response: &ResponseBody) -> String {
    match response {
        ResponseBody::CreateTopics(response) => {
            throttled(response.throttle_time_ms, list(&response.topics, created))
        }
        ResponseBody::DeleteTopics(response) => {
            let deleted = list(&response.responses, |topic| {
                let name = topic.name.as_ref().map_or("null", Str::as_str);
                format!("{name}: {}", outcome(topic.error_code, topic.error_message.as_ref()))
            });
            throttled(response.throttle_time_ms, deleted)
        }
        ResponseBody::CreatePartitions(response) => {
            let topics = list(&response.results, |topic| {
                format!("{}: {}", topic.name, outcome(topic.error_code, topic.error_message.as_ref()))
            });
            throttled(response.throttle_time_ms, topics)
        }
        ResponseBody::AlterConfigs(response) => list(&response.responses, |one| {
            format!("'{}': {}", one.resource_name, outcome(one.error_code, one.error_message.as_ref()))
        }),
        ResponseBody::IncrementalAlterConfigs(response) => list(&response.responses, |one| {
            format!("'{}': {}", one.resource_name, outcome(one.error_code, one.error_message.as_ref()))
        }),
        ResponseBody::UpdateFeatures(response) => {
            outcome(response.error_code, response.error_message.as_ref())
        }
        ResponseBody::ElectLeaders(response) => {
            let all = response
                .replica_election_results
                .iter()
                .flat_map(|topic| topic.partition_result.iter().map(move |one| (topic, one)));
            list(all, |(topic, one)| {
                let outcome = outcome(one.error_code, one.error_message.as_ref());
                format!("{}-{}: {outcome}", topic.topic, one.partition_id)
            })
        }
        ResponseBody::AssignReplicasToDirs(response) => {
            let topics = response.directories.iter().flat_map(|directory| &directory.topics);
            list(topics.flat_map(|topic| &topic.partitions), |one| {
                format!("{}: {}", one.partition_index, ErrorCode::from_code(one.error_code))
            })
        }
        ResponseBody::DescribeQuorum(response) => {
            list(response.topics.iter().flat_map(|topic| &topic.partitions), quorum)
        }
        other => of_a_node(other),
    }
}

/// Answers to what brokers and controllers ask for themselves.
fn of_a_node(response: &ResponseBody) -> String {
    match response {
        ResponseBody::AllocateProducerIds(response) => format!(
            "{} first={} count={}",
            ErrorCode::from_code(response.error_code),
            response.producer_id_start,
            response.producer_id_len
        ),
        ResponseBody::BrokerRegistration(response) => {
            format!("{} epoch={}", ErrorCode::from_code(response.error_code), response.broker_epoch)
        }
        ResponseBody::BrokerHeartbeat(response) => format!(
            "{} caught-up={} fenced={} should-shut-down={}",
            ErrorCode::from_code(response.error_code),
            response.is_caught_up,
            response.is_fenced,
            response.should_shut_down
        ),
        ResponseBody::UnregisterBroker(response) => {
            outcome(response.error_code, response.error_message.as_ref())
        }
        ResponseBody::UnregisterController(response) => {
            outcome(response.error_code, response.error_message.as_ref())
        }
        ResponseBody::ControllerRegistration(response) => {
            outcome(response.error_code, response.error_message.as_ref())
        }
        other => super::access::response(other),
    }
}

fn created(topic: &CreatableTopicResult) -> String {
    let outcome = outcome(topic.error_code, topic.error_message.as_ref());
    match topic.error_code {
        0 => format!(
            "{}: {outcome} partitions={} replicas={} configs={}",
            topic.name,
            topic.num_partitions,
            topic.replication_factor,
            topic.configs.as_ref().map_or(0, Vec::len)
        ),
        _ => format!("{}: {outcome}", topic.name),
    }
}

fn quorum(partition: &describe_quorum_response::PartitionData) -> String {
    let voters: Vec<String> = partition
        .current_voters
        .iter()
        .map(|voter| {
            format!("{}@{} end={}", voter.replica_id, voter.replica_directory_id, voter.log_end_offset)
        })
        .collect();
    format!(
        "{} leader={} epoch={} high-watermark={} voters={}",
        ErrorCode::from_code(partition.error_code),
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        voters.join(" ")
    )
}
