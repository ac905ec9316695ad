//! Brokers: registration, heartbeats, fencing, leaving.
//!
//! The broker in this process is never fenced for being silent: if it hangs, so does this controller. And it takes over
//! from its predecessor at once ([`take_over`]), where Kafka lets a session of 9 s run out first: a predecessor in
//! the same role on the same directory is known to be dead.
//!
//! If a broker that registers again is a partition's only replica, the partition keeps its leader: no other replica
//! could lead in between. On a node with a million partitions Kafka's two changes for each (to no leader, and back)
//! would be two million records at each start.
//!
//! Sources: KIP-631, KIP-841, KIP-966; Kafka `ClusterControlManager`, `BrokerHeartbeatManager`,
//! `ReplicationControlManager.processBrokerHeartbeat`.

use barnabas_base::{BrokerEpoch, BrokerId, DurationMs, ErrorCode, Map, MonotonicMs, Offset, PartitionIndex};
use barnabas_metadata::features::{FEATURES, name};
use barnabas_metadata::snapshot::{broker_record, controller_record};
use barnabas_metadata::{Broker, Controller, Endpoint, FeatureRange, Image, Partition, Topic};
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::{
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationChangeRecord,
    BrokerRegistrationRequest, BrokerRegistrationResponse, UnregisterBrokerRecord, UnregisterBrokerRequest,
    UnregisterBrokerResponse,
};
use std::sync::Arc;

use super::partition_change::{Electorate, PartitionChange};
use super::{Case, LocalBroker, Outcome, Refusal, error_fields, limits};

const FENCE: i8 = 1;
const UNFENCE: i8 = -1;
const IN_CONTROLLED_SHUTDOWN: i8 = 1;
/// How often silence is looked for.
const CHECK_INTERVAL: DurationMs = DurationMs(500);

#[derive(Debug, Clone, Copy)]
struct Session {
    epoch: BrokerEpoch,
    heard: MonotonicMs,
    /// Up to where the broker had read the metadata log.
    offset: Offset,
    /// Where its controlled shutdown was written.
    shutdown_at: Option<Offset>,
}

/// When which broker was last heard of. Not in the log: a new controller starts with everybody just heard of.
#[derive(Debug)]
pub(super) struct Sessions {
    me: BrokerId,
    timeout: DurationMs,
    since: MonotonicMs,
    checked: MonotonicMs,
    by_broker: Map<BrokerId, Session>,
    others: bool,
}

impl Sessions {
    pub fn new(me: BrokerId, timeout: DurationMs, now: MonotonicMs) -> Self {
        // Whether there are others is seen when they are first looked for: who succeeds a controller that is silent may
        // hear of none.
        Self { me, timeout, since: now, checked: now, by_broker: Map::default(), others: true }
    }

    fn touch(&mut self, broker: BrokerId, epoch: BrokerEpoch, offset: Offset, now: MonotonicMs) {
        self.others |= broker != self.me;
        let fresh = Session { epoch, heard: now, offset, shutdown_at: None };
        let session = self.by_broker.entry(broker).or_insert(fresh);
        if session.epoch != epoch {
            *session = fresh;
        }
        session.heard = now;
        session.offset = session.offset.max(offset);
    }

    fn is_live(&self, broker: &Broker, now: MonotonicMs) -> bool {
        let known = self.by_broker.get(&broker.id).filter(|session| session.epoch == broker.epoch);
        known.is_some_and(|session| now.since(session.heard) < self.timeout)
    }

    fn is_silent(&self, broker: &Broker, now: MonotonicMs) -> bool {
        let known = self.by_broker.get(&broker.id).filter(|session| session.epoch == broker.epoch);
        let heard = known.map_or(self.since, |session| session.heard);
        broker.id != self.me && now.since(heard) >= self.timeout
    }

    pub fn next_expiry(&self) -> Option<MonotonicMs> {
        self.others.then(|| self.checked.plus(CHECK_INTERVAL))
    }
}

