//! The nodes, the leaders of partitions, and a connection to each node that was needed.
//!
//! The cached metadata may be old. On `NOT_LEADER_OR_FOLLOWER` or a lost connection, call
//! [`Cluster::forget`] and ask again.

mod coordinators;
mod offsets;

pub use coordinators::Coordinated;
pub use offsets::Committed;

use crate::error::check;
use crate::{ClientError, Connection, Dial, Progress, Security};
use barnabas_base::{BrokerId, ErrorCode, Map, PartitionIndex, TopicId};
use barnabas_wire::Request;
use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use barnabas_wire::messages::{DescribeClusterRequest, MetadataRequest, MetadataResponse};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// DescribeCluster's type of endpoint.
const CONTROLLERS: i8 = 2;

/// How to reach the cluster and how long to try.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// `host:port`, several with commas.
    pub bootstrap: String,
    /// Whether these are controllers (KIP-919): then every question goes to the active one.
    pub is_of_controllers: bool,
    pub client_id: String,
    /// For one request.
    pub request_timeout: Duration,
    /// For what the caller asked for, tries included.
    pub deadline: Duration,
    /// Between two tries.
    pub retry_backoff: Duration,
    /// How connections are protected, and who logs in.
    pub security: Security,
    /// Where what a try ended with is left, if it is tried again.
    pub last_trouble: LastTrouble,
    /// How far the opening of its connections has come.
    pub progress: Progress,
}

/// The error of the last failed attempt, in words, to show while the client retries.
#[derive(Debug, Clone, Default)]
pub struct LastTrouble(Arc<Mutex<Option<String>>>);

impl LastTrouble {
    fn set(&self, error: &ClientError) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }

    /// The error, once: `None` until another attempt fails.
    pub fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// `None`: nothing has failed so far.
    pub fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ClusterConfig {
    pub fn new(bootstrap: &str, client_id: &str) -> Self {
        Self {
            bootstrap: bootstrap.to_owned(),
            is_of_controllers: false,
            client_id: client_id.to_owned(),
            request_timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(60),
            retry_backoff: Duration::from_millis(100),
            security: Security::default(),
            last_trouble: LastTrouble::default(),
            progress: Progress::default(),
        }
    }

    pub(crate) fn dial(&self, buffers: (i32, i32)) -> Dial {
        let (client_id, security) = (self.client_id.clone(), self.security.clone());
        let progress = self.progress.clone();
        Dial { client_id, timeout: self.request_timeout, buffers, security, progress }
    }
}

/// How long one thing has been tried.
#[derive(Debug)]
pub struct Tries {
    what: String,
    started: Instant,
    deadline: Duration,
    backoff: Duration,
    last_trouble: LastTrouble,
}

impl Tries {
    /// Waits before the next try after `error`.
    ///
    /// # Errors
    /// `error` itself where trying again does not cure it; [`ClientError::TimedOut`] when the time is up.
    pub async fn after(&self, error: ClientError) -> Result<(), ClientError> {
        if !error.is_retriable() {
            return Err(error);
        }
        if self.has_more_time_after(&error).await { Ok(()) } else { Err(self.timed_out(&self.what, &error)) }
    }

    /// Waits before the next try. `false`, without a wait: the time is up.
    async fn has_more_time_after(&self, error: &ClientError) -> bool {
        if self.started.elapsed() + self.backoff >= self.deadline {
            return false;
        }
        self.last_trouble.set(error);
        tokio::time::sleep(self.backoff).await;
        true
    }

    fn timed_out(&self, what: &str, last: &ClientError) -> ClientError {
        let after_ms = self.deadline.as_millis() as u64;
        ClientError::TimedOut { what: what.to_owned(), after_ms, last: last.to_string() }
    }
}

/// A client's view of a cluster.
#[derive(Debug)]
pub struct Cluster {
    config: ClusterConfig,
    addresses: Map<BrokerId, String>,
    controller: BrokerId,
    topics: Map<String, MetadataResponseTopic>,
    connections: Map<String, Connection>,
}

