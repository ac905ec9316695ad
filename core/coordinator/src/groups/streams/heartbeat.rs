//! StreamsGroupHeartbeat of a member that joins or stays.
//!
//! 1. who is it, and may it come now
//! 2. what does it say of itself, and what topology does it bring: the first one founds the group's, another one is
//!    refused
//! 3. do the topics fit: source topics are there, copartitioned ones agree, internal ones are there or are to be made
//! 4. whatever makes a difference to the target raises the group's epoch
//! 5. target, and the member's next step towards it
//!
//! Everything that can be refused is refused before anything has changed.
//!
//! # Source
//! KIP-1071; Kafka 4.4 `GroupMetadataManager.streamsGroupHeartbeat`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{ErrorCode, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::streams_group_heartbeat_request as request;
use barnabas_wire::messages::streams_group_heartbeat_response::{Status, TaskIds};
use barnabas_wire::messages::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse};

use super::endpoints::endpoints;
use super::group::{StreamsGroup, TaskOffsets};
use super::member::{Endpoint, StreamsMember};
use super::missed::has_missed;
use super::reconcile::reconcile;
use super::target::{Delay, assign_if_due};
use super::topology::{Configured, StatusCode, Topology, configure, said};
use crate::assignment::streams::{Offsets, Target, Tasks};
use crate::framework::Caller;
use crate::groups::reconciled::{
    AWAY, Found, METADATA_REFRESH, MemberState, Refused, World, keep, too_large,
};
use crate::outbox::{Outbox, TimerKey};
use crate::records::Entry;
use crate::request::StreamsHeartbeat;

/// Tasks of which a member may report offsets.
const OFFSETS_MAX: usize = 10_000;

/// From this version on, members report how far their tasks have come.
const OFFSETS_SINCE: i16 = 1;

/// From this version on, the answer says that client tags are missing.
const TAGS_REQUIRED_SINCE: i16 = 1;

/// From this version on, the answer asks for a description of the topology.
const DESCRIPTION_SINCE: i16 = 1;

/// Handles a valid heartbeat of a member that does not leave. Notes the records to write in the group. `is_new`: the
/// group did not exist before.
///
/// # Errors
/// GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID,
/// INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY. Nothing has changed then.
pub(crate) fn heartbeat(
    group: &mut StreamsGroup,
    is_new: bool,
    caller: &Caller<'_>,
    request: &StreamsGroupHeartbeatRequest,
    world: &mut World,
    out: &mut Outbox,
) -> Result<StreamsHeartbeat, Refused> {
    let id = request.member_id.text();
    let owned = owned(request);
    let instance = request.instance_id.as_deref();
    group.check_room(&id, instance, out)?;
    let found = group.find(&id, instance, request.member_epoch, is_released, |member| {
        check_epoch(member, request.member_epoch, owned.as_ref())
    })?;
    let before = found.before(&id);
    let updated = update(&before, caller, request);
    let topology = topology_of(group, request)?;
    let fit = fit(group, &topology, world, out)?;
    check_tasks(&fit.configured, request)?;
    check_size(group, &updated, &topology, out)?;
    if let Found::Replaces(old) = &found {
        replace(group, &old.id, &before, out);
    }
    let is_known = !matches!(found, Found::New);
    settle(group, is_known.then_some(&before), updated, topology, fit, request, out);
    let delay = assign_if_due(group, out);
    advance(group, &id, owned.as_ref(), out);
    group.watch(&id, out);
    if request.shutdown_application {
        group.own.shutdown_by.get_or_insert_with(|| id.clone());
    }
    let told = Told { is_new, before: &before, owned: owned.as_ref(), delay };
    Ok(answer(group, caller, request, &told, world, out))
}

fn is_released(known: &StreamsMember) -> bool {
    known.epoch == AWAY
}