pub(super) fn register(
    case: &Case<'_>,
    request: &BrokerRegistrationRequest,
    sessions: &mut Sessions,
    now: MonotonicMs,
) -> Outcome {
    let id = BrokerId(request.broker_id);
    let existing = case.image.cluster.broker(id);
    let other_life = existing.filter(|broker| broker.incarnation != request.incarnation_id);
    let registered = match other_life {
        Some(broker) if sessions.is_live(broker, now) => Err(Refusal::new(
            ErrorCode::DuplicateBrokerRegistration,
            format!("broker {id} is registered by another process, which was heard of just now"),
        )),
        _ => registration(case, request),
    };
    match registered {
        Err(refusal) => {
            let response = BrokerRegistrationResponse {
                error_code: refusal.code.code(),
                ..BrokerRegistrationResponse::default()
            };
            Outcome::new(Vec::new(), response)
        }
        Ok((records, broker)) => {
            sessions.touch(id, broker.epoch, Offset::NONE, now);
            let response = BrokerRegistrationResponse {
                broker_epoch: broker.epoch.get(),
                ..BrokerRegistrationResponse::default()
            };
            let refused = |_: &str| {
                let error_code = ErrorCode::InvalidRegistration.code();
                BrokerRegistrationResponse { error_code, ..BrokerRegistrationResponse::default() }.into()
            };
            Outcome {
                records,
                atomic: false,
                kraft_version: None,
                response: response.into(),
                refused: Box::new(refused),
            }
        }
    }
}

/// See [`super::Controller::take_over`].
pub(super) fn take_over(
    case: &Case<'_>,
    local: &LocalBroker,
    sessions: &mut Sessions,
    now: MonotonicMs,
) -> Result<Vec<MetadataRecord>, String> {
    let (mut records, broker) = registration(case, &local.registration).map_err(|refusal| refusal.message)?;
    sessions.touch(broker.id, broker.epoch, case.next, now);
    records.extend(controller_of(case.image, &broker));
    if local.unfenced {
        unfence(case.electorate(), &broker, &mut records);
    }
    Ok(records)
}

/// What the controller of this process supports, where the log still says what another program's did: a directory that
/// Apache Kafka 3.9 left behind would otherwise hold `metadata.version` at 3.9 for good.
fn controller_of(image: &Image, broker: &Broker) -> Option<MetadataRecord> {
    let known = image.cluster.controllers().find(|controller| controller.id == broker.id)?;
    (known.features != broker.features).then(|| {
        let now = Controller {
            incarnation: broker.incarnation,
            features: broker.features.clone(),
            ..Controller::clone(known)
        };
        controller_record(&now)
    })
}

/// The records of a registration, its own one last, and the broker as it will be.
fn registration(
    case: &Case<'_>,
    request: &BrokerRegistrationRequest,
) -> Result<(Vec<MetadataRecord>, Broker), Refusal> {
    let id = BrokerId(request.broker_id);
    let existing = case.image.cluster.broker(id);
    check_registration(case, request)?;
    let same_life = existing.filter(|broker| broker.incarnation == request.incarnation_id);
    let mut log_dirs = request.log_dirs.clone();
    log_dirs.sort_unstable();
    let broker = Broker {
        id,
        epoch: same_life.map_or(BrokerEpoch(case.next.get()), |broker| broker.epoch),
        incarnation: request.incarnation_id,
        endpoints: endpoints(request),
        features: features(case.image, request)?,
        rack: request.rack.as_ref().map(barnabas_wire::Str::text),
        fenced: same_life.is_none_or(|broker| broker.fenced),
        in_controlled_shutdown: same_life.is_some_and(|broker| broker.in_controlled_shutdown),
        is_migrating_zk: false,
        log_dirs: if case.image.metadata_version().has_directories() { log_dirs } else { Vec::new() },
        cordoned_log_dirs: same_life.and_then(|broker| broker.cordoned_log_dirs.clone()),
    };
    let mut records = Vec::new();
    if let Some(existing) = existing
        && same_life.is_none()
    {
        let clean = existing.epoch.get() == request.previous_broker_epoch;
        after_predecessor(case, &broker, clean, &mut records);
    }
    records.push(broker_record(&broker, case.image.metadata_version()));
    Ok((records, broker))
}

