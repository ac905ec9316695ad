//! `--execute`, `--cancel` and `--list`.

use super::plan::{Partition, Plan, failed, line};
use super::{
    FILE, Ongoing, TIMEOUT_MS, TOOL, file, ids, log_dirs, name, ongoing, plural, replicas_of, throttles,
};
use crate::command_line::args::number;
use crate::output::kafka_errors::message;
use crate::waiting::telling;
use crate::{ToolError, say, tell};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::AlterPartitionReassignmentsRequest;
use barnabas_wire::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use clap::ArgMatches;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a move between log directories may take to begin, where `--timeout` is left out.
const BEGIN_MS: u64 = 10_000;
const IN_THE_WAY: &str = "Cannot execute because there is an existing partition assignment.  Use --additional to override this and \
create a new partition assignment in addition to the existing one. The --additional flag can also be used to change the throttle by \
resubmitting the current reassignment.";
const VERIFY_LATER: &str = "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed.";

pub async fn execute(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let plan = Plan::parse_for_execution(&file(matches, FILE)?)?;
    let rate = number::<i64>(matches, "throttle")?.filter(|rate| *rate >= 0);
    let dirs_rate = number::<i64>(matches, "replica-alter-log-dirs-throttle")?.filter(|rate| *rate >= 0);
    let under_way = ongoing(cluster).await?;
    if !matches.get_flag("additional") && !under_way.is_empty() {
        return Err(ToolError::Plain(IN_THE_WAY.to_owned()));
    }
    let proposed: BTreeMap<Partition, Vec<i32>> = plan.partitions.iter().cloned().collect();
    check_brokers(cluster, &proposed).await?;
    let current = current(cluster, &proposed).await?;
    say(&format!(
        "Current partition replica assignment\n\n{}\n\nSave this to use as the --reassignment-json-file option during rollback",
        line(&current)
    ))?;
    if rate.or(dirs_rate).is_some() {
        say(VERIFY_LATER)?;
    }
    if let Some(rate) = rate {
        throttles::set(cluster, &throttles::moves(&under_way, &proposed, &current), rate).await?;
    }
    if let Some(rate) = dirs_rate {
        let brokers: BTreeSet<i32> = plan.log_dirs.keys().map(|replica| replica.0).collect();
        throttles::set_log_dirs(cluster, &brokers, rate).await?;
    }
    let targets = proposed.iter().map(|(partition, replicas)| (partition, Some(replicas.clone())));
    let may_change = !matches.get_flag("disallow-replication-factor-change");
    let failures = alter(cluster, targets.collect(), may_change).await?;
    if !failures.is_empty() {
        return Err(ToolError::Plain(format!("Error reassigning partition(s):\n{}", failures.join("\n"))));
    }
    let names: Vec<String> = proposed.keys().map(name).collect();
    say(&format!(
        "Successfully started partition reassignment{} for {}",
        plural(names.len()),
        names.join(",")
    ))?;
    log_dirs::begin(cluster, &plan.log_dirs, timeout(matches)?).await
}

fn timeout(matches: &ArgMatches) -> Result<Duration, ToolError> {
    Ok(Duration::from_millis(number(matches, "timeout")?.unwrap_or(BEGIN_MS)))
}

async fn check_brokers(
    cluster: &mut Cluster,
    proposed: &BTreeMap<Partition, Vec<i32>>,
) -> Result<(), ToolError> {
    let known: BTreeSet<i32> = cluster.nodes().await?.into_iter().map(|node| node.0).collect();
    match proposed.values().flatten().find(|broker| !known.contains(broker)) {
        Some(unknown) => Err(failed(&format!("Unknown broker id {unknown}"))),
        None => Ok(()),
    }
}

/// The replicas of the proposed partitions now.
async fn current(
    cluster: &mut Cluster,
    proposed: &BTreeMap<Partition, Vec<i32>>,
) -> Result<BTreeMap<Partition, Vec<i32>>, ClientError> {
    let topics: BTreeSet<&str> = proposed.keys().map(|partition| partition.0.as_str()).collect();
    let topics: Vec<&str> = topics.into_iter().collect();
    let mut current = replicas_of(cluster, &topics).await?;
    current.retain(|partition, _| proposed.contains_key(partition));
    let missing: Vec<String> =
        proposed.keys().filter(|partition| !current.contains_key(*partition)).map(name).collect();
    if missing.is_empty() {
        return Ok(current);
    }
    let why = format!("Unable to find partition: {}", missing.join(", "));
    Err(ClientError::refused("partitions", ErrorCode::UnknownTopicOrPartition.code(), Some(&why)))
}