fn check_epoch(member: &StreamsMember, epoch: i32, owned: Option<&Target>) -> Result<(), Refused> {
    member.check_epoch(epoch, || owned.is_some_and(|owned| owned.is_within(&member.assigned)))?;
    if member.state == MemberState::Unknown && owned.is_none_or(|owned| !owned.is_empty()) {
        let why = "The member's tasks are not known to the group coordinator. The member must abandon all its \
                   partitions and rejoin.";
        return Err(Refused::new(ErrorCode::FencedMemberEpoch, why));
    }
    Ok(())
}

/// What the member says that it has; `None`: nothing new.
fn owned(request: &StreamsGroupHeartbeatRequest) -> Option<Target> {
    let tasks = |said: &[request::TaskIds]| {
        let mut tasks = Tasks::new();
        for each in said.iter().filter(|each| !each.partitions.is_empty()) {
            tasks.entry(each.subtopology_id.text()).or_default().extend(each.partitions.iter().copied());
        }
        tasks
    };
    Some(Target {
        active: tasks(request.active_tasks.as_deref()?),
        standby: tasks(request.standby_tasks.as_deref()?),
        warmup: tasks(request.warmup_tasks.as_deref()?),
    })
}

fn update(
    before: &StreamsMember,
    caller: &Caller<'_>,
    request: &StreamsGroupHeartbeatRequest,
) -> StreamsMember {
    let mut member = before.clone();
    keep(request.instance_id.as_ref(), &mut member.instance);
    keep(request.rack_id.as_ref(), &mut member.rack);
    if request.rebalance_timeout_ms != -1 {
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
    }
    if let Some(topology) = &request.topology {
        member.own.topology_epoch = topology.epoch;
    }
    if let Some(process) = &request.process_id {
        member.own.process = process.text();
    }
    if let Some(tags) = &request.client_tags {
        let tags: BTreeMap<Text, Text> = tags.iter().map(|tag| (tag.key.text(), tag.value.text())).collect();
        if *member.own.tags != tags {
            member.own.tags = Arc::new(tags);
        }
    }
    // Who joins without an endpoint has none any more.
    if request.member_epoch == 0 || request.user_endpoint.is_some() {
        member.own.endpoint = request
            .user_endpoint
            .as_ref()
            .map(|endpoint| Endpoint { host: endpoint.host.text(), port: endpoint.port });
    }
    member.set_client(caller);
    member
}

/// The group's topology after this request.
fn topology_of(
    group: &StreamsGroup,
    request: &StreamsGroupHeartbeatRequest,
) -> Result<Arc<Topology>, Refused> {
    match (&group.own.topology, &request.topology) {
        (None, Some(brought)) => Ok(Arc::new(Topology::new(said(brought)))),
        // A log that lacks the batch: the member joins again, and brings it.
        (None, None) => {
            let why = "The group's topology was lost. The member must abandon all its partitions and rejoin.";
            Err(Refused::new(ErrorCode::FencedMemberEpoch, why))
        }
        (Some(known), Some(brought)) if brought.epoch >= known.epoch() && !known.is(&said(brought)) => {
            Err(Refused::new(ErrorCode::InvalidRequest, "Topology updates are not supported yet."))
        }
        (Some(known), _) => Ok(Arc::clone(known)),
    }
}

/// How the topology fits the topics.
struct Fit {
    hash: i64,
    configured: Arc<Configured>,
    /// The topics were looked at.
    is_fresh: bool,
}

fn fit(group: &StreamsGroup, topology: &Topology, world: &mut World, out: &Outbox) -> Result<Fit, Refused> {
    let known = group.own.configured.as_ref().filter(|_| group.own.topology.is_some());
    if let Some(known) = known
        && group.refresh_at > out.now.mono
    {
        return Ok(Fit { hash: group.metadata_hash, configured: Arc::clone(known), is_fresh: false });
    }
    let hash = world.hash_of(topology.required.iter());
    let configured = match known.filter(|_| hash == group.metadata_hash) {
        Some(known) => Arc::clone(known),
        None => Arc::new(configure(topology, &world.image)?),
    };
    Ok(Fit { hash, configured, is_fresh: true })
}

