//! The controller: request → (records, response). A function of the working image; the records are what changes it.
//!
//! What it keeps beside the image is soft: when it last heard of which broker ([`brokers`]), and what impairs it from
//! leading ([`impaired`]). After a restart it is learned again.
//!
//! Always true:
//! 1. a refused request, or a part of one, leaves no record
//! 2. replaying an outcome's records on the image that it was decided on succeeds
//! 3. topics of one request become visible together: outcomes are atomic where Kafka's are
//!
//! One file per subject; each names the Kafka class that its order of checks and error codes follow.

mod access;
pub mod brokers;
mod configs;
mod controllers;
mod features;
pub mod impaired;
mod partition_change;
pub mod placement;
mod producer_ids;
mod refusal;
mod replicas;
mod topics;

use std::sync::Arc;

use barnabas_base::{BrokerEpoch, BrokerId, DurationMs, MonotonicMs, Offset, Text};
use barnabas_metadata::config::{BrokerConfig, DynamicConfigs, Properties};
use barnabas_metadata::{Image, Resource, ResourceType, Values};
use barnabas_wire::messages::BrokerRegistrationRequest;
use barnabas_wire::{MetadataRecord, RequestBody, ResponseBody};

use crate::now::Now;
pub use access::scram::credential_record;
use access::tokens::Tokens;
use brokers::Sessions;
use impaired::Impaired;
use partition_change::Electorate;
pub use refusal::Refusal;
use refusal::Sentences;
use refusal::limits::{self, Room};
use replicas::balance::Balance;
use topics::mutations::{Budget, Mutations};

/// The broker that lives in this process.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalBroker {
    pub registration: BrokerRegistrationRequest,
    /// Whether it serves from the first image on. Otherwise it asks for it with a BrokerHeartbeat.
    pub unfenced: bool,
}

/// What the controller is configured with.
#[derive(Debug, Clone)]
pub struct ControllerSettings {
    pub cluster_id: Text,
    /// This node's configuration as its file has it; what is set dynamically is taken from the image.
    pub config: BrokerConfig,
    /// Whether this node enforces ACLs. If it does not, ACLs are neither created nor deleted.
    pub has_authorizer: bool,
}

/// How a request was asked.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The version of the request: some answers depend on it.
    pub version: i16,
    /// Topics (by name) whose configurations the asker may see. `None`: all.
    pub describable: Option<Vec<Text>>,
    /// The client for which a broker asks; `None`: this node asks in its own name.
    pub client: Option<AskingClient>,
}

/// The client behind a request that a broker forwards (KIP-590).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskingClient {
    /// The whole text, such as `User:alice`.
    pub principal: Text,
    pub token_authenticated: bool,
    pub address: std::net::IpAddr,
    /// As it came, not proved.
    pub client_id: Option<Text>,
}

/// What a request comes to.
pub struct Outcome {
    pub records: Vec<MetadataRecord>,
    /// Whether the records must appear together.
    pub atomic: bool,
    /// The level to which the quorum is to raise `kraft.version`, after the records.
    pub kraft_version: Option<i16>,
    pub response: ResponseBody,
    /// The answer if the records turn out to be too many for the cluster's level, or cannot be written.
    pub refused: Box<dyn FnOnce(&str) -> ResponseBody>,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outcome")
            .field("records", &self.records)
            .field("atomic", &self.atomic)
            .field("response", &self.response)
            .finish_non_exhaustive()
    }
}

impl Outcome {
    /// An answer that changes nothing, or whose records may appear one by one and hold only numbers, which can always
    /// be written.
    fn new(records: Vec<MetadataRecord>, response: impl Into<ResponseBody>) -> Self {
        let response = response.into();
        let same = response.clone();
        Self { records, atomic: false, kraft_version: None, response, refused: Box::new(|_| same) }
    }

    fn atomic(
        records: Vec<MetadataRecord>,
        response: impl Into<ResponseBody>,
        refused: impl FnOnce(&str) -> ResponseBody + 'static,
    ) -> Self {
        let response = response.into();
        Self { records, atomic: true, kraft_version: None, response, refused: Box::new(refused) }
    }
}

/// What one request is decided on.
pub(crate) struct Case<'a> {
    pub image: &'a Image,
    pub cluster_id: &'a Text,
    pub has_authorizer: bool,
    /// This node's configuration with the image's dynamic one on top.
    pub config: &'a BrokerConfig,
    pub impaired: &'a Impaired,
    pub room: Room,
    /// The level of `kraft.version`, which is not the image's.
    pub kraft_version: i16,
    /// Why the quorum cannot raise it now.
    pub kraft_kept: Option<&'a str>,
    pub asked: &'a Asked,
    /// Partitions that the client may still create or delete.
    pub budget: Budget,
    /// Where the request's first record will stand: a new broker epoch is this.
    pub next: Offset,
    pub random: &'a mut dyn FnMut() -> [u8; 16],
}

