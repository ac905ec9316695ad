//! Effects → lines.

use barnabas_base::ErrorCode;
use barnabas_coordinator::{MarkerOrder, Record, TransactionEffect, TransactionResponse, TransactionState};
use barnabas_wire::messages::add_partitions_to_txn_response::AddPartitionsToTxnResult;
use barnabas_wire::messages::{TransactionLogValue, TransactionRecordKey, TransactionRecordValue};

use super::EPOCH_MS;

pub fn effect(effect: &TransactionEffect) -> Vec<String> {
    match effect {
        TransactionEffect::Append { batch, records } => {
            records.iter().map(|each| format!("append @{} {}", batch.0, record(each))).collect()
        }
        TransactionEffect::Answer { ticket, response } => vec![format!("#{} {}", ticket.0, answer(response))],
        TransactionEffect::WriteMarkers(order) => vec![markers(order)],
        TransactionEffect::AllocateProducerIds => vec!["allocate producer ids".to_owned()],
    }
}

fn markers(order: &MarkerOrder) -> String {
    let what = if order.commit { "commit" } else { "abort" };
    let partitions: Vec<String> = order.partitions.iter().map(ToString::to_string).collect();
    format!(
        "markers !{}.{} {} {what} p{}:{} tv{} {}",
        order.ticket.coordinator_epoch,
        order.ticket.number,
        order.transactional_id,
        order.producer_id,
        order.producer_epoch,
        order.version.0,
        partitions.join(",")
    )
}

fn error(code: i16) -> String {
    if code == 0 { String::new() } else { format!(" {}", ErrorCode::from_code(code).name()) }
}

fn record(record: &Record) -> String {
    let key = TransactionRecordKey::decode_key(record.key.clone()).expect("a key");
    let TransactionRecordKey::TransactionLog(key) = key;
    let Some(value) = record.value.clone() else { return format!("-{}", key.transactional_id) };
    let (value, version) = TransactionRecordValue::decode_value(0, value).expect("a value");
    let TransactionRecordValue::TransactionLog(value) = value;
    format!("{} {} v{version}", key.transactional_id, transaction(&value))
}

fn transaction(value: &TransactionLogValue) -> String {
    let state = TransactionState::of_record(value.transaction_status).expect("a state");
    let mut line = format!("{} p{}:{}", state.name(), value.producer_id, value.producer_epoch);
    if value.previous_producer_id != value.producer_id && value.previous_producer_id >= 0 {
        line += &format!(" previous={}", value.previous_producer_id);
    }
    if value.next_producer_id >= 0 {
        line += &format!(" next={}", value.next_producer_id);
    }
    for topic in value.transaction_partitions.iter().flatten() {
        let partitions: Vec<String> = topic.partition_ids.iter().map(ToString::to_string).collect();
        line += &format!(" {}-{}", topic.topic, partitions.join("+"));
    }
    if value.transaction_start_timestamp_ms >= 0 {
        line += &format!(" start={}", value.transaction_start_timestamp_ms - EPOCH_MS);
    }
    line += &format!(" at={}", value.transaction_last_update_timestamp_ms - EPOCH_MS);
    if value.client_transaction_version != 0 {
        line += &format!(" tv{}", value.client_transaction_version);
    }
    line
}

fn answer(response: &TransactionResponse) -> String {
    match response {
        TransactionResponse::InitProducerId(response) if response.error_code == 0 => {
            format!("init p{}:{}", response.producer_id, response.producer_epoch)
        }
        TransactionResponse::InitProducerId(response) => format!("init{}", error(response.error_code)),
        TransactionResponse::AddPartitions(result) => format!("added{}", added(result)),
        TransactionResponse::AddOffsets(response) => format!("added offsets{}", error(response.error_code)),
        TransactionResponse::EndTxn(response) if response.error_code == 0 && response.producer_id >= 0 => {
            format!("ended p{}:{}", response.producer_id, response.producer_epoch)
        }
        TransactionResponse::EndTxn(response) => format!("ended{}", error(response.error_code)),
        TransactionResponse::Parts(parts) => format!("{} parts", parts.len()),
        TransactionResponse::Close => "closes the connection".to_owned(),
        TransactionResponse::Describe(response) => {
            let states = response.transaction_states.iter().map(|state| {
                let mut line = format!(" [{}{}", state.transactional_id, error(state.error_code));
                if state.error_code == 0 {
                    line += &format!(
                        " {} p{}:{} timeout={}",
                        state.transaction_state,
                        state.producer_id,
                        state.producer_epoch,
                        state.transaction_timeout_ms
                    );
                    if state.transaction_start_time_ms >= 0 {
                        line += &format!(" start={}", state.transaction_start_time_ms - EPOCH_MS);
                    }
                }
                for topic in &state.topics {
                    let partitions: Vec<String> = topic.partitions.iter().map(ToString::to_string).collect();
                    line += &format!(" {}-{}", topic.topic, partitions.join("+"));
                }
                line + "]"
            });
            format!("described{}", states.collect::<String>())
        }
        TransactionResponse::List(response) => {
            let unknown = response.unknown_state_filters.iter().map(|name| format!(" unknown={name}"));
            let states = response.transaction_states.iter().map(|state| {
                format!(" [{} p{} {}]", state.transactional_id, state.producer_id, state.transaction_state)
            });
            format!(
                "listed{}{}{}",
                error(response.error_code),
                unknown.collect::<String>(),
                states.collect::<String>()
            )
        }
    }
}

fn added(result: &AddPartitionsToTxnResult) -> String {
    let topics = result.topic_results.iter().flat_map(|topic| {
        topic.results_by_partition.iter().map(|partition| {
            format!(" {}-{}{}", topic.name, partition.partition_index, error(partition.partition_error_code))
        })
    });
    topics.collect()
}