fn check_tasks(configured: &Configured, request: &StreamsGroupHeartbeatRequest) -> Result<(), Refused> {
    if !configured.is_ready() {
        return Ok(());
    }
    let said = [&request.active_tasks, &request.standby_tasks, &request.warmup_tasks];
    for each in said.into_iter().flatten().flatten() {
        let id = each.subtopology_id.as_str();
        let Some(tasks) = configured.tasks_of(id) else {
            let why = format!("Subtopology {id} does not exist in the topology.");
            return Err(Refused::new(ErrorCode::InvalidRequest, why));
        };
        if let Some(partition) = each.partitions.iter().find(|partition| !(0..tasks).contains(*partition)) {
            let why = format!(
                "Task {partition} for subtopology {id} is invalid. Number of tasks for this subtopology: {tasks}"
            );
            return Err(Refused::new(ErrorCode::InvalidRequest, why));
        }
    }
    Ok(())
}

/// What a member says of itself goes into one record, and so does a topology.
fn check_size(
    group: &StreamsGroup,
    member: &StreamsMember,
    topology: &Topology,
    out: &Outbox,
) -> Result<(), Refused> {
    let max = out.config.batch_bytes_max;
    let fits = |bytes: Option<usize>| bytes.is_some_and(|bytes| bytes <= max);
    if fits(group.member_bytes(member))
        && (group.own.topology.is_some() || fits(group.topology_bytes(topology)))
    {
        return Ok(());
    }
    Err(too_large())
}

/// Puts `new` in the place of the static member `old`; what it reported of its tasks stays.
fn replace(group: &mut StreamsGroup, old: &Text, new: &StreamsMember, out: &mut Outbox) {
    let offsets = group.own.task_offsets.get(old).cloned();
    group.replace(old, new, out);
    group.own.task_offsets.extend(offsets.map(|offsets| (new.id.clone(), offsets)));
    if group.members().len() == 1 {
        group.own.shutdown_by = None;
    }
}

/// Takes in what was said, and raises the group's epoch if it makes a difference. `before`: `None` if the member is
/// new.
fn settle(
    group: &mut StreamsGroup,
    before: Option<&StreamsMember>,
    updated: StreamsMember,
    topology: Arc<Topology>,
    fit: Fit,
    request: &StreamsGroupHeartbeatRequest,
    out: &mut Outbox,
) {
    let id = updated.id.clone();
    let was_empty = group.is_empty();
    let mut must_raise = before.is_none_or(|before| matters(before, &updated));
    if before != Some(&updated) {
        group.put(updated);
        group.note(Entry::Member(id.clone()));
    }
    if group.own.topology.is_none() {
        group.note(Entry::Topology);
    }
    let validated = if fit.configured.is_ready() { topology.epoch() } else { -1 };
    let configs = out.config.streams.settings.of(&group.id).assignor_configs();
    must_raise |= fit.hash != group.metadata_hash
        || validated != group.own.validated_epoch
        || configs != group.own.assignment_configs;
    // A group that was read from the log may lack a part of its target.
    must_raise |= group.own.configured.is_none() && !group.is_assigned_whole(&fit.configured);
    set_offsets(group, &id, &topology, request);
    group.own.topology = Some(topology);
    group.own.configured = Some(fit.configured);
    if fit.is_fresh {
        group.refresh_at = out.now.mono.plus(METADATA_REFRESH);
    }
    if must_raise {
        group.own.validated_epoch = validated;
        group.own.assignment_configs = configs;
        group.raise(fit.hash, out.now.mono);
    }
    let delay = out.config.streams.settings.of(&group.id).initial_rebalance_delay;
    let key = TimerKey::FirstTarget(group.id.clone());
    if was_empty && delay.0 > 0 && !out.timers.is_set(&key) {
        out.set_timer(key, delay);
    }
}

