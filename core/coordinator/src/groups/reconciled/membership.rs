//! Members that come, come back, and go; and the timers by which they are missed.
//!
//! # Source
//! Kafka 4.4 `GroupMetadataManager.getOrMaybeCreateMember`, `getOrMaybeSubscribeStaticConsumerMember`,
//! `getOrMaybeCreateStaticStreamsMember`.

use std::sync::Arc;

use barnabas_base::{DurationMs, ErrorCode, Text};

use super::member::AWAY;
use super::{
    Kind, Member, MemberState, ReconciledGroup, Refused, Standing, check_instance, pace, unknown,
    unknown_instance,
};
use crate::outbox::{Outbox, TimerKey};
use crate::records::Entry;

/// Which member a heartbeat comes from.
pub(crate) enum Found<K: Kind> {
    Known(Arc<Member<K>>),
    New,
    /// It takes the place of this static member.
    Replaces(Arc<Member<K>>),
}

impl<K: Kind> Found<K> {
    /// What is known of the member before the heartbeat.
    pub fn before(&self, id: &Text) -> Member<K> {
        match self {
            Self::Known(member) => (**member).clone(),
            Self::New => Member::new(id.clone()),
            Self::Replaces(old) => old.replacement(id.clone()),
        }
    }
}

impl<K: Kind> ReconciledGroup<K> {
    /// # Errors
    /// GROUP_MAX_SIZE_REACHED, but not for a member, nor for a process that takes a static member's place.
    pub fn check_room(&self, id: &str, instance: Option<&str>, out: &Outbox) -> Result<(), Refused> {
        let max = K::size_max(&out.config);
        if self.members().len() >= max && self.member_or_static(id, instance).is_none() {
            let kind = K::KIND.name();
            let why = format!("The {kind} group has reached its maximum capacity of {max} members.");
            return Err(Refused::new(ErrorCode::GroupMaxSizeReached, why));
        }
        Ok(())
    }

    /// Which member this is that sends `epoch`. `is_released`: whether another process may take a static member's
    /// place.
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, and what `check_epoch` says of a known member.
    pub fn find(
        &self,
        id: &str,
        instance: Option<&str>,
        epoch: i32,
        is_released: impl Fn(&Member<K>) -> bool,
        check_epoch: impl Fn(&Member<K>) -> Result<(), Refused>,
    ) -> Result<Found<K>, Refused> {
        let joins = epoch == 0;
        let Some(instance) = instance else {
            return match self.member(id) {
                Some(member) => check_epoch(member).map(|()| Found::Known(Arc::clone(member))),
                None if joins => Ok(Found::New),
                None => Err(unknown(&self.id, id)),
            };
        };
        match self.static_member(instance) {
            None if joins => Ok(Found::New),
            None => Err(unknown_instance(instance)),
            Some(known) if joins && known.id == id => Ok(Found::Known(Arc::clone(known))),
            Some(known) if joins && is_released(known) => Ok(Found::Replaces(Arc::clone(known))),
            Some(known) if joins => Err(Refused::new(
                ErrorCode::UnreleasedInstanceId,
                format!(
                    "Static member {id} with instance id {instance} cannot join the group because the instance id is owned by {} \
                     member.",
                    known.id
                ),
            )),
            Some(known) => {
                check_instance(&known.id, id, instance)?;
                check_epoch(known).map(|()| Found::Known(Arc::clone(known)))
            }
        }
    }

    /// The member that leaves.
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    pub fn find_leaving(&self, id: &str, instance: Option<&str>) -> Result<Arc<Member<K>>, Refused> {
        let Some(instance) = instance else {
            return self.member(id).cloned().ok_or_else(|| unknown(&self.id, id));
        };
        let member = self.static_member(instance).ok_or_else(|| unknown_instance(instance))?;
        check_instance(&member.id, id, instance)?;
        Ok(Arc::clone(member))
    }

    /// Whether this member may commit offsets with this epoch: its own, or an earlier one as long as it `has_held`
    /// since then what it commits for (KIP-1251).
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, and [`Kind::stale_epoch`].
    ///
    /// # Source
    /// Kafka 4.4 `ConsumerGroup.validateOffsetCommit`, `StreamsGroup.validateOffsetCommit`.
    pub fn check_committer(
        &self,
        id: &str,
        epoch: i32,
        has_held: impl FnOnce(&Member<K>) -> bool,
    ) -> Result<(), ErrorCode> {
        let member = self.member(id).ok_or(ErrorCode::UnknownMemberId)?;
        let may = epoch == member.epoch || (epoch < member.epoch && has_held(member));
        if may { Ok(()) } else { Err(K::stale_epoch(member)) }
    }

