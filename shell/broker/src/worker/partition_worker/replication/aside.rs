//! Damaged replicas that wait, and those that have to stay in the ISR: they fetch damaged places as a consumer does,
//! beside their own fetches. core/replica/src/replica/repair/aside.rs decides.
//!
//! Neighbours: repair.rs; worker/replica/aside.rs, which counts; worker/replica/fetch_connection.rs, which fetches.

use crate::mailbox::PartitionKey;
use crate::worker::partition_worker::PartitionWorker;
use barnabas_api::replication::fetch;
use barnabas_base::{BrokerId, ErrorCode, Offset};
use barnabas_partition::FetchPosition;

impl PartitionWorker {
    /// Nothing can be done for a damaged replica now: it is looked at again soon, if it follows.
    pub(super) fn repair_later(&mut self, key: PartitionKey) {
        let follows = |replica: &crate::worker::replica::Hosted| {
            replica.following.is_some() && replica.repair.is_under_way()
        };
        if self.replicas.get(&key).is_some_and(follows) {
            let now = self.node.clock.monotonic();
            self.following.aside.wait(key, now);
        }
    }

    /// Looks at those that have waited long enough.
    pub fn repair_some(&mut self) {
        let now = self.node.clock.monotonic();
        for key in self.following.aside.take_due(now) {
            self.repair(key);
        }
    }

    /// Fetches what is damaged at `from`, unless that is under way or has just been tried.
    pub(super) fn fetch_aside(&mut self, key: PartitionKey, from: Offset) {
        let now = self.node.clock.monotonic();
        if !self.following.aside.may_ask(key, now) {
            return;
        }
        let Some(replica) = self.replicas.get(&key) else { return };
        let Some((asked, (leader, _))) = replica.aside_position(from).zip(replica.following) else { return };
        match self.ask_aside(leader, key, asked) {
            true => {
                self.following.aside.waits_until.remove(&key);
                self.following.aside.in_flight.insert(key);
            }
            false => self.following.aside.wait(key, now),
        }
    }

    /// The leader has answered, or there is no answer.
    pub fn fetched_aside(
        &mut self,
        key: PartitionKey,
        asked: &FetchPosition,
        answer: Result<fetch::Answer, ErrorCode>,
    ) {
        let now = self.node.clock.monotonic();
        self.following.aside.in_flight.remove(&key);
        let Self { replicas, files, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let error = match answer {
            Ok(answer) if answer.error == ErrorCode::None && answer.diverging.is_none() => {
                let is_empty = answer.records.is_empty();
                let files = &mut files[replica.directory];
                match replica.take_aside(asked, answer.records, files) {
                    Ok(both) => self.warn_of_both(key, both),
                    Err(error) => return self.mend_failed(key, &error),
                }
                if is_empty {
                    self.following.aside.wait(key, now);
                }
                return self.repair(key);
            }
            // The answer to its next fetch shows where the logs part.
            Ok(answer) if answer.error == ErrorCode::None => ErrorCode::UnknownLeaderEpoch,
            Ok(answer) => answer.error,
            Err(error) => error,
        };
        if error == ErrorCode::CorruptMessage {
            let both = replica.leader_is_damaged_aside(asked);
            self.node.workers.meter.fetches_damaged.one();
            self.warn_of_both(key, both);
        } else {
            self.warn_of_refusal(key, asked.offset, error);
            self.following.aside.wait(key, now);
        }
        self.repair(key);
    }

    fn warn_of_refusal(&self, key: PartitionKey, from: Offset, error: ErrorCode) {
        let Some(replica) = self.replicas.get(&key) else { return };
        let leader = replica.following.map_or(BrokerId::NONE, |(leader, _)| leader);
        let (partition, broker) = (&replica.name.topic_partition, self.node.identity.broker_id);
        if error != ErrorCode::TopicAuthorizationFailed {
            tracing::debug!(%partition, %leader, %error, "damaged records from offset {from} are asked for again");
            return;
        }
        let Some(unsaid) = self.following.refused_repairs.happened(&key, barnabas_clock::now()) else {
            return;
        };
        tracing::warn!(
            %partition, %broker, %leader,
            "the replica is corrupt from offset {from} and has to stay in the ISR; its leader does not let this \
             broker read the records: grant the brokers' principal READ on the topic{unsaid}"
        );
    }
}
