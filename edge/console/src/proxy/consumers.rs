//! Consumers: made, deleted, what they read, from where, and what they commit. A consumer is found by its maker alone
//! (`instances`), and everything it does is done as its maker.

use super::instance::{Commit, Id, Instance, Position, Positions};
use super::instances::Instances;
use super::setup::Setup;
use super::subscription::Subscription;
use super::{media, topics};
use crate::http::call::{Answer, Call, Fields};
use crate::http::percent;
use crate::http::problem::Problem;
use crate::kafka::Partition;
use barnabas_client::{ClientError, Cluster};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// A deletion waits this long for the consumer to leave its group.
const ENDED_WITHIN: Duration = Duration::from_secs(6);

pub async fn create(call: &mut Call) -> Result<Answer, Problem> {
    let setup = Setup::read(&call.body)?;
    let group = call.at.param("group").to_owned();
    // A caller that may not use the group has no consumer in it.
    check_group(&mut call.cluster, &group).await?;
    let name = match &setup.name {
        Some(name) => name.clone(),
        None => new_name()?,
    };
    let id = Id { user: call.cluster.user().map(str::to_owned), group: group.clone(), name: name.clone() };
    instances(call).create(id, setup, call.cluster.with_new_connections())?;
    let own = &call.at.own;
    let uri = format!("{own}/consumers/{}/instances/{}", percent::encode(&group), percent::encode(&name));
    media::answer(&call.headers, &json!({ "instance_id": name, "base_uri": uri }))
}

/// # Errors
/// `GROUP_AUTHORIZATION_FAILED`: the caller may not describe the group.
async fn check_group(cluster: &mut Cluster, group: &str) -> Result<(), ClientError> {
    let tries = cluster.tries(format!("finding the coordinator of group {group}"));
    loop {
        match cluster.group_coordinator(group).await {
            Ok(_) => return Ok(()),
            Err(error) => tries.after(error).await?,
        }
    }
}

fn new_name() -> Result<String, Problem> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|why| Problem::coded(500, format!("no random name: {why}")))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("rest-consumer-{digits}"))
}

fn instances(call: &Call) -> &Arc<Instances> {
    call.shared.get().expect("invariant: the listener hands them to every call")
}

/// # Errors
/// 40403: the caller has no such consumer here.
pub fn found(call: &Call) -> Result<Arc<Instance>, Problem> {
    let (group, name) = (call.at.param("group").to_owned(), call.at.param("instance").to_owned());
    instances(call).find(&Id { user: call.cluster.user().map(str::to_owned), group, name })
}

pub async fn delete(call: &mut Call) -> Result<Answer, Problem> {
    let instance = found(call)?;
    if instances(call).remove(&instance) {
        instance.stopped.notify_one();
        // Its task goes on by itself where that takes longer.
        let _ = timeout(ENDED_WITHIN, instance.ended.notified()).await;
    }
    Ok(Answer::nothing())
}

pub async fn subscription(call: &mut Call) -> Result<Answer, Problem> {
    let instance = found(call)?;
    let _use = instance.enter();
    let assigned = by_topic(instance.positions().1);
    let topics: BTreeSet<String> = match instance.subscription() {
        Subscription::Nothing | Subscription::Partitions => BTreeSet::new(),
        Subscription::Topics(topics) => topics,
        Subscription::Pattern(_) => assigned.keys().cloned().collect(),
    };
    let rows: Vec<Value> = assigned.into_iter().map(|(topic, indexes)| row(topic, indexes)).collect();
    media::answer(&call.headers, &json!({ "topics": topics, "partitions": rows }))
}

/// As Strimzi's bridge tells it: an object with the topic as its only name.
fn row(topic: String, indexes: Vec<i32>) -> Value {
    Value::Object(Map::from_iter([(topic, indexes.into())]))
}

fn by_topic(positions: Positions) -> BTreeMap<String, Vec<i32>> {
    let mut topics: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for (topic, index) in positions.into_keys() {
        topics.entry(topic).or_default().push(index);
    }
    topics
}

pub async fn subscribe(call: &mut Call) -> Result<Answer, Problem> {
    let instance = found(call)?;
    let _use = instance.enter();
    instance.subscribe(Subscription::read(&call.fields_of_v2(&["topics", "topic_pattern"])?)?)?;
    Ok(Answer::nothing())
}

pub async fn unsubscribe(call: &mut Call) -> Result<Answer, Problem> {
    let instance = found(call)?;
    let _use = instance.enter();
    instance.unsubscribe();
    Ok(Answer::nothing())
}

pub async fn assignments(call: &mut Call) -> Result<Answer, Problem> {
    let instance = found(call)?;
    let _use = instance.enter();
    let rows: Vec<Value> = instance
        .positions()
        .1
        .into_keys()
        .map(|(topic, partition)| json!({ "topic": topic, "partition": partition }))
        .collect();
    media::answer(&call.headers, &json!({ "partitions": rows }))
}

pub async fn assign(call: &mut Call) -> Result<Answer, Problem> {
    let instance = found(call)?;
    let _use = instance.enter();
    instance.assign(partitions(&call.fields_of_v2(PARTITIONS)?)?)?;
    Ok(Answer::nothing())
}

pub async fn seek(call: &mut Call) -> Result<Answer, Problem> {
    let instance = found(call)?;
    let _use = instance.enter();
    let offsets = offsets_of(&call.fields_of_v2(OFFSETS)?)?;
    instance
        .seek(&offsets.into_iter().map(|(partition, offset)| (partition, Position::At(offset))).collect())?;
    Ok(Answer::nothing())
}

