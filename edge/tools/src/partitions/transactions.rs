//! `transactions`, as Kafka's `kafka-transactions`: shows transactions and the producers of a partition, finds
//! hanging transactions, and aborts them.
//!
//! | file | answers |
//! |---|---|
//! | `transactions/hanging.rs` | open transactions that no coordinator will end |
//! | `transactions/producers.rs` | producers of a partition; aborts a transaction there |
//!
//! Source: Kafka 4.3 `TransactionsCommand`.

mod hanging;
mod producers;

use crate::command_line::args::{GoesWith, action, action_of, check_goes_with, number, text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::output::kafka_errors::message;
use crate::output::table::{Layout, Table, output};
use crate::{ToolError, block_on, now_ms};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster, Coordinated};
use barnabas_wire::messages::describe_transactions_response::TransactionState;
use barnabas_wire::messages::{
    DescribeTransactionsRequest, DescribeTransactionsResponse, InitProducerIdRequest, InitProducerIdResponse,
    ListTransactionsRequest, ListTransactionsResponse,
};
use clap::{Arg, ArgMatches};

const TOOL: &str = "transactions";
const ACTIONS: &str = "list|describe|describe-producers|abort|find-hanging|forceTerminateTransaction";
const FLAGS: [GoesWith<'_>; 12] = [
    ("duration-filter", &["list"]),
    ("transactional-id-pattern", &["list"]),
    ("transactional-id", &["describe"]),
    ("transactionalId", &["forceTerminateTransaction"]),
    ("topic", &["describe-producers", "abort", "find-hanging"]),
    ("partition", &["describe-producers", "abort", "find-hanging"]),
    ("broker-id", &["describe-producers", "find-hanging"]),
    ("start-offset", &["abort"]),
    ("producer-id", &["abort"]),
    ("producer-epoch", &["abort"]),
    ("coordinator-epoch", &["abort"]),
    ("max-transaction-timeout", &["find-hanging"]),
];

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().required(true),
        command_config(),
        action(ACTIONS),
        value("duration-filter", "ms", "With list: only transactions that have been open for longer"),
        value("transactional-id-pattern", "expression", "With list: only ids that match as a whole"),
        value("transactional-id", "id", "With describe: the transactional id"),
        value("transactionalId", "id", "With forceTerminateTransaction: the transactional id"),
        value("topic", "topic", "With describe-producers, abort, find-hanging: the topic"),
        value("partition", "number", "The partition of the topic"),
        value("broker-id", "id", "The replica that answers (default: the leader)"),
        value(
            "start-offset",
            "offset",
            "With abort: the first offset of the transaction, as describe-producers shows it",
        ),
        value("producer-id", "id", "With abort, instead of --start-offset: the producer"),
        value("producer-epoch", "number", "With --producer-id: its epoch"),
        value("coordinator-epoch", "number", "With --producer-id: the epoch of its coordinator"),
        value(
            "max-transaction-timeout",
            "minutes",
            "With find-hanging: only transactions that are open for longer (default: 15)",
        ),
        output(),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = action_of(matches, ACTIONS)?;
    check_goes_with(matches, action, &FLAGS)?;
    let mut cluster = Cluster::new(cluster_config(matches, "barnabas-transactions")?);
    block_on(async {
        match action {
            "list" => list(&mut cluster, matches).await,
            "describe" => describe(&mut cluster, matches).await,
            "describe-producers" => producers::describe(&mut cluster, matches).await,
            "abort" => producers::abort(&mut cluster, matches).await,
            "find-hanging" => hanging::find(&mut cluster, matches).await,
            _ => terminate(&mut cluster, matches).await,
        }
    })
}

/// The line that Kafka's tool ends with.
fn failed(what: &str, error: ClientError) -> ToolError {
    let why = match error {
        ClientError::Refused { code, message: told, .. } => message(code, Some(&told)),
        ClientError::TimedOut { .. } => error.to_string(),
        other => return other.into(),
    };
    ToolError::Plain(format!("{what}: {why}. Enable debug logging for additional detail."))
}

/// A flag that an action cannot do without.
fn needed<'a>(matches: &'a ArgMatches, flag: &str) -> Result<&'a str, ToolError> {
    let missing = || {
        let action = action_of(matches, ACTIONS)?;
        Err(ToolError::Usage(format!("{action} needs --{flag}")))
    };
    text(matches, flag).map_or_else(missing, Ok)
}

/// The partition that `--topic` and `--partition` name.
fn partition(matches: &ArgMatches) -> Result<(String, i32), ToolError> {
    let topic = needed(matches, "topic")?;
    needed(matches, "partition")?;
    Ok((topic.to_owned(), number(matches, "partition")?.unwrap_or_default()))
}

/// A transaction as its coordinator lists it.
struct Listed {
    id: String,
    coordinator: BrokerId,
    producer_id: i64,
    state: String,
}

/// The transactions of all coordinators, by id.
async fn listed(
    cluster: &mut Cluster,
    request: &ListTransactionsRequest,
) -> Result<Vec<Listed>, ClientError> {
    let mut all = Vec::new();
    for broker in cluster.nodes().await? {
        let what = format!("listing the transactions of broker {broker}");
        let code = |answer: &ListTransactionsResponse| answer.error_code;
        let answer = cluster.ask_until_answered(broker, &what, |_| request.clone(), code).await?;
        all.extend(answer.transaction_states.iter().map(|row| Listed {
            id: row.transactional_id.to_string(),
            coordinator: broker,
            producer_id: row.producer_id,
            state: row.transaction_state.to_string(),
        }));
    }
    all.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(all)
}

