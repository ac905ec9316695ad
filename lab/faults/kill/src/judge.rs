//! What is there, beside what must be.
//!
//! Reads on from where the last look ended, or everything again; checks offsets, numbers, keys, committed offsets,
//! topics and log starts against what had been acknowledged before the look began.

use crate::churn::{COMMITTED_PARTITIONS, GROUP};
use crate::fleet::{COMPACTED, KEPT, LOOSE, TOPICS, TRIMMED, cluster, read_value, runtime};
use crate::ledger::{Count, Ledger, Writer};
use barnabas_base::{Offset, PartitionIndex};
use barnabas_client::{Admin, ClientError, Cluster, Consumer, ConsumerConfig, NewTopic, Received, StartAt};
use barnabas_wire::messages::OffsetFetchRequest;
use barnabas_wire::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// For one partition's tail; and for a high watermark to come up to what was acknowledged.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// What came since the last look.
    Tail,
    /// Everything from the beginning.
    Whole,
    /// After the last write: the log holds exactly what was sent.
    End,
}

#[derive(Debug)]
pub struct Judge {
    address: String,
    /// Where the next look begins, by topic and partition.
    next: BTreeMap<(&'static str, i32), i64>,
    /// Numbers seen, by writer: all below are there.
    seen: BTreeMap<Writer, u64>,
    keys: BTreeMap<(i32, u64), u64>,
    doubled: u64,
    /// Records of the compacted topic that were read since its beginning.
    compacted: u64,
    looks: usize,
}

impl Judge {
    pub fn new(address: String) -> Self {
        Self {
            address,
            next: BTreeMap::new(),
            seen: BTreeMap::new(),
            keys: BTreeMap::new(),
            doubled: 0,
            compacted: 0,
            looks: 0,
        }
    }

    pub fn looks(&self) -> usize {
        self.looks
    }

    pub fn doubled_words(&self) -> String {
        format!(" once ({} acks=1 records twice, as their retries may be)", self.doubled)
    }

    /// How many records the last whole look found in the compacted topic.
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    pub fn make_topics(&self) -> Result<(), String> {
        runtime().block_on(async {
            let mut cluster = cluster(&self.address, "judge");
            for (name, partitions, configs) in TOPICS {
                let configs = configs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
                let new = NewTopic {
                    name: (*name).to_owned(),
                    partitions: Some(*partitions),
                    replication_factor: Some(1),
                    configs: configs.collect(),
                    ..NewTopic::default()
                };
                Admin::new(&mut cluster)
                    .create_topic(&new)
                    .await
                    .map_err(|error| format!("making {name}: {error}"))?;
            }
            Ok(())
        })
    }

    /// One look, after a start.
    pub fn look(&mut self, ledger: &Ledger, scope: Scope) -> Result<(), String> {
        self.looks += 1;
        if scope != Scope::Tail {
            self.next.clear();
            self.seen.clear();
            self.keys.clear();
            self.doubled = 0;
            self.compacted = 0;
        }
        // What must be there was acknowledged before this moment.
        let (counts, keys) = (ledger.counts(), ledger.keys());
        let mut cluster = cluster(&self.address, "judge");
        runtime().block_on(async {
            for (topic, partitions, _) in TOPICS {
                self.read(&mut cluster, topic, *partitions).await?;
            }
            self.compare(&counts, &keys, scope)?;
            check_committed(&mut cluster, ledger).await?;
            check_topics(&mut cluster, ledger).await?;
            check_low(&mut cluster, ledger).await
        })
    }