/// Sets the replicas of partitions, or with `None` cancels their reassignment. Returns a line for each that failed.
async fn alter(
    cluster: &mut Cluster,
    targets: Vec<(&Partition, Option<Vec<i32>>)>,
    may_change_factor: bool,
) -> Result<Vec<String>, ClientError> {
    let mut topics: Vec<ReassignableTopic> = Vec::new();
    for ((topic, number), replicas) in targets {
        if topics.last().is_none_or(|last| &*last.name != topic.as_str()) {
            topics.push(ReassignableTopic { name: topic.as_str().into(), ..Default::default() });
        }
        let row = ReassignablePartition { partition_index: *number, replicas, ..Default::default() };
        topics.last_mut().expect("it was put there just now").partitions.push(row);
    }
    let request = |version: i16| AlterPartitionReassignmentsRequest {
        timeout_ms: TIMEOUT_MS,
        // Version 0 always allows it.
        allow_replication_factor_change: version == 0 || may_change_factor,
        topics: topics.clone(),
        ..Default::default()
    };
    let answer = telling(TOOL, cluster.config().clone(), cluster.ask_controller(request)).await?;
    if answer.error_code != 0 {
        return Err(ClientError::refused("reassignment", answer.error_code, answer.error_message.as_deref()));
    }
    let mut failures = BTreeMap::new();
    for topic in &answer.responses {
        for row in topic.partitions.iter().filter(|row| row.error_code != 0) {
            let partition = (topic.name.to_string(), row.partition_index);
            let why = message(ErrorCode::from_code(row.error_code), row.error_message.as_deref());
            let line = format!("{}: {why}", name(&partition));
            failures.insert(partition, line);
        }
    }
    Ok(failures.into_values().collect())
}

pub async fn cancel(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let plan = Plan::parse(&file(matches, FILE)?)?;
    let under_way = ongoing(cluster).await?;
    let (cancelled, passed_over) = cancellable(&plan, &under_way);
    for partition in passed_over {
        tell(&format!(
            "WARN {} only gets more replicas: as with Kafka's tool, --cancel passes it over. To undo it: --execute --additional with the \
             replicas of before",
            name(partition)
        ));
    }
    if cancelled.is_empty() {
        say("None of the specified partition reassignments are active.")?;
    } else {
        let targets = cancelled.iter().map(|partition| (*partition, None)).collect();
        let failures = alter(cluster, targets, true).await?;
        if !failures.is_empty() {
            return Err(ToolError::Plain(format!(
                "Error cancelling partition reassignment{} for:\n{}",
                plural(failures.len()),
                failures.join("\n")
            )));
        }
        let names: Vec<String> = cancelled.iter().map(|partition| name(partition)).collect();
        say(&format!(
            "Successfully cancelled partition reassignment{} for: {}",
            plural(names.len()),
            names.join(",")
        ))?;
    }
    let places = log_dirs::places(cluster, &plan.log_dirs).await?;
    let moving = places.into_iter().filter(|(_, place)| place.future.is_some());
    let back: BTreeMap<_, _> =
        moving.filter_map(|(replica, place)| place.current.map(|dir| (replica, dir))).collect();
    if back.is_empty() {
        say("None of the specified partition moves are active.")?;
    } else {
        log_dirs::begin(cluster, &back, timeout(matches)?).await?;
    }
    if matches.get_flag("preserve-throttles") || cluster.config().is_of_controllers {
        return Ok(());
    }
    throttles::clear(cluster, &plan.partitions).await
}

/// The partitions of `plan` whose reassignment is cancelled, and those that Kafka's tool passes over: of reassignments
/// that only add replicas.
pub fn cancellable<'a>(
    plan: &'a Plan,
    under_way: &BTreeMap<Partition, Ongoing>,
) -> (Vec<&'a Partition>, Vec<&'a Partition>) {
    let named: BTreeSet<&Partition> = plan.partitions.iter().map(|(partition, _)| partition).collect();
    let active = named.into_iter().filter_map(|partition| Some((partition, under_way.get(partition)?)));
    let (cancelled, passed_over): (Vec<_>, Vec<_>) =
        active.partition(|(_, of)| of.adding.is_empty() || !of.removing.is_empty());
    let names = |all: Vec<(&'a Partition, &Ongoing)>| all.into_iter().map(|(name, _)| name).collect();
    (names(cancelled), names(passed_over))
}

pub async fn list(cluster: &mut Cluster) -> Result<(), ToolError> {
    let under_way = ongoing(cluster).await?;
    if under_way.is_empty() {
        return say("No partition reassignments found.");
    }
    say("Current partition reassignments:")?;
    for (partition, of) in under_way {
        let some = |what: &str, brokers: &[i32]| {
            if brokers.is_empty() { String::new() } else { format!(" {what}: {}.", ids(brokers)) }
        };
        say(&format!(
            "{}: replicas: {}.{}{}",
            name(&partition),
            ids(&of.replicas),
            some("adding", &of.adding),
            some("removing", &of.removing)
        ))?;
    }
    Ok(())
}