fn check_registration(case: &Case<'_>, request: &BrokerRegistrationRequest) -> Result<(), Refusal> {
    let listeners = request.listeners.iter().flat_map(|listener| [&*listener.name, &*listener.host]);
    let features = request.features.iter().map(|feature| &*feature.name);
    let texts = listeners.chain(features).chain(request.rack.as_deref());
    let (log_dirs, features) = (request.log_dirs.len(), request.features.len());
    limits::check_registration(request.listeners.len(), features, log_dirs, texts)?;
    if case.image.cluster.broker(BrokerId(request.broker_id)).is_none() {
        limits::check_new_node(case.config, case.image.cluster.broker_count())?;
    }
    if request.cluster_id != *case.cluster_id {
        return Err(Refusal::new(
            ErrorCode::InconsistentClusterId,
            format!("this is cluster {}, not {}", case.cluster_id, request.cluster_id),
        ));
    }
    if request.is_migrating_zk_broker {
        let message = "brokers of ZooKeeper's time cannot register";
        return Err(Refusal::new(ErrorCode::BrokerIdNotRegistered, message));
    }
    let invalid = |message: String| Err(Refusal::new(ErrorCode::InvalidRegistration, message));
    if case.image.metadata_version().has_directories() {
        if request.log_dirs.is_empty() {
            return invalid("no log directory is named".into());
        }
        let mut seen = barnabas_base::Set::default();
        for dir in &request.log_dirs {
            if dir.0[..15] == [0; 15] && dir.0[15] < 100 {
                return invalid(format!("log directory id {dir} is reserved"));
            }
            if !seen.insert(dir) {
                return invalid(format!("log directory id {dir} is named twice"));
            }
            let owner = case.image.cluster.brokers().find(|broker| broker.log_dirs.contains(dir));
            if let Some(owner) = owner.filter(|owner| owner.id.get() != request.broker_id) {
                return invalid(format!("log directory {dir} belongs to broker {}", owner.id));
            }
        }
    }
    if !request.features.iter().any(|feature| feature.name == *name::METADATA) {
        return invalid("metadata.version is not among the features".into());
    }
    Ok(())
}

fn endpoints(request: &BrokerRegistrationRequest) -> Vec<Endpoint> {
    let endpoint = |listener: &barnabas_wire::messages::broker_registration_request::Listener| Endpoint {
        listener: listener.name.text(),
        host: listener.host.text(),
        port: listener.port,
        security_protocol: listener.security_protocol,
    };
    request.listeners.iter().map(endpoint).collect()
}

/// The broker's features, each of which must cover the level that the cluster is at.
fn features(image: &Image, request: &BrokerRegistrationRequest) -> Result<Vec<FeatureRange>, Refusal> {
    let ranges: Vec<FeatureRange> = request
        .features
        .iter()
        .map(|feature| FeatureRange {
            name: feature.name.text(),
            min: feature.min_supported_version,
            max: feature.max_supported_version,
        })
        .collect();
    for (feature, level) in image.features.all().filter(|(_, level)| *level != 0) {
        let range = ranges.iter().find(|range| range.name == *feature);
        let (min, max) = range.map_or((0, 0), |range| (range.min, range.max));
        if !(min..=max).contains(&level) {
            return Err(Refusal::new(
                ErrorCode::UnsupportedVersion,
                format!(
                    "the cluster is at level {level} of {feature}, and the broker supports {min} to {max}"
                ),
            ));
        }
    }
    Ok(ranges)
}

/// What the death of a broker's former life means for the partitions that it was in sync for.
fn after_predecessor(case: &Case<'_>, broker: &Broker, clean: bool, records: &mut Vec<MetadataRecord>) {
    let unclean = case.image.features.elr_enabled() && !clean;
    let electorate = case.electorate().without(broker.id);
    let is_concerned = |partition: &Partition| {
        let alone = partition.replicas() == [broker.id];
        let stays = alone && partition.directory(broker.id).is_none_or(|at| broker.has_online_directory(at));
        is_of(partition, broker.id) && !stays
    };
    for_each_partition(case.image, is_concerned, |topic, index, partition| {
        let mut change = PartitionChange::new(electorate, topic, index, partition);
        change.target_isr.retain(|&member| member != broker.id);
        change.unclean_shutdown = unclean.then_some(broker.id);
        records.extend(change.build().map(MetadataRecord::from));
    });
}