/// Whether what has changed about a member makes a difference to the target. Of a dynamic member everything counts, as
/// in Kafka; a static one may come back from another address.
fn matters(before: &StreamsMember, now: &StreamsMember) -> bool {
    let is_other = before.own.topology_epoch != now.own.topology_epoch
        || before.rack != now.rack
        || before.own.tags != now.own.tags
        || before.own.process != now.own.process;
    is_other || (now.instance.is_none() && before != now)
}

fn set_offsets(
    group: &mut StreamsGroup,
    id: &Text,
    topology: &Topology,
    request: &StreamsGroupHeartbeatRequest,
) {
    let known = |said: &[request::TaskOffset]| -> Arc<Offsets> {
        let known = said.iter().filter(|each| topology.has(&each.subtopology_id) && each.partition >= 0);
        let known = known.map(|each| ((each.subtopology_id.text(), each.partition), each.offset));
        Arc::new(known.take(OFFSETS_MAX).collect())
    };
    if request.task_offsets.is_none() && request.task_end_offsets.is_none() {
        return;
    }
    let offsets: &mut TaskOffsets = group.own.task_offsets.entry(id.clone()).or_default();
    if let Some(said) = &request.task_offsets {
        offsets.offsets = known(said);
    }
    if let Some(said) = &request.task_end_offsets {
        offsets.ends = known(said);
    }
}

/// Brings the member as near to the target as it can come now.
fn advance(group: &mut StreamsGroup, id: &Text, owned: Option<&Target>, out: &mut Outbox) {
    let Some(member) = group.member(id) else { return };
    let none = Target::default();
    let target = group.targets.get(id).map_or(&none, |target| target);
    let Some(next) = reconcile(group, member, target, group.assignment_epoch, owned) else { return };
    group.watch_revocation(&next, out);
    group.take_step(next);
}

/// What an answer depends on beside how things are now.
struct Told<'a> {
    /// The group did not exist before.
    is_new: bool,
    before: &'a StreamsMember,
    owned: Option<&'a Target>,
    delay: Option<Delay>,
}

/// An answer names tasks when the member joins, when its tasks change, and when it missed the last answer
/// ([`has_missed`]).
fn answer(
    group: &mut StreamsGroup,
    caller: &Caller<'_>,
    request: &StreamsGroupHeartbeatRequest,
    told: &Told<'_>,
    world: &World,
    out: &Outbox,
) -> StreamsHeartbeat {
    let now = Arc::clone(group.member(&request.member_id).expect("invariant: it was just put there"));
    let settings = out.config.streams.settings.of(&group.id);
    let has_changed = told.before.assigned != now.assigned;
    if told.before.own.endpoint != now.own.endpoint || (has_changed && now.own.endpoint.is_some()) {
        group.own.endpoint_epoch = group.own.endpoint_epoch.wrapping_add(1).max(0);
    }
    // A shorter interval has no use while topics are missing that the user has to create; topics that the broker
    // creates raise the epoch.
    let is_ready = group.own.configured.as_ref().is_some_and(|configured| configured.is_ready());
    let is_settled = !is_ready || now.is_reconciled_to(group.epoch);
    let mut response = StreamsGroupHeartbeatResponse {
        member_id: Str::from(&now.id),
        member_epoch: now.epoch,
        heartbeat_interval_ms: group.heartbeat_interval_ms(is_settled, out),
        // Members of Kafka 4.3 and before report no offsets, and were told of no interval.
        task_offset_interval_ms: if caller.version >= OFFSETS_SINCE {
            i32::try_from(settings.task_offset_interval.0).unwrap_or(i32::MAX)
        } else {
            0
        },
        acceptable_recovery_lag: settings.acceptable_recovery_lag,
        status: Some(statuses(group, caller, &now, told.delay, out)),
        ..Default::default()
    };
    let is_shown = request.member_epoch == 0 || has_changed;
    if is_shown {
        group.own.doubted.remove(&now.id);
    }
    if is_shown || has_missed(group, &now, request.member_epoch < told.before.epoch, told.owned) {
        let active = now.assigned.active.iter().map(|(id, parts)| task_ids(id, parts.keys().copied()));
        response.active_tasks = Some(active.collect());
        response.standby_tasks = Some(all_task_ids(&now.assigned.standby));
        response.warmup_tasks = Some(all_task_ids(&now.assigned.warmup));
    }
    if group.own.endpoint_epoch != request.endpoint_information_epoch {
        response.partitions_by_user_endpoint = Some(endpoints(group, &world.image));
    }
    if !told.is_new {
        response.endpoint_information_epoch = group.own.endpoint_epoch;
    }
    response.topology_description_required = asks_for_description(group, caller, &now, out);
    let missing = group.own.configured.as_ref().map(|configured| configured.missing.clone());
    StreamsHeartbeat { response, create: missing.unwrap_or_default() }
}