impl Cluster {
    pub fn new(config: ClusterConfig) -> Self {
        Self {
            config,
            addresses: Map::default(),
            controller: BrokerId::NONE,
            topics: Map::default(),
            connections: Map::default(),
        }
    }

    /// Another view of the same cluster, which knows the same nodes.
    pub fn with_new_connections(&self) -> Self {
        let addresses = self.addresses.clone();
        Self { addresses, ..Self::new(self.config.clone()) }
    }

    pub fn config(&self) -> &ClusterConfig {
        &self.config
    }

    /// Asks any node about `topics` (all topics where `None`) and remembers the answer.
    ///
    /// # Errors
    /// No node could be asked, or every one that was asked answered with an error.
    pub async fn refresh(
        &mut self,
        topics: Option<&[&str]>,
        create: bool,
    ) -> Result<MetadataResponse, ClientError> {
        let answer = self.metadata(topics, create).await?;
        for topic in &answer.topics {
            if let Some(name) = &topic.name {
                self.topics.insert(name.to_string(), topic.clone());
            }
        }
        Ok(answer)
    }

    /// [`Self::refresh`] that remembers the nodes alone: for who asks about many topics, and keeps this for long.
    ///
    /// # Errors
    /// As [`Self::refresh`].
    pub async fn metadata(
        &mut self,
        topics: Option<&[&str]>,
        create: bool,
    ) -> Result<MetadataResponse, ClientError> {
        let named = |name: &&str| MetadataRequestTopic { name: Some((*name).into()), ..Default::default() };
        let request = MetadataRequest {
            topics: topics.map(|names| names.iter().map(named).collect()),
            allow_auto_topic_creation: create,
            ..Default::default()
        };
        let answer = self.ask_first(|_| request.clone()).await?;
        check("asking for metadata", answer.error_code, None)?;
        for broker in &answer.brokers {
            self.addresses.insert(BrokerId(broker.node_id), format!("{}:{}", &*broker.host, broker.port));
        }
        self.controller = BrokerId(answer.controller_id);
        Ok(answer)
    }

    /// Sends `request` to the first node that can be reached: those that are known, then the bootstrap addresses.
    ///
    /// # Errors
    /// What the last node that was tried ended with.
    pub async fn ask_any<R: Request + Clone>(&mut self, request: &R) -> Result<R::Response, ClientError> {
        self.ask_any_with(|_| request.clone()).await
    }

    /// [`Self::ask_any`] for a request that looks different from version to version.
    ///
    /// # Errors
    /// As [`Self::ask_any`].
    pub async fn ask_any_with<R: Request>(
        &mut self,
        make: impl Fn(i16) -> R,
    ) -> Result<R::Response, ClientError> {
        if self.config.is_of_controllers {
            return self.ask_controller(make).await;
        }
        self.ask_first(make).await
    }

