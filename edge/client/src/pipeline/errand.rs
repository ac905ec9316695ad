//! The producer's requests for metadata (leaders of partitions) and for its producer id.
//!
//! One request at a time, polled with everything else. A failed request is sent again after
//! `retry.backoff.ms`.

use super::PipelinedProducer;
use super::batch::Identity;
use super::lane::Lane;
use super::link::Link;
use crate::error::check;
use crate::{ClientError, Cluster};
use barnabas_base::{BrokerId, ErrorCode, PartitionIndex, ProducerEpoch, ProducerId};
use barnabas_wire::messages::InitProducerIdRequest;
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

enum Told {
    Metadata(Result<(), ClientError>),
    Identity(Result<Identity, ClientError>),
}

type Asking = Pin<Box<dyn Future<Output = (Cluster, Told)>>>;

/// The cluster, or the question that has it.
pub(super) struct Errands {
    cluster: Option<Cluster>,
    asking: Option<Asking>,
    pub wants_metadata: bool,
    not_before: Instant,
    /// When the metadata expires.
    pub stale_at: Instant,
}

impl std::fmt::Debug for Errands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Errands {{ asking: {}, wants_metadata: {} }}", self.asking.is_some(), self.wants_metadata)
    }
}

impl Errands {
    pub fn new(cluster: Cluster, stale_at: Instant) -> Self {
        let not_before = Instant::now();
        Self { cluster: Some(cluster), asking: None, wants_metadata: false, not_before, stale_at }
    }

    pub fn timer(&self, wants_identity: bool) -> Option<Instant> {
        let is_wanted = self.wants_metadata || wants_identity;
        if self.asking.is_some() {
            None
        } else {
            Some(if is_wanted { self.not_before } else { self.stale_at })
        }
    }
}

/// Asks for a new producer id.
pub(super) async fn identity(cluster: &mut Cluster) -> Result<Identity, ClientError> {
    let request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: i32::MAX,
        ..Default::default()
    };
    let answer = cluster.ask_any(&request).await?;
    check("getting a producer id", answer.error_code, None)?;
    Ok(Identity { id: ProducerId(answer.producer_id), epoch: ProducerEpoch(answer.producer_epoch) })
}

impl PipelinedProducer {
    /// Sends the request that is needed and processes its answer.
    pub(super) fn poll_errands(&mut self, cx: &mut Context<'_>, now: Instant) -> Result<(), ClientError> {
        if now >= self.errands.stale_at {
            self.errands.wants_metadata = true;
        }
        let wants_identity = self.is_renewing && self.is_silent();
        if self.errands.asking.is_none() && now >= self.errands.not_before {
            if wants_identity {
                self.ask(async move |cluster: &mut Cluster, _| Told::Identity(identity(cluster).await));
            } else if self.errands.wants_metadata {
                self.counters.metadata += 1;
                self.ask(async move |cluster: &mut Cluster, topic: String| {
                    cluster.forget(&topic);
                    Told::Metadata(cluster.topic(&topic, false).await.map(drop))
                });
            }
        }
        let Some(asking) = &mut self.errands.asking else { return Ok(()) };
        let Poll::Ready((cluster, told)) = asking.as_mut().poll(cx) else { return Ok(()) };
        self.errands.asking = None;
        self.errands.cluster = Some(cluster);
        // Refused batches may need one new id after the other: that is no retry.
        let has_identity = matches!(told, Told::Identity(Ok(_)));
        self.errands.not_before = if has_identity { now } else { now + self.config.retry_backoff };
        match told {
            Told::Metadata(Ok(())) => {
                self.errands.wants_metadata = false;
                self.errands.stale_at = now + self.config.metadata_age_max;
                self.troubles.end(None);
                self.learn_from_cluster()?;
                self.note_leaderless(now);
            }
            Told::Identity(Ok(identity)) => {
                self.troubles.end(None);
                self.renumber(identity);
            }
            Told::Metadata(Err(error)) | Told::Identity(Err(error)) => {
                self.last_error = error.to_string();
                self.troubles.note([None], None, &error, now);
            }
        }
        Ok(())
    }