impl<'a> Case<'a> {
    fn electorate(&self) -> Electorate<'a> {
        Electorate::new(self.image, self.config, self.impaired)
    }
}

/// The controller's own state.
#[derive(Debug)]
pub struct Controller {
    me: BrokerId,
    cluster_id: Text,
    has_authorizer: bool,
    config: EffectiveConfig,
    kraft_version: i16,
    kraft_kept: Option<String>,
    sessions: Sessions,
    impaired: Impaired,
    balance: Balance,
    tokens: Tokens,
    mutations: Mutations,
}

/// The configuration that results from the dynamic ones: computed again only when those have changed.
#[derive(Debug)]
struct EffectiveConfig {
    config: BrokerConfig,
    of_all: Option<Arc<Values>>,
    of_me: Option<Arc<Values>>,
}

impl EffectiveConfig {
    fn refresh(&mut self, image: &Image, me: BrokerId) {
        let values = |name: &str| image.configs.of(&Resource::new(ResourceType::Broker, name));
        let (of_all, of_me) = (values(""), values(&me.to_string()));
        let same = |a: Option<&Arc<Values>>, b: Option<&Arc<Values>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        if same(self.of_all.as_ref(), of_all) && same(self.of_me.as_ref(), of_me) {
            return;
        }
        (self.of_all, self.of_me) = (of_all.cloned(), of_me.cloned());
        let plain = |values: &Option<Arc<Values>>| -> Properties {
            let all = values.iter().flat_map(|values| values.iter());
            all.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let dynamic = DynamicConfigs { broker: plain(&self.of_me), default: plain(&self.of_all) };
        self.config = self.config.with_dynamic(dynamic);
    }
}

impl Controller {
    pub fn new(me: BrokerId, settings: ControllerSettings, kraft_version: i16, now: Now) -> Self {
        let ControllerSettings { cluster_id, config, has_authorizer } = settings;
        let timeout = DurationMs(config.long("broker.session.timeout.ms"));
        let sessions = Sessions::new(me, timeout, now.monotonic);
        let balance = Balance::new(&config, now.monotonic);
        let tokens = Tokens::new(&config, now.monotonic);
        let mutations = Mutations::new(&config);
        let config = EffectiveConfig { config, of_all: None, of_me: None };
        Self {
            me,
            cluster_id,
            has_authorizer,
            config,
            kraft_version,
            kraft_kept: None,
            sessions,
            impaired: Impaired::default(),
            balance,
            tokens,
            mutations,
        }
    }

    /// `kept`: why the quorum cannot raise it now; to be told before UpdateFeatures alone.
    pub(crate) fn set_kraft_version(&mut self, level: i16, kept: Option<String>) {
        self.kraft_version = level;
        self.kraft_kept = kept;
    }