    /// Reads a topic up to where it ends now.
    async fn read(
        &mut self,
        cluster: &mut Cluster,
        topic: &'static str,
        partitions: i32,
    ) -> Result<(), String> {
        let told = |error: ClientError| format!("reading {topic}: {error}");
        let mut left: BTreeMap<i32, i64> = BTreeMap::new();
        let mut assigned = Vec::new();
        for partition in 0..partitions {
            let index = PartitionIndex(partition);
            let end = cluster.list_offset(topic, index, -1).await.map_err(told)?.get();
            let start = cluster.list_offset(topic, index, -2).await.map_err(told)?.get();
            let next = self.next.entry((topic, partition)).or_insert(start);
            if *next > end {
                return Err(format!("{topic}-{partition} ends at {end}, but was read up to {next} before"));
            }
            *next = (*next).max(start);
            if *next < end {
                left.insert(partition, end);
                assigned.push((index, StartAt::Offset(Offset(*next))));
            }
        }
        let mut consumer = Consumer::new(topic, ConsumerConfig::default());
        consumer.assign(assigned);
        let begun = Instant::now();
        while !left.is_empty() {
            if let Some(record) = consumer.poll(cluster, Duration::from_millis(100)).await.map_err(told)? {
                self.take(topic, &record)?;
            } else {
                // Compaction may have taken what stood before the end.
                for (partition, position) in consumer.positions() {
                    self.next.insert((topic, partition.get()), position.get());
                }
            }
            left.retain(|partition, end| self.next[&(topic, *partition)] < *end);
            if begun.elapsed() > PATIENCE {
                return Err(format!("{topic}: what lies before {left:?} does not come"));
            }
        }
        Ok(())
    }

    fn take(&mut self, topic: &'static str, record: &Received) -> Result<(), String> {
        let (partition, offset) = (record.partition.get(), record.offset.get());
        let at = || format!("{topic}-{partition} at offset {offset}");
        let next = self.next.entry((topic, partition)).or_default();
        let may_skip = topic == COMPACTED || topic == TRIMMED;
        if offset < *next || (offset > *next && !may_skip) {
            return Err(format!("{}: offset {next} was to come", at()));
        }
        *next = offset + 1;
        let value = record.value.as_deref().and_then(read_value);
        let (producer, number) = value.ok_or_else(|| format!("{}: not a value of ours", at()))?;
        let seen = self.seen.entry((topic, partition, producer)).or_default();
        match topic {
            TRIMMED | COMPACTED if number != offset as u64 => {
                return Err(format!("{}: record {number}, one of one producer", at()));
            }
            TRIMMED | COMPACTED => *seen = number + 1,
            LOOSE if number < *seen => self.doubled += 1,
            _ if number != *seen => {
                return Err(format!(
                    "{}: producer {producer}'s record {number} where {seen} was to come",
                    at()
                ));
            }
            _ => *seen += 1,
        }
        if topic == COMPACTED {
            let key = record.key.as_deref().and_then(|key| std::str::from_utf8(key).ok()?.parse().ok());
            let key = key.ok_or_else(|| format!("{}: not a key of ours", at()))?;
            self.keys.insert((partition, key), number);
            self.compacted += 1;
        }
        Ok(())
    }