    async fn ask_first<R: Request>(&mut self, make: impl Fn(i16) -> R) -> Result<R::Response, ClientError> {
        let bootstrap = self.config.bootstrap.split(',').map(|address| address.trim().to_owned());
        let mut candidates: Vec<String> = self.connections.keys().cloned().collect();
        candidates.extend(self.addresses.values().cloned());
        candidates.extend(bootstrap.filter(|address| !address.is_empty()));
        let mut last = ClientError::Invalid("no address is known to begin with".to_owned());
        for address in candidates {
            match self.call(&address, &make).await {
                Ok(answer) => return Ok(answer),
                Err(error @ (ClientError::Unreachable { .. } | ClientError::Lost { .. })) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Sends `request` to the node at `address`, over the connection that is there or a new one.
    async fn call<R: Request>(
        &mut self,
        address: &str,
        make: impl Fn(i16) -> R,
    ) -> Result<R::Response, ClientError> {
        let answer = self.connection(address).await?.call_with(make).await;
        if matches!(answer, Err(ClientError::Lost { .. } | ClientError::Garbled { .. })) {
            self.connections.remove(address);
        }
        answer
    }

    async fn connection(&mut self, address: &str) -> Result<&mut Connection, ClientError> {
        if !self.connections.contains_key(address) {
            let connection = Connection::open_with(address, &self.config.dial((-1, -1))).await?;
            self.connections.insert(address.to_owned(), connection);
        }
        Ok(self.connections.get_mut(address).expect("it was put there just now"))
    }

    /// Sends `request` to `node`.
    ///
    /// # Errors
    /// The node is unknown, or what the call ended with.
    pub async fn ask<R: Request + Clone>(
        &mut self,
        node: BrokerId,
        request: &R,
    ) -> Result<R::Response, ClientError> {
        self.ask_with(node, |_| request.clone()).await
    }

    /// [`Self::ask`] for a request that looks different from version to version.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_with<R: Request>(
        &mut self,
        node: BrokerId,
        make: impl Fn(i16) -> R,
    ) -> Result<R::Response, ClientError> {
        let address = self.address(node)?.to_owned();
        self.call(&address, make).await
    }

    /// [`Self::ask_with`], again while `code` reads a code from the answer that a later try may cure.
    ///
    /// # Errors
    /// The refusal, named by `what`; [`ClientError::TimedOut`] after the deadline.
    pub async fn ask_until_answered<R: Request>(
        &mut self,
        node: BrokerId,
        what: &str,
        make: impl Fn(i16) -> R,
        code: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, ClientError> {
        let tries = self.tries(what);
        loop {
            let asked = self.ask_with(node, &make).await;
            match asked.and_then(|answer| check(what, code(&answer), None).map(|()| answer)) {
                Ok(answer) => return Ok(answer),
                Err(error) => tries.after(error).await?,
            }
        }
    }

    /// Sends a request that has no response.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn tell<R: Request>(&mut self, node: BrokerId, request: &R) -> Result<(), ClientError> {
        let address = self.address(node)?.to_owned();
        let told = self.connection(&address).await?.send_only(request).await;
        if told.is_err() {
            self.connections.remove(&address);
        }
        told
    }

    /// Sends `request`, which the node may hold back for `patience`.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_patiently<R: Request>(
        &mut self,
        node: BrokerId,
        request: &R,
        patience: Duration,
    ) -> Result<R::Response, ClientError> {
        let address = self.address(node)?.to_owned();
        let answer = self.connection(&address).await?.call_patiently(request, patience).await;
        if matches!(answer, Err(ClientError::Lost { .. } | ClientError::Garbled { .. })) {
            self.connections.remove(&address);
        }
        answer
    }

    /// Sends `request` to the controller that Metadata names.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_controller<R: Request>(
        &mut self,
        make: impl Fn(i16) -> R,
    ) -> Result<R::Response, ClientError> {
        if self.controller == BrokerId::NONE {
            self.find_controller().await?;
        }
        let answer = self.ask_with(self.controller, make).await;
        if matches!(answer, Err(ClientError::Unreachable { .. } | ClientError::Lost { .. })) {
            // Another node may pass it on.
            self.controller = BrokerId::NONE;
        }
        answer
    }

    /// Brokers may know none for now; the request then says so. Of controllers one is waited for.
    async fn find_controller(&mut self) -> Result<(), ClientError> {
        let what = "finding the active controller";
        let tries = self.tries(what);
        loop {
            self.nodes().await?;
            if self.controller != BrokerId::NONE || !self.config.is_of_controllers {
                return Ok(());
            }
            let code = ErrorCode::LeaderNotAvailable.code();
            tries.after(ClientError::refused(what, code, None)).await?;
        }
    }

