//! The partition of `__consumer_offsets`: the real shard of groups behind the model's partition, which has judged
//! epochs and words before. A group of each transactional id commits values as its offsets.

use std::collections::BTreeMap;

use barnabas_base::ProducerId;
use barnabas_coordinator::{EndTransaction, GroupConfig, MarkerOrder, Producer, Request, Response};
use barnabas_wire::Str;
use barnabas_wire::messages::TxnOffsetCommitRequest;
use barnabas_wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use barnabas_wire::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};

use super::Bug;
use super::partition::{Value, Written};
use crate::rig::{Logged, Rig};

pub struct Offsets {
    rig: Rig,
    /// Whose each value is.
    ids: BTreeMap<Value, usize>,
}

impl Offsets {
    pub fn new() -> Self {
        Self { rig: Rig::new(GroupConfig::default()), ids: BTreeMap::new() }
    }

    /// A part of a transaction that the partition has taken.
    pub fn commit(&mut self, id: usize, value: Value, producer: i64, epoch: i16) {
        self.ids.insert(value, id);
        let partition = TxnOffsetCommitRequestPartition {
            committed_offset: value as i64,
            ..TxnOffsetCommitRequestPartition::default()
        };
        let topic = TxnOffsetCommitRequestTopic {
            name: Str::from("source"),
            partitions: vec![partition],
            ..TxnOffsetCommitRequestTopic::default()
        };
        let request = TxnOffsetCommitRequest {
            transactional_id: group(id),
            group_id: group(id),
            producer_id: producer,
            producer_epoch: epoch,
            topics: vec![topic],
            ..TxnOffsetCommitRequest::default()
        };
        let Response::TxnOffsetCommit(response) = self.rig.ask(5, Request::TxnOffsetCommit(request)) else {
            panic!("another answer")
        };
        assert_eq!(response.topics[0].partitions[0].error_code, 0);
    }

    /// A marker that the partition has taken.
    pub fn end(&mut self, order: &MarkerOrder, bug: Bug) {
        let end = EndTransaction {
            producer: Producer { id: order.producer_id, epoch: order.producer_epoch },
            commit: order.commit || bug == Bug::AbortedOffsetsShow,
            coordinator_epoch: order.ticket.coordinator_epoch,
            version: order.version,
        };
        self.rig.ask(0, Request::EndTransaction(end));
    }

    /// Another broker takes over.
    pub fn moves(&mut self, bug: Bug) {
        if bug == Bug::PendingOffsetsLost {
            let is_pending = |logged: &Logged| matches!(logged, Logged::Record(producer, _) if *producer != ProducerId::NONE);
            let last_marker = self.rig.log.iter().rposition(|logged| matches!(logged, Logged::Marker(..)));
            let from = last_marker.map_or(0, |at| at + 1);
            let kept: Vec<Logged> = self.rig.log.drain(from..).filter(|logged| !is_pending(logged)).collect();
            self.rig.log.extend(kept);
        }
        self.rig.restart();
    }

    /// What is not as what was written has it: each group's offset is the last that was committed, in the order of the
    /// log, and what is open holds up requests for a stable one.
    pub fn violation(&mut self, log: &[Written]) -> Option<String> {
        let ids: Vec<usize> = self.ids.values().copied().collect();
        for id in ids.into_iter().collect::<std::collections::BTreeSet<usize>>() {
            let own = || log.iter().filter(|written| self.ids.get(&written.value) == Some(&id));
            let committed = own().rev().find(|written| written.committed == Some(true));
            let is_open = own().any(|written| written.committed.is_none());
            let expected = committed.map(|written| written.value as i64).unwrap_or(-1);
            for stable in [false, true] {
                let told = self.told(id, stable);
                let expected = if stable && is_open { None } else { Some(expected) };
                if told != expected {
                    return Some(format!("group {id}, stable {stable}: told {told:?}, not {expected:?}"));
                }
            }
        }
        None
    }

    /// `None`: it is not stable.
    fn told(&mut self, id: usize, require_stable: bool) -> Option<i64> {
        // By name: of all there is, what is open and nothing else is not told.
        let topic = OffsetFetchRequestTopics {
            name: Str::from("source"),
            partition_indexes: vec![0],
            ..OffsetFetchRequestTopics::default()
        };
        let topics = Some(vec![topic]);
        let group =
            OffsetFetchRequestGroup { group_id: group(id), topics, ..OffsetFetchRequestGroup::default() };
        let Response::OffsetFetch(group) = self.rig.ask(9, Request::OffsetFetch { group, require_stable })
        else {
            panic!("another answer")
        };
        match group.topics.iter().flat_map(|topic| &topic.partitions).next() {
            Some(partition) if partition.error_code != 0 => None,
            Some(partition) => Some(partition.committed_offset),
            None => Some(-1),
        }
    }
}

fn group(id: usize) -> Str {
    Str::from(format!("id-{id}"))
}