    fn compare(
        &self,
        counts: &BTreeMap<Writer, Count>,
        keys: &BTreeMap<(i32, u64), u64>,
        scope: Scope,
    ) -> Result<(), String> {
        for (writer @ (topic, partition, producer), count) in counts {
            let seen = self.seen.get(writer).copied().unwrap_or(0);
            let of = format!("{topic}-{partition}: producer {producer}");
            if seen < count.acked {
                return Err(format!("{of} had {} records acknowledged, {seen} are there", count.acked));
            }
            if scope == Scope::End && (seen != count.sent || count.acked != count.sent) {
                return Err(format!(
                    "{of} sent {}, {} were acknowledged, {seen} are there",
                    count.sent, count.acked
                ));
            }
        }
        for ((partition, key), acked) in keys {
            let found = self.keys.get(&(*partition, *key));
            if found.is_none_or(|found| found < acked) {
                return Err(format!(
                    "{COMPACTED}-{partition}: key {key} had record {acked} acknowledged, the newest there is {found:?}"
                ));
            }
        }
        Ok(())
    }
}

async fn check_committed(cluster: &mut Cluster, ledger: &Ledger) -> Result<(), String> {
    let wanted = ledger.committed();
    if wanted.is_empty() {
        return Ok(());
    }
    let begun = Instant::now();
    let found = loop {
        match committed(cluster).await {
            Ok(found) => break found,
            Err(error) if error.is_retriable() && begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            Err(error) => return Err(format!("asking for committed offsets: {error}")),
        }
    };
    let sent = ledger.committed();
    for (partition, count) in &wanted {
        let offset = found.get(partition).copied().unwrap_or(-1);
        let least = if count.acked == 0 { -1 } else { count.acked as i64 };
        if offset < least || offset > sent[partition].sent as i64 {
            let (acked, sent) = (count.acked, sent[partition].sent);
            return Err(format!(
                "{KEPT}-{partition}: offset {acked} was committed (and at most {sent} sent), {offset} is told"
            ));
        }
    }
    Ok(())
}

async fn committed(cluster: &mut Cluster) -> Result<BTreeMap<i32, i64>, ClientError> {
    let coordinator = cluster.group_coordinator(GROUP).await?;
    cluster.topic(KEPT, false).await?;
    let topic_id = cluster.topic_id(KEPT).unwrap_or_default();
    let partition_indexes: Vec<i32> = (0..COMMITTED_PARTITIONS).collect();
    let request = |version: i16| match version {
        ..=7 => {
            let topic = OffsetFetchRequestTopic {
                name: KEPT.into(),
                partition_indexes: partition_indexes.clone(),
                ..Default::default()
            };
            OffsetFetchRequest { group_id: GROUP.into(), topics: Some(vec![topic]), ..Default::default() }
        }
        _ => {
            let topic = OffsetFetchRequestTopics {
                name: KEPT.into(),
                topic_id,
                partition_indexes: partition_indexes.clone(),
                ..Default::default()
            };
            let group = OffsetFetchRequestGroup {
                group_id: GROUP.into(),
                member_epoch: -1,
                topics: Some(vec![topic]),
                ..Default::default()
            };
            OffsetFetchRequest { groups: vec![group], ..Default::default() }
        }
    };
    let answer = cluster.ask_with(coordinator, request).await?;
    let code = answer.groups.first().map_or(answer.error_code, |group| group.error_code);
    if code != 0 {
        return Err(ClientError::refused("committed offsets", code, None));
    }
    let mut found = BTreeMap::new();
    for partition in answer.topics.iter().flat_map(|topic| &topic.partitions) {
        found.insert(partition.partition_index, partition.committed_offset);
    }
    for partition in answer.groups.iter().flat_map(|group| &group.topics).flat_map(|topic| &topic.partitions)
    {
        if partition.error_code != 0 {
            return Err(ClientError::refused("committed offsets", partition.error_code, None));
        }
        found.insert(partition.partition_index, partition.committed_offset);
    }
    Ok(found)
}

/// Topics whose making was acknowledged are there, with their records; those whose deletion was are not.
async fn check_topics(cluster: &mut Cluster, ledger: &Ledger) -> Result<(), String> {
    let before = ledger.with_topics(|topics| topics.clone());
    let listed =
        Admin::new(cluster).list_topics().await.map_err(|error| format!("listing topics: {error}"))?;
    let is_listed = |name: &str| listed.iter().any(|(found, _)| found == name);
    // Partitions that were abandoned in the meantime are not checked.
    let still_live = |name: &str| ledger.with_topics(|topics| topics.live.contains_key(name));
    for (name, records) in &before.live {
        if !is_listed(name) {
            if still_live(name) {
                return Err(format!("topic {name} was made, and is not there"));
            }
            continue;
        }
        for partition in [0, 1] {
            let end = cluster.list_offset(name, PartitionIndex(partition), -1).await;
            match end {
                Ok(end) if end.get() >= *records as i64 => {}
                Ok(end) if still_live(name) => {
                    return Err(format!(
                        "{name}-{partition}: {records} records were acknowledged, {end} are there"
                    ));
                }
                Err(error) if still_live(name) => return Err(format!("{name}-{partition}: {error}")),
                _ => {}
            }
        }
    }
    match before.deleted.iter().find(|name| is_listed(name)) {
        Some(name) => Err(format!("topic {name} was deleted, and is there")),
        None => Ok(()),
    }
}

/// Deleted records stay deleted.
async fn check_low(cluster: &mut Cluster, ledger: &Ledger) -> Result<(), String> {
    for (partition, low) in ledger.low() {
        let start = cluster.list_offset(TRIMMED, PartitionIndex(partition), -2).await;
        let start = start.map_err(|error| format!("where {TRIMMED}-{partition} begins: {error}"))?;
        if (start.get() as u64) < low {
            return Err(format!("{TRIMMED}-{partition}: deleted up to {low}, but it begins at {start}"));
        }
    }
    Ok(())
}