/// Every partition that `broker` is in sync for, or eligible to lead, in the order of names.
fn for_each_partition_of<'a>(
    image: &'a Image,
    broker: BrokerId,
    each: impl FnMut(&'a Topic, PartitionIndex, &'a Partition),
) {
    for_each_partition(image, |partition| is_of(partition, broker), each);
}

fn is_of(partition: &Partition, broker: BrokerId) -> bool {
    partition.isr().contains(&broker) || partition.elr().contains(&broker)
}

/// Every partition for which `is_concerned` holds, in the order of names. Looks at all of them, but looks up none: at a
/// start with a million topics there is nothing to be done with any.
fn for_each_partition<'a>(
    image: &'a Image,
    is_concerned: impl Fn(&Partition) -> bool,
    mut each: impl FnMut(&'a Topic, PartitionIndex, &'a Partition),
) {
    let has_one = |topic: &&Arc<Topic>| topic.partitions().any(|(_, partition)| is_concerned(partition));
    let mut topics: Vec<&'a Arc<Topic>> = image.topics.by_ids().filter(has_one).collect();
    topics.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    for topic in topics {
        let concerned = topic.partitions().filter(|(_, partition)| is_concerned(partition));
        concerned.for_each(|(index, partition)| each(topic, index, partition));
    }
}

/// `broker` may serve: it is unfenced, and leads what has no leader and what it can lead.
fn unfence(electorate: Electorate<'_>, broker: &Broker, records: &mut Vec<MetadataRecord>) {
    records.push(change(broker, UNFENCE, 0));
    let electorate = electorate.with(broker);
    let is_leaderless = |partition: &Partition| partition.leader == BrokerId::NONE;
    for_each_partition(electorate.image, is_leaderless, |topic, index, partition| {
        let change = PartitionChange::new(electorate, topic, index, partition);
        records.extend(change.build().map(MetadataRecord::from));
    });
}

/// `broker` must not be talked to: it leads nothing, and is in sync for nothing that others are in sync for.
/// With [`IN_CONTROLLED_SHUTDOWN`], because it stops: no broker takes that for a failure.
fn fence(electorate: Electorate<'_>, broker: &Broker, shutdown: i8, records: &mut Vec<MetadataRecord>) {
    without(electorate, broker.id, records);
    records.push(change(broker, FENCE, shutdown));
}

fn without(electorate: Electorate<'_>, broker: BrokerId, records: &mut Vec<MetadataRecord>) {
    let electorate = electorate.without(broker);
    for_each_partition_of(electorate.image, broker, |topic, index, partition| {
        let mut change = PartitionChange::new(electorate, topic, index, partition);
        change.target_isr.retain(|&member| member != broker);
        records.extend(change.build().map(MetadataRecord::from));
    });
}

fn change(broker: &Broker, fenced: i8, in_controlled_shutdown: i8) -> MetadataRecord {
    BrokerRegistrationChangeRecord {
        broker_id: broker.id.get(),
        broker_epoch: broker.epoch.get(),
        fenced,
        in_controlled_shutdown,
        ..BrokerRegistrationChangeRecord::default()
    }
    .into()
}