    /// The nodes there are, in order: brokers or, where the bootstrap addresses are controllers, those.
    ///
    /// # Errors
    /// No node could be asked, or the one that was asked is of the other kind.
    ///
    /// # Source
    /// KIP-919.
    pub async fn nodes(&mut self) -> Result<Vec<BrokerId>, ClientError> {
        let mut nodes: Vec<BrokerId> = if self.config.is_of_controllers {
            let request = DescribeClusterRequest { endpoint_type: CONTROLLERS, ..Default::default() };
            let answer = self.ask_first(|_| request.clone()).await?;
            check("asking for the controllers", answer.error_code, answer.error_message.as_deref())?;
            for node in &answer.brokers {
                self.addresses.insert(BrokerId(node.broker_id), format!("{}:{}", &*node.host, node.port));
            }
            self.controller = BrokerId(answer.controller_id);
            answer.brokers.iter().map(|node| BrokerId(node.broker_id)).collect()
        } else {
            let answer = self.refresh(Some(&[]), false).await?;
            answer.brokers.iter().map(|node| BrokerId(node.node_id)).collect()
        };
        nodes.sort_unstable();
        Ok(nodes)
    }

    /// The address of a node that an answer has named: `host:port`.
    ///
    /// # Errors
    /// `BROKER_NOT_AVAILABLE`: no answer has named it.
    pub fn address(&self, node: BrokerId) -> Result<&str, ClientError> {
        let unknown =
            || ClientError::refused(format!("node {node}"), ErrorCode::BrokerNotAvailable.code(), None);
        self.addresses.get(&node).map(String::as_str).ok_or_else(unknown)
    }

    /// The cached metadata of a topic; asks the cluster if there is none.
    ///
    /// # Errors
    /// The topic's own error, `UNKNOWN_TOPIC_OR_PARTITION` for instance.
    pub async fn topic(&mut self, name: &str, create: bool) -> Result<&MetadataResponseTopic, ClientError> {
        let is_known = self.topics.get(name).is_some_and(|topic| topic.error_code == 0);
        if !is_known {
            self.refresh(Some(&[name]), create).await?;
        }
        let missing = || ClientError::refused(name, ErrorCode::UnknownTopicOrPartition.code(), None);
        let topic = self.topics.get(name).ok_or_else(missing)?;
        check(format!("topic {name}"), topic.error_code, None)?;
        Ok(topic)
    }

    /// What was told of a topic last, if anything.
    pub fn known_topic(&self, name: &str) -> Option<&MetadataResponseTopic> {
        self.topics.get(name)
    }

    /// Every node that was told of, with its address.
    pub fn addresses(&self) -> impl Iterator<Item = (BrokerId, String)> + '_ {
        self.addresses.iter().map(|(node, address)| (*node, address.clone()))
    }

    /// The node that leads a partition.
    ///
    /// # Errors
    /// The topic's or the partition's error; `LEADER_NOT_AVAILABLE` if the partition has no leader.
    pub async fn leader(&mut self, topic: &str, partition: PartitionIndex) -> Result<BrokerId, ClientError> {
        leader_of(self.topic(topic, false).await?, topic, partition)
    }

    /// The topic's id, if the cluster gave one.
    pub fn topic_id(&self, topic: &str) -> Option<TopicId> {
        self.topics.get(topic).map(|known| known.topic_id).filter(|id| !id.is_zero())
    }

    /// Drops the cached metadata of a topic: the next use asks the cluster again.
    pub fn forget(&mut self, topic: &str) {
        self.topics.remove(topic);
    }

    /// A count of tries at one thing the caller asked for.
    pub fn tries(&self, what: impl Into<String>) -> Tries {
        let ClusterConfig { deadline, retry_backoff, last_trouble, .. } = &self.config;
        Tries {
            what: what.into(),
            started: Instant::now(),
            deadline: *deadline,
            backoff: *retry_backoff,
            last_trouble: last_trouble.clone(),
        }
    }
}

fn leader_of(
    known: &MetadataResponseTopic,
    topic: &str,
    partition: PartitionIndex,
) -> Result<BrokerId, ClientError> {
    check(format!("topic {topic}"), known.error_code, None)?;
    let found = known.partitions.iter().find(|candidate| candidate.partition_index == partition.get());
    let code = match found.map(|candidate| candidate.leader_id) {
        Some(leader) if leader >= 0 => return Ok(BrokerId(leader)),
        Some(_) => ErrorCode::LeaderNotAvailable,
        None => ErrorCode::UnknownTopicOrPartition,
    };
    Err(ClientError::refused(format!("{topic}-{partition}"), code.code(), None))
}