    /// Decides a request; `None` where it is not one of the controller's.
    pub fn handle(
        &mut self,
        image: &Image,
        request: &RequestBody,
        asked: &Asked,
        next: Offset,
        now: Now,
        random: &mut dyn FnMut() -> [u8; 16],
    ) -> Option<Outcome> {
        self.config.refresh(image, self.me);
        let config = &self.config.config;
        if let RequestBody::BrokerHeartbeat(request) = request
            && self.impaired.hear(image, request)
        {
            self.balance.replace_impaired_soon(now.monotonic);
        }
        let mut case = Case {
            image,
            cluster_id: &self.cluster_id,
            has_authorizer: self.has_authorizer,
            config,
            impaired: &self.impaired,
            room: Room::new(image, config),
            kraft_version: self.kraft_version,
            kraft_kept: self.kraft_kept.as_deref(),
            asked,
            budget: self.mutations.budget(image, request, asked, now.monotonic),
            next,
            random,
        };
        let outcome = match request {
            RequestBody::CreateTopics(request) => topics::create_topics::create(&mut case, request),
            RequestBody::DeleteTopics(request) => topics::delete_topics::delete(&case, request),
            RequestBody::CreatePartitions(request) => topics::create_partitions::create(&mut case, request),
            RequestBody::AlterConfigs(request) => configs::alter(&mut case, request),
            RequestBody::IncrementalAlterConfigs(request) => configs::incremental_alter(&mut case, request),
            RequestBody::UpdateFeatures(request) => features::update(&case, request),
            RequestBody::ElectLeaders(request) => replicas::elections::elect(&case, request),
            RequestBody::AllocateProducerIds(request) => producer_ids::allocate(&case, request),
            RequestBody::BrokerRegistration(request) => {
                brokers::register(&case, request, &mut self.sessions, now.monotonic)
            }
            RequestBody::BrokerHeartbeat(request) => {
                brokers::heartbeat(&case, request, &mut self.sessions, now.monotonic)
            }
            RequestBody::UnregisterBroker(request) => brokers::unregister(&case, request, &mut self.sessions),
            RequestBody::ControllerRegistration(request) => controllers::register(&case, request),
            RequestBody::UnregisterController(request) => controllers::unregister(&case, request, self.me),
            RequestBody::AlterPartition(request) => replicas::alter_partition::alter(&case, request),
            RequestBody::AlterPartitionReassignments(request) => {
                replicas::reassignments::alter(&case, request)
            }
            RequestBody::AssignReplicasToDirs(request) => replicas::directories::assign(&case, request),
            RequestBody::CreateAcls(request) => access::acls::create(&mut case, request),
            RequestBody::DeleteAcls(request) => access::acls::delete(&case, request),
            RequestBody::AlterClientQuotas(request) => access::client_quotas::alter(&case, request),
            RequestBody::AlterUserScramCredentials(request) => access::scram::alter(&case, request),
            RequestBody::CreateDelegationToken(request) => self.tokens.create(&mut case, request, now.wall),
            RequestBody::RenewDelegationToken(request) => self.tokens.renew(&case, request, now.wall),
            RequestBody::ExpireDelegationToken(request) => self.tokens.expire(&case, request, now.wall),
            _ => return None,
        };
        self.mutations.settle(case.budget);
        if outcome.records.iter().any(configs::allows_unclean_elections) {
            self.balance.elect_uncleanly_soon(now.monotonic);
        }
        Some(outcome)
    }

    /// The records by which the broker of this process takes the place of its predecessor.
    ///
    /// # Errors
    /// Why it cannot be part of this cluster.
    pub(crate) fn take_over(
        &mut self,
        image: &Image,
        local: &LocalBroker,
        next: Offset,
        now: Now,
        random: &mut dyn FnMut() -> [u8; 16],
    ) -> Result<Vec<MetadataRecord>, String> {
        let asked = Asked::default();
        self.config.refresh(image, self.me);
        let config = &self.config.config;
        let case = Case {
            image,
            cluster_id: &self.cluster_id,
            has_authorizer: self.has_authorizer,
            config,
            impaired: &self.impaired,
            room: Room::new(image, config),
            kraft_version: self.kraft_version,
            kraft_kept: None,
            asked: &asked,
            budget: Budget::default(),
            next,
            random,
        };
        brokers::take_over(&case, local, &mut self.sessions, now.monotonic)
    }

    /// Fences a broker whose process is gone.
    pub(crate) fn broker_is_gone(
        &mut self,
        image: &Image,
        id: BrokerId,
        epoch: BrokerEpoch,
    ) -> Vec<MetadataRecord> {
        self.config.refresh(image, self.me);
        let electorate = Electorate::new(image, &self.config.config, &self.impaired);
        brokers::fence_gone(electorate, &mut self.sessions, id, epoch)
    }

    /// Fences brokers that were silent for too long; else removes delegation tokens that have expired; else what is
    /// due for partitions ([`replicas::balance`]).
    pub fn tick(&mut self, image: &Image, now: Now) -> Vec<MetadataRecord> {
        self.config.refresh(image, self.me);
        let electorate = Electorate::new(image, &self.config.config, &self.impaired);
        let mut records = brokers::fence_silent(electorate, &mut self.sessions, now.monotonic);
        if records.is_empty() {
            records = self.tokens.sweep(image, &self.config.config, now);
        }
        // A broker alone leads what it can lead.
        if !records.is_empty() || self.sessions.next_expiry().is_none() {
            return records;
        }
        self.balance.tick(electorate, now.monotonic)
    }

    /// When there may be something for [`Controller::tick`]. `None`: not before a broker is heard of.
    pub fn next_tick(&self) -> Option<MonotonicMs> {
        let of_brokers = self.sessions.next_expiry().map(|at| at.min(self.balance.next_due(&self.impaired)));
        [of_brokers, self.tokens.next_sweep()].into_iter().flatten().min()
    }
}

/// The code and message of a refusal, or of success, where an answer has one. Answers with many: [`Sentences`].
pub(crate) fn error_fields(refusal: Option<&Refusal>) -> (i16, Option<barnabas_wire::Str>) {
    Sentences::default().fields(refusal)
}