pub(super) fn heartbeat(
    case: &Case<'_>,
    request: &BrokerHeartbeatRequest,
    sessions: &mut Sessions,
    now: MonotonicMs,
) -> Outcome {
    let broker = match check_epoch(case.image, request.broker_id, request.broker_epoch) {
        Ok(broker) => broker.clone(),
        Err(refusal) => {
            let error_code = refusal.code.code();
            let response = BrokerHeartbeatResponse { error_code, ..BrokerHeartbeatResponse::default() };
            return Outcome::new(Vec::new(), response);
        }
    };
    let offset = Offset(request.current_metadata_offset);
    sessions.touch(broker.id, broker.epoch, offset, now);
    let caught_up = offset.get() >= broker.epoch.get();
    let mut records = Vec::new();
    let leads = || leads_anything_movable(case.image, broker.id);
    let mut fenced = broker.fenced;
    let mut should_shut_down = false;
    if broker.fenced {
        should_shut_down = request.want_shut_down;
        let serves = !request.want_shut_down && !request.want_fence && !broker.in_controlled_shutdown;
        if serves && caught_up {
            unfence(case.electorate(), &broker, &mut records);
            fenced = false;
        }
    } else if broker.in_controlled_shutdown {
        should_shut_down = !leads() && others_have_seen(case.image, sessions, broker.id);
        if should_shut_down {
            fence(case.electorate(), &broker, 0, &mut records);
            fenced = true;
        }
    } else if request.want_shut_down && !request.want_fence && leads() {
        in_controlled_shutdown(case, &broker, sessions, &mut records);
    } else if request.want_shut_down && is_alone(case.image, broker.id) {
        // No other replica could lead its partitions: they keep their leader for when it returns.
        should_shut_down = true;
    } else if request.want_fence || request.want_shut_down {
        let shutdown = if request.want_shut_down { IN_CONTROLLED_SHUTDOWN } else { 0 };
        fence(case.electorate(), &broker, shutdown, &mut records);
        fenced = true;
        should_shut_down = request.want_shut_down;
    }
    if should_shut_down && fenced {
        // It has said goodbye: its next process need not wait until this one would have been missed.
        sessions.by_broker.remove(&broker.id);
    }
    directories(case, &broker, request, &mut records);
    let response = BrokerHeartbeatResponse {
        is_caught_up: caught_up,
        is_fenced: fenced,
        should_shut_down,
        ..BrokerHeartbeatResponse::default()
    };
    Outcome::new(records, response)
}

/// The broker, if it is registered and this is its life.
pub(super) fn check_epoch(image: &Image, id: i32, epoch: i64) -> Result<&std::sync::Arc<Broker>, Refusal> {
    let unknown = || Refusal::new(ErrorCode::StaleBrokerEpoch, format!("broker {id} is not registered"));
    let broker = image.cluster.broker(BrokerId(id)).ok_or_else(unknown)?;
    if broker.epoch.get() != epoch {
        let message = format!("broker {id} is registered at epoch {}, not {epoch}", broker.epoch);
        return Err(Refusal::new(ErrorCode::StaleBrokerEpoch, message));
    }
    Ok(broker)
}

fn is_alone(image: &Image, broker: BrokerId) -> bool {
    image.cluster.alive().all(|other| other.id == broker)
}

/// Whether it leads a partition that another alive replica could lead.
fn leads_anything_movable(image: &Image, broker: BrokerId) -> bool {
    if is_alone(image, broker) {
        return false;
    }
    image.topics.by_ids().any(|topic| topic.partitions().any(|(_, partition)| partition.leader == broker))
}

fn in_controlled_shutdown(
    case: &Case<'_>,
    broker: &Broker,
    sessions: &mut Sessions,
    records: &mut Vec<MetadataRecord>,
) {
    records.push(change(broker, 0, IN_CONTROLLED_SHUTDOWN));
    without(case.electorate(), broker.id, records);
    if let Some(session) = sessions.by_broker.get_mut(&broker.id) {
        session.shutdown_at = Some(case.next);
    }
}

/// Whether every other alive broker has read past the controlled shutdown, so that none sends it requests any more.
fn others_have_seen(image: &Image, sessions: &Sessions, broker: BrokerId) -> bool {
    let Some(at) = sessions.by_broker.get(&broker).and_then(|session| session.shutdown_at) else {
        return true;
    };
    let seen = |other: &Broker| {
        let session = sessions.by_broker.get(&other.id);
        other.id == broker || other.id == sessions.me || session.is_none_or(|session| session.offset >= at)
    };
    image.cluster.brokers().filter(|other| other.is_active()).all(|other| seen(other))
}