    /// Every partition with something to send and no leader.
    fn note_leaderless(&mut self, now: Instant) {
        let waits = |lane: &&Lane| lane.leader.is_none() && !lane.is_empty();
        if !self.lanes.iter().any(|lane| waits(&lane)) {
            return;
        }
        let lanes = self.lanes.iter().enumerate().filter(|(_, lane)| waits(lane));
        let places: Vec<_> = lanes.map(|(index, _)| Some(PartitionIndex(index as i32))).collect();
        let code = ErrorCode::LeaderNotAvailable.code();
        let error = ClientError::refused(&*self.topic.name, code, None);
        self.troubles.note(places, None, &error, now);
    }

    fn ask<F>(&mut self, question: F)
    where
        F: AsyncFnOnce(&mut Cluster, String) -> Told + 'static,
    {
        let Some(mut cluster) = self.errands.cluster.take() else { return };
        let topic = self.topic.name.to_string();
        self.errands.asking = Some(Box::pin(async move {
            let told = question(&mut cluster, topic).await;
            (cluster, told)
        }));
    }

    /// Nothing is under way anywhere.
    fn is_silent(&self) -> bool {
        self.links.iter().all(|link| link.in_flight.is_empty())
    }

    /// Gives all waiting batches new sequences from 0, under `identity`.
    fn renumber(&mut self, identity: Identity) {
        self.identity = Some(identity);
        self.is_renewing = false;
        for partition in 0..self.lanes.len() {
            self.lanes[partition].unnumber();
            if self.lanes[partition].has_waiting() {
                self.list(partition);
            }
        }
    }

    /// Takes the leaders from the cached metadata.
    pub(super) fn learn_from_cluster(&mut self) -> Result<(), ClientError> {
        let Some(cluster) = &self.errands.cluster else { return Ok(()) };
        let Some(topic) = cluster.known_topic(&self.topic.name) else { return Ok(()) };
        let (id, leaders) = (topic.topic_id, leaders(topic));
        let addresses: Vec<(BrokerId, String)> = cluster.addresses().collect();
        if leaders.is_empty() {
            return Err(ClientError::Invalid(format!("topic {} has no partition", &*self.topic.name)));
        }
        if !self.topic.id.is_zero() && id != self.topic.id {
            // The topic was deleted and created again, so the broker does not know our sequences.
            self.is_renewing = self.identity.is_some();
        }
        self.topic.id = id;
        for (node, address) in addresses {
            match self.links.iter_mut().find(|link| link.node == node) {
                Some(link) => link.address = address,
                None => self.links.push(Link::new(node, address, &self.config)),
            }
        }
        if leaders.len() > self.lanes.len() {
            self.lanes.resize_with(leaders.len(), Lane::default);
        }
        for link in &mut self.links {
            link.ready.clear();
        }
        for partition in 0..self.lanes.len() {
            let leader = leaders.get(partition).copied().flatten();
            let link = leader.and_then(|node| self.links.iter().position(|link| link.node == node));
            self.lanes[partition].leader = link;
            self.lanes[partition].is_listed = false;
            // An open batch comes back with its linger; looking at it once too often costs nothing.
            if !self.lanes[partition].is_empty() {
                self.list(partition);
            }
        }
        Ok(())
    }
}

/// By partition.
fn leaders(topic: &MetadataResponseTopic) -> Vec<Option<BrokerId>> {
    let count = topic.partitions.iter().map(|partition| partition.partition_index + 1).max().unwrap_or(0);
    let mut leaders = vec![None; count as usize];
    for partition in &topic.partitions {
        let leader = (partition.leader_id >= 0).then_some(BrokerId(partition.leader_id));
        leaders[partition.partition_index as usize] = leader;
    }
    leaders
}
