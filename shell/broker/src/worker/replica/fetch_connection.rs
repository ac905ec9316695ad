//! A fetcher's connection to its leader: asks, and reports what is answered to the worker that owns the fetcher.
//!
//! One for each fetcher ([`FetcherId`]) of each worker, on the worker's own thread: what a leader sends is appended by
//! the thread that reads it. It knows no partition; what is asked and what an answer means is decided in
//! core/partition's `fetcher`.
//!
//! Neighbours: partition_worker/replica_fetcher.rs and partition_worker/replication/aside.rs, which ask and hear;
//! shell/net/src/links.rs, the connection itself.

use crate::mailbox::ReplicationEvent;
use crate::mailbox::{Mailbox, Report};
use crate::worker::replica::fetch_settings::FetchSettings;
use barnabas_api::replication::{fetch, list_offsets};
use barnabas_base::{DurationMs, ErrorCode, Offset, Text};
use barnabas_net::links::{Address, Link, LinkError, LinkLogin, LinkSettings};
use barnabas_partition::{FetchPlan, FetchPosition, FetcherId, PartitionKey};
use barnabas_tls::ClientTls;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// The oldest version of Fetch that names topics by id, and logs that part in its answer.
const FETCH_MIN: i16 = 13;
/// On top of what an answer's bound says: a batch that is larger than it, and everything that is no record.
const ANSWER_SLACK_BYTES: usize = 128 << 20;

/// What the leader sees, and what log lines name.
fn client_id(at: FetcherId) -> String {
    if at.is_bulk() {
        "replica-fetcher-catch-up".to_owned()
    } else {
        format!("replica-fetcher-{}", at.number)
    }
}

#[derive(Debug)]
pub struct FetcherConnection {
    link: Link,
    at: FetcherId,
    mailbox: Mailbox,
}

impl FetcherConnection {
    /// Connects with the first question. To be called on the worker's thread.
    pub fn open(
        address: Address,
        at: FetcherId,
        settings: &FetchSettings,
        (tls, login): (Option<Arc<ClientTls>>, Option<LinkLogin>),
        mailbox: Mailbox,
    ) -> Self {
        let settings = LinkSettings {
            in_flight_max: 4,
            queue_max: 64,
            timeout: settings.timeout,
            login,
            answer_bytes_max: settings.answer_bytes_max() + ANSWER_SLACK_BYTES,
            tls,
            ..LinkSettings::new(&client_id(at))
        };
        Self { link: Link::start(&Handle::current(), address, settings), at, mailbox }
    }

    pub fn address(&self) -> &Address {
        self.link.address()
    }

    /// Fetches; [`ReplicationEvent::Fetched`] follows.
    pub fn fetch(&self, follower: fetch::Follower, plan: FetchPlan, timeout: Duration) {
        let (link, mailbox, at) = (self.link.clone(), self.mailbox.clone(), self.at);
        let patience = timeout + Duration::from_millis(u64::try_from(follower.wait_max.0).unwrap_or(0));
        tokio::task::spawn_local(async move {
            let make = move |version| {
                (version >= FETCH_MIN).then(|| {
                    let asks = plan.partitions.iter().map(|(key, at)| ask(key, at));
                    let forgotten = plan.forgotten.iter().map(|key| (key.topic, key.partition));
                    fetch::request(&follower, version, (plan.session.id, plan.session.epoch), asks, forgotten)
                })
            };
            let answer = link.send_with(patience, make).await.map(Box::new);
            mailbox.report(Report::Replication(ReplicationEvent::Fetched { at, answer }));
        });
    }

    /// Asks for damaged records without acknowledging anything; [`ReplicationEvent::Aside`] follows.
    pub fn fetch_aside(
        &self,
        follower: fetch::Follower,
        key: PartitionKey,
        asked: FetchPosition,
        timeout: Duration,
    ) {
        let (link, mailbox) = (self.link.clone(), self.mailbox.clone());
        tokio::task::spawn_local(async move {
            let make = move |version| {
                (version >= FETCH_MIN).then(|| fetch::repair_request(&follower, &ask(&key, &asked)))
            };
            let answer = link.send_with(timeout, make).await.map_or_else(
                |error| {
                    tracing::debug!(%error, "a leader did not answer a fetch of damaged records");
                    Err(ErrorCode::NetworkException)
                },
                |response| match ErrorCode::from_code(response.error_code) {
                    ErrorCode::None => fetch::answers(response).next().ok_or(ErrorCode::UnknownServerError),
                    error => Err(error),
                },
            );
            mailbox.report(Report::Replication(ReplicationEvent::Aside { key, asked, answer }));
        });
    }

    /// Asks where the leader's log starts and ends; [`ReplicationEvent::Ends`] follows.
    pub fn find_ends(
        &self,
        follower: &fetch::Follower,
        key: PartitionKey,
        topic: Text,
        asked: FetchPosition,
    ) {
        let (link, mailbox) = (self.link.clone(), self.mailbox.clone());
        let (broker, wait) = (follower.broker, DurationMs(0));
        let ask = move |end| {
            let (topic, partition, leader_epoch) = (topic.clone(), key.partition, asked.leader_epoch);
            let ask = list_offsets::Ask { topic, partition, leader_epoch };
            list_offsets::request(broker, end, wait, [ask])
        };
        tokio::task::spawn_local(async move {
            let start = link.send(ask(list_offsets::End::Start)).await.map_or_else(lost, only);
            let end = link.send(ask(list_offsets::End::End)).await.map_or_else(lost, only);
            let ends = start.and_then(|start| Ok((start, end?)));
            mailbox.report(Report::Replication(ReplicationEvent::Ends { key, asked, ends }));
        });
    }
}

fn lost(error: LinkError) -> Result<Offset, ErrorCode> {
    tracing::debug!(%error, "a leader did not say where its log starts or ends");
    Err(ErrorCode::NetworkException)
}

fn only(response: barnabas_wire::messages::ListOffsetsResponse) -> Result<Offset, ErrorCode> {
    list_offsets::answers(response).next().map_or(Err(ErrorCode::UnknownServerError), |answer| answer.result)
}

fn ask(key: &PartitionKey, at: &FetchPosition) -> fetch::Ask {
    fetch::Ask {
        topic: key.topic,
        partition: key.partition,
        leader_epoch: at.leader_epoch,
        offset: at.offset,
        last_epoch: at.last_epoch,
        log_start: at.log_start,
        high_watermark: at.high_watermark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::BrokerId;

    #[test]
    fn fetcher_for_what_is_not_in_sync_has_a_name() {
        let names =
            [0, 1, FetcherId::BULK].map(|number| client_id(FetcherId { leader: BrokerId(2), number }));
        assert_eq!(names, ["replica-fetcher-0", "replica-fetcher-1", "replica-fetcher-catch-up"]);
    }
}