/// Whether the answer to this member asks for a description of the topology (KIP-1331). A member with an older one is
/// not asked.
///
/// # Source
/// Kafka 4.4 `StreamsGroupTopologyDescriptionManager.maybeSetTopologyDescriptionRequired`.
fn asks_for_description(
    group: &mut StreamsGroup,
    caller: &Caller<'_>,
    member: &StreamsMember,
    out: &Outbox,
) -> bool {
    let current = group.topology_epoch();
    out.config.streams.keeps_descriptions
        && caller.version >= DESCRIPTION_SINCE
        && current >= 0
        && member.own.topology_epoch >= current
        && group.own.description.ask(current, out.now.mono)
}

fn task_ids(subtopology: &Text, partitions: impl Iterator<Item = i32>) -> TaskIds {
    TaskIds { subtopology_id: Str::from(subtopology), partitions: partitions.collect(), ..Default::default() }
}

fn all_task_ids(tasks: &Tasks) -> Vec<TaskIds> {
    let all = tasks.iter();
    all.map(|(id, partitions): (&Text, &BTreeSet<i32>)| task_ids(id, partitions.iter().copied())).collect()
}

/// What is amiss, for the application's people to read.
fn statuses(
    group: &StreamsGroup,
    caller: &Caller<'_>,
    member: &StreamsMember,
    delay: Option<Delay>,
    out: &Outbox,
) -> Vec<Status> {
    let mut statuses = Vec::new();
    let mut say = |code: StatusCode, detail: String| {
        let status = Status { status_code: code as i8, status_detail: detail.into(), ..Default::default() };
        statuses.push(status);
    };
    let current = group.topology_epoch();
    if member.own.topology_epoch < current {
        let why = format!(
            "The member's topology epoch {} is behind the group's topology epoch {current}.",
            member.own.topology_epoch
        );
        say(StatusCode::StaleTopology, why);
    }
    match delay {
        Some(Delay::Initial) => {
            let why = "Assignment delayed due to the configured initial rebalance delay.";
            say(StatusCode::AssignmentDelayed, why.to_owned());
        }
        Some(Delay::Interval) => {
            let why = "Assignment delayed due to the configured assignment interval.";
            say(StatusCode::AssignmentDelayed, why.to_owned());
        }
        None => {}
    }
    if let Some(obstacle) = group.own.configured.as_ref().and_then(|configured| configured.obstacle.as_ref())
    {
        say(obstacle.code, obstacle.detail.clone());
    }
    if let Some(who) = &group.own.shutdown_by {
        let why = format!(
            "Streams group member {who} encountered a fatal error and requested a shutdown for the entire \
                 application."
        );
        say(StatusCode::ShutdownApplication, why);
    }
    let tags = &out.config.streams.settings.of(&group.id).rack_tags;
    let lacking: Vec<&str> =
        tags.iter().filter(|tag| !member.own.tags.contains_key(*tag)).map(|tag| tag.as_str()).collect();
    if caller.version >= TAGS_REQUIRED_SINCE && !lacking.is_empty() {
        let why = format!(
            "Missing required client tags for rack-aware standby assignment: {}. Configure them via \
                 'client.tag.<tagKey>' in your Streams config.",
            lacking.join(", ")
        );
        say(StatusCode::MissingClientTags, why);
    }
    statuses
}