pub async fn seek_to_beginning(call: &mut Call) -> Result<Answer, Problem> {
    seek_to(call, Position::Earliest)
}

pub async fn seek_to_end(call: &mut Call) -> Result<Answer, Problem> {
    seek_to(call, Position::Latest)
}

fn seek_to(call: &Call, position: Position) -> Result<Answer, Problem> {
    let instance = found(call)?;
    let _use = instance.enter();
    let wanted = partitions(&call.fields_of_v2(PARTITIONS)?)?;
    instance.seek(&wanted.into_iter().map(|partition| (partition, position)).collect())?;
    Ok(Answer::nothing())
}

/// What is committed. Without a body, of all that the consumer reads.
pub async fn offsets(call: &mut Call) -> Result<Answer, Problem> {
    let instance = found(call)?;
    let _use = instance.enter();
    let wanted = match call.body.is_empty() {
        true => instance.positions().1.into_keys().collect(),
        false => partitions(&call.fields_of_v2(PARTITIONS)?)?,
    };
    let committed = call.cluster.committed_offsets(&instance.id.group).await?;
    let row = |partition: Partition| {
        let offset = committed.get(&partition)?.offset;
        Some(json!({ "topic": partition.0, "partition": partition.1, "offset": offset, "metadata": "" }))
    };
    let rows: Vec<Value> = wanted.into_iter().filter_map(row).collect();
    media::answer(&call.headers, &json!({ "offsets": rows }))
}

/// Commits what was read, or the offsets of the body, each as the last that was processed.
pub async fn commit(call: &mut Call) -> Result<Answer, Problem> {
    let instance = found(call)?;
    let _use = instance.enter();
    let fields = if call.body.is_empty() { Fields::default() } else { call.fields_of_v2(OFFSETS)? };
    let offsets = match fields.raw("offsets") {
        None => None,
        Some(_) => Some(next_offsets(call, &fields).await?),
    };
    let (done, answer) = oneshot::channel();
    let ended = || Problem::coded(40_403, "the consumer was deleted");
    instance.commits.send(Commit { offsets, done }).await.map_err(|_| ended())?;
    answer.await.map_err(|_| ended())??;
    Ok(Answer::nothing())
}

/// The offsets behind those of the body, of partitions that there are.
async fn next_offsets(call: &mut Call, fields: &Fields) -> Result<BTreeMap<Partition, i64>, Problem> {
    let offsets = offsets_of(fields)?;
    let names: BTreeSet<&str> = offsets.keys().map(|partition| partition.0.as_str()).collect();
    for name in names {
        let topic = topics::found(&mut call.cluster, name).await?;
        for (_, index) in offsets.keys().filter(|partition| partition.0 == name) {
            topics::partition_of(&topic, *index)?;
        }
    }
    Ok(offsets.into_iter().map(|(partition, offset)| (partition, offset.saturating_add(1))).collect())
}

/// The names of bodies that list partitions, or offsets.
const PARTITIONS: &[&str] = &["partitions"];
const OFFSETS: &[&str] = &["offsets"];

fn partition(row: &Fields) -> Result<Partition, Problem> {
    let missing = || Problem::bad("partition is missing");
    let index = row.number("partition")?.filter(|index| *index >= 0).ok_or_else(missing)?;
    Ok((row.needed_text("topic")?, index))
}

fn partitions(fields: &Fields) -> Result<BTreeSet<Partition>, Problem> {
    if fields.raw("partitions").is_none() {
        return Err(Problem::bad("partitions is missing"));
    }
    let row = |row: &Fields| row.only_v2(&["topic", "partition"]).and_then(|()| partition(row));
    fields.objects("partitions")?.iter().map(row).collect()
}

fn offsets_of(fields: &Fields) -> Result<BTreeMap<Partition, i64>, Problem> {
    if fields.raw("offsets").is_none() {
        return Err(Problem::bad("offsets is missing"));
    }
    let row = |row: &Fields| {
        row.only_v2(&["topic", "partition", "offset", "metadata"])?;
        let offset: Option<i64> = row.number("offset")?.filter(|offset| *offset >= 0);
        Ok((partition(row)?, offset.ok_or_else(|| Problem::bad("offset takes a number from 0 on"))?))
    };
    fields.objects("offsets")?.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_and_offsets_are_read() {
        let fields = |text: &str| Fields::read(text.as_bytes()).expect("an object");
        let both = fields(
            r#"{"partitions":[{"topic":"t","partition":1}],"offsets":[{"topic":"t","partition":1,"offset":7}]}"#,
        );
        let of = ("t".to_owned(), 1);
        assert_eq!(partitions(&both).expect("sound"), BTreeSet::from([of.clone()]));
        assert_eq!(offsets_of(&both).expect("sound"), BTreeMap::from([(of, 7)]));
        for bad in [
            "{}",
            r#"{"partitions":[{"topic":"t"}],"offsets":[{"topic":"t","partition":1}]}"#,
            r#"{"partitions":[{"partition":1}],"offsets":[{"topic":"t","partition":1,"offset":-1}]}"#,
            r#"{"partitions":[{"topic":"t","partition":-1}],"offsets":{}}"#,
        ] {
            assert_eq!(partitions(&fields(bad)).expect_err(bad).status, 400);
            assert_eq!(offsets_of(&fields(bad)).expect_err(bad).status, 400);
        }
    }

    #[test]
    fn names_cannot_be_guessed() {
        let (one, other) = (new_name().expect("a name"), new_name().expect("a name"));
        assert!(one != other && one.len() == "rest-consumer-".len() + 32);
    }
}