/// Directories that failed, or that take no new partitions.
fn directories(
    case: &Case<'_>,
    broker: &Broker,
    request: &BrokerHeartbeatRequest,
    records: &mut Vec<MetadataRecord>,
) {
    let version = case.image.metadata_version();
    let online: Vec<_> =
        broker.log_dirs.iter().filter(|dir| !request.offline_log_dirs.contains(dir)).copied().collect();
    if online.is_empty() && !broker.log_dirs.is_empty() {
        // A registration without directories would read as one that says nothing of them (KIP-858).
        if !broker.fenced && records.is_empty() {
            fence(case.electorate(), broker, 0, records);
        }
        return;
    }
    if version.has_directories() && online.len() != broker.log_dirs.len() {
        let record = BrokerRegistrationChangeRecord {
            broker_id: broker.id.get(),
            broker_epoch: broker.epoch.get(),
            log_dirs: online.clone(),
            ..BrokerRegistrationChangeRecord::default()
        };
        records.push(record.into());
        let hurt = Broker { log_dirs: online, ..broker.clone() };
        let electorate = case.electorate().with(&hurt);
        let is_lost = |partition: &Partition| {
            let directory = partition.directory(broker.id);
            is_of(partition, broker.id) && directory.is_some_and(|at| !hurt.has_online_directory(at))
        };
        for_each_partition(case.image, is_lost, |topic, index, partition| {
            let mut change = PartitionChange::new(electorate, topic, index, partition);
            change.target_isr.retain(|&member| member != broker.id);
            records.extend(change.build().map(MetadataRecord::from));
        });
    }
    if let Some(cordoned) = &request.cordoned_log_dirs
        && version.has_cordoned_log_dirs()
    {
        let mut cordoned = cordoned.clone();
        cordoned.sort_unstable();
        // Who has not said anything of it has cordoned none: that is no news.
        if broker.cordoned_log_dirs.as_deref().unwrap_or_default() != cordoned {
            let record = BrokerRegistrationChangeRecord {
                broker_id: broker.id.get(),
                broker_epoch: broker.epoch.get(),
                cordoned_log_dirs: Some(cordoned),
                ..BrokerRegistrationChangeRecord::default()
            };
            records.push(record.into());
        }
    }
}

pub(super) fn unregister(
    case: &Case<'_>,
    request: &UnregisterBrokerRequest,
    sessions: &mut Sessions,
) -> Outcome {
    let id = BrokerId(request.broker_id);
    let Some(broker) = case.image.cluster.broker(id) else {
        let refusal =
            Refusal::new(ErrorCode::BrokerIdNotRegistered, format!("broker {id} is not registered"));
        let (error_code, error_message) = error_fields(Some(&refusal));
        let response =
            UnregisterBrokerResponse { error_code, error_message, ..UnregisterBrokerResponse::default() };
        return Outcome::new(Vec::new(), response);
    };
    let mut records = Vec::new();
    without(case.electorate(), id, &mut records);
    records.push(
        UnregisterBrokerRecord {
            broker_id: id.get(),
            broker_epoch: broker.epoch.get(),
            ..UnregisterBrokerRecord::default()
        }
        .into(),
    );
    sessions.by_broker.remove(&id);
    let response = UnregisterBrokerResponse { error_message: None, ..UnregisterBrokerResponse::default() };
    Outcome::new(records, response)
}

/// Fences brokers without a heartbeat for the session timeout.
pub(super) fn fence_silent(
    electorate: Electorate<'_>,
    sessions: &mut Sessions,
    now: MonotonicMs,
) -> Vec<MetadataRecord> {
    sessions.checked = now;
    let image = electorate.image;
    sessions.others = image.cluster.brokers().any(|broker| broker.id != sessions.me);
    let mut records = Vec::new();
    let silent = |broker: &&std::sync::Arc<Broker>| !broker.fenced && sessions.is_silent(broker, now);
    // One at a time: a change of one partition for the second must see what was changed for the first.
    if let Some(broker) = image.cluster.brokers().find(silent) {
        fence(electorate, broker, 0, &mut records);
    }
    records
}

/// Fences the broker of this epoch, and forgets its session: its next process may register at once.
pub(super) fn fence_gone(
    electorate: Electorate<'_>,
    sessions: &mut Sessions,
    id: BrokerId,
    epoch: BrokerEpoch,
) -> Vec<MetadataRecord> {
    let mut records = Vec::new();
    let Some(broker) = electorate.image.cluster.broker(id).filter(|broker| broker.epoch == epoch) else {
        return records;
    };
    if id == sessions.me {
        return records;
    }
    sessions.by_broker.remove(&id);
    if !broker.fenced {
        fence(electorate, broker, 0, &mut records);
    }
    records
}

/// The features of a broker of this build, as it registers them.
pub fn supported_features() -> impl Iterator<Item = (&'static str, i16, i16)> {
    FEATURES.iter().map(|feature| (feature.name, feature.min, feature.max))
}