async fn list(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let request = ListTransactionsRequest {
        duration_filter: number(matches, "duration-filter")?.unwrap_or(-1),
        transactional_id_pattern: text(matches, "transactional-id-pattern").map(Into::into),
        ..Default::default()
    };
    let all =
        listed(cluster, &request).await.map_err(|error| failed("Failed to list transactions", error))?;
    let mut table = Table::new(Layout::Tabs)
        .text("TransactionalId", 0)
        .number("Coordinator", 0)
        .number("ProducerId", 0)
        .text("TransactionState", 0);
    for row in all {
        table.row([row.id, row.coordinator.to_string(), row.producer_id.to_string(), row.state]);
    }
    table.print(matches)
}

/// The state of a transactional id, and its coordinator.
async fn state_of(cluster: &mut Cluster, id: &str) -> Result<(BrokerId, TransactionState), ClientError> {
    let request = DescribeTransactionsRequest { transactional_ids: vec![id.into()], ..Default::default() };
    let code = |answer: &DescribeTransactionsResponse| {
        answer.transaction_states.first().map_or(0, |told| told.error_code)
    };
    let of = Coordinated::Transaction(id);
    let (node, answer) = cluster.ask_coordinator(of, &request, code).await?;
    let told = answer.transaction_states.into_iter().next();
    let told = told.ok_or_else(|| ClientError::Invalid("the answer names no transaction".to_owned()))?;
    let why = match ErrorCode::from_code(told.error_code) {
        ErrorCode::None => return Ok((node, told)),
        ErrorCode::TransactionalIdNotFound => {
            format!(
                "DescribeTransactions request for transactionalId `{id}` failed because the ID could not be found"
            )
        }
        ErrorCode::TransactionalIdAuthorizationFailed => {
            format!(
                "DescribeTransactions request for transactionalId `{id}` failed due to authorization failure"
            )
        }
        _ => {
            format!("DescribeTransactions request for transactionalId `{id}` failed due to unexpected error")
        }
    };
    Err(ClientError::refused(format!("transactional id {id}"), told.error_code, Some(&why)))
}

async fn describe(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let id = needed(matches, "transactional-id")?;
    let told = state_of(cluster, id).await;
    let (node, told) = told.map_err(|error| {
        failed(&format!("Failed to describe transaction state of transactional-id `{id}`"), error)
    })?;
    let began = Some(told.transaction_start_time_ms).filter(|ms| *ms >= 0);
    let or_none = |ms: Option<i64>| ms.map_or_else(|| "None".to_owned(), |ms| ms.to_string());
    let mut partitions: Vec<String> = told
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|number| format!("{}-{number}", &*topic.topic)))
        .collect();
    partitions.sort();
    let mut table = Table::new(Layout::Tabs)
        .number("CoordinatorId", 0)
        .text("TransactionalId", 0)
        .number("ProducerId", 0)
        .number("ProducerEpoch", 0)
        .text("TransactionState", 0)
        .number("TransactionTimeoutMs", 0)
        .number("CurrentTransactionStartTimeMs", 0)
        .number("TransactionDurationMs", 0)
        .text("TopicPartitions", 0);
    table.row([
        node.to_string(),
        id.to_owned(),
        told.producer_id.to_string(),
        told.producer_epoch.to_string(),
        told.transaction_state.to_string(),
        told.transaction_timeout_ms.to_string(),
        or_none(began),
        or_none(began.map(|ms| now_ms() - ms)),
        partitions.join(","),
    ]);
    table.print(matches)
}

/// Initializes the transactional id: the coordinator bumps its epoch and aborts its open transaction. KIP-939.
async fn terminate(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let id = needed(matches, "transactionalId")?;
    let request = InitProducerIdRequest {
        transactional_id: Some(id.into()),
        transaction_timeout_ms: cluster.config().request_timeout.as_millis() as i32,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    let code = |answer: &InitProducerIdResponse| answer.error_code;
    let of = Coordinated::Transaction(id);
    let what = format!("Failed to force terminate transactionalId `{id}`");
    let asked = cluster.ask_coordinator(of, &request, code).await;
    let (_, answer) = asked.map_err(|error| failed(&what, error))?;
    match answer.error_code {
        0 => Ok(()),
        code => Err(failed(&what, ClientError::refused(id, code, None))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_is_named_in_kafkas_line() {
        let refused = ClientError::refused("t-9", ErrorCode::TopicAuthorizationFailed.code(), None);
        let late = ClientError::TimedOut { what: "it".to_owned(), after_ms: 5, last: String::new() };
        for (error, why) in [(refused, "Topic authorization failed."), (late, "it was not done within 5 ms")]
        {
            let line = failed("Failed to describe", error).to_string();
            assert_eq!(
                line,
                format!("Failed to describe: {why}. Enable debug logging for additional detail.")
            );
        }
        let unknown = failed("Failed to describe", ClientError::Invalid("nothing".to_owned()));
        assert_eq!(unknown.to_string(), "nothing");
    }
}