    /// Whether this member may fetch offsets with this epoch. A request that names no member may.
    ///
    /// # Errors
    /// As [`ReconciledGroup::check_committer`].
    pub fn check_fetch(&self, id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        if id.is_none() && epoch < 0 {
            return Ok(());
        }
        self.check_committer(id.unwrap_or_default(), epoch, |_| false)
    }

    /// Puts `new` in the place of the static member `old`.
    pub fn replace(&mut self, old: &Text, new: &Member<K>, out: &mut Outbox) {
        cancel_timers(&self.id, old, out);
        self.remove(old);
        let target = self.targets.remove(old);
        self.note_gone(old);
        self.put(new.clone());
        self.note(Entry::Member(new.id.clone()));
        if let Some(target) = target {
            self.targets.insert(new.id.clone(), target);
            self.note(Entry::Target(new.id.clone()));
        }
        self.note(Entry::Current(new.id.clone()));
    }

    /// A static member is away: its epoch says so, and the next process with its instance id takes its place. Its
    /// session goes on.
    pub fn leave_for_a_moment(&mut self, mut member: Member<K>) {
        member.epoch = AWAY;
        member.revoking = Arc::default();
        self.take_step(member);
    }

    /// The member stands elsewhere now.
    pub fn take_step(&mut self, next: Member<K>) {
        let id = next.id.clone();
        self.put(next);
        self.note(Entry::Current(id));
    }

    /// Takes members out, with their targets, records and timers. Gives those that there were.
    pub fn take_out(&mut self, ids: &[Text], out: &mut Outbox) -> Vec<Arc<Member<K>>> {
        let mut gone = Vec::new();
        for id in ids {
            let Some(member) = self.remove(id) else { continue };
            self.targets.remove(id);
            self.note_gone(id);
            cancel_timers(&self.id, id, out);
            gone.push(member);
        }
        gone
    }

    /// Sets the timer by which the member must send its next heartbeat.
    pub fn watch(&self, id: &Text, out: &mut Outbox) {
        let own = self.member(id).and_then(|member| K::session_timeout(member));
        let session = own.unwrap_or_else(|| K::times(&out.config, &self.id).session_timeout);
        out.set_timer(TimerKey::Session { group: self.id.clone(), member: id.clone() }, session);
    }

    /// Gives every member a whole session.
    pub fn watch_all(&self, out: &mut Outbox) {
        self.members().keys().for_each(|id| self.watch(id, out));
    }

    /// Whether a member whose time `key` says is over still has to do what it was given that time for.
    pub fn is_late(&self, id: &str, key: &TimerKey) -> bool {
        self.member(id)
            .is_some_and(|member| matches!(key, TimerKey::Session { .. }) || K::is_late(member, key))
    }

    /// Sets the timer by which the member must have given up what it is to give up, if there is such.
    pub fn watch_revocation(&self, member: &Member<K>, out: &mut Outbox) {
        let key = TimerKey::Rebalance { group: self.id.clone(), member: member.id.clone() };
        if member.state == MemberState::Unrevoked {
            out.set_timer(key, DurationMs(i64::from(member.rebalance_timeout_ms)));
        } else {
            out.timers.cancel(&key);
        }
    }

    /// The group is going, or becomes another kind of group.
    pub fn forget_timers(&self, out: &mut Outbox) {
        self.members().keys().for_each(|member| cancel_timers(&self.id, member, out));
        out.timers.cancel(&TimerKey::Save(self.id.clone()));
        out.timers.cancel(&TimerKey::FirstTarget(self.id.clone()));
    }

    /// When a member is to send its next heartbeat. `is_settled`: it has what the newest target has for it.
    pub fn heartbeat_interval_ms(&self, is_settled: bool, out: &Outbox) -> i32 {
        let standing = Standing {
            settling_interval: out.config.settling_heartbeat_interval,
            is_settled,
            unchanged_for: self.raised_at.map(|raised| out.now.mono.since(raised)),
            members: self.members().len(),
        };
        let interval = pace(K::times(&out.config, &self.id).heartbeat_interval, standing);
        i32::try_from(interval.0).unwrap_or(i32::MAX)
    }
}

fn cancel_timers(group: &Text, member: &Text, out: &mut Outbox) {
    let (group, member) = (group.clone(), member.clone());
    for key in [
        TimerKey::Session { group: group.clone(), member: member.clone() },
        TimerKey::Rebalance { group: group.clone(), member: member.clone() },
        TimerKey::MemberJoin { group: group.clone(), member: member.clone() },
        TimerKey::MemberSync { group, member },
    ] {
        out.timers.cancel(&key);
    }
}
