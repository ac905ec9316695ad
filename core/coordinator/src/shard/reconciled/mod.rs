//! Requests and events of consumer, share and streams groups, brought to their group: what the three have in common.

mod consumer;
mod share;
mod streams;

use barnabas_base::{ErrorCode, MonotonicMs, Text};
use barnabas_metadata::Image;
use barnabas_wire::Str;

use super::{Group, GroupShard};
use crate::assignment::Outcome;
use crate::framework::{BatchId, Now, Ticket};
use crate::groups::classic::{self, State};
use crate::groups::reconciled::{Kind, ReconciledGroup, Records, Refused, World, no_group, wrong_kind};
use crate::groups::{self, find};
use crate::outbox::{Effect, Outbox, TimerKey};
use crate::records::Entry;
use crate::{Done, Response};

impl GroupShard {
    /// A heartbeat of a member that joins or stays: `beat` works on it in its group. A member that joins founds the
    /// group if there is none; an empty classic one becomes its group, and that one's offsets stay.
    fn stay<K: Records>(
        &mut self,
        id: &Text,
        epoch: i32,
        ticket: Ticket,
        beat: impl FnOnce(&mut ReconciledGroup<K>, bool, &mut World, &mut Outbox) -> Result<Response, Refused>,
    ) -> Result<(), Refused> {
        if let Some(group) = self.groups.get_mut(id).and_then(K::of_mut) {
            let response = beat(group, false, &mut self.world, &mut self.out)?;
            group.answer(ticket, response, &mut self.out);
            return Ok(());
        }
        let mut group = match self.groups.get(id) {
            None if epoch != 0 => return Err(no_group(K::KIND, id)),
            None => ReconciledGroup::new(id.clone()),
            Some(Group::Classic(old)) if epoch == 0 && old.state == State::Empty => {
                let mut group = ReconciledGroup::new(id.clone());
                group.note(Entry::OldClassic);
                group
            }
            Some(_) => return Err(wrong_kind(K::KIND, id)),
        };
        let response = beat(&mut group, true, &mut self.world, &mut self.out)?;
        self.found(group, ticket, response);
        Ok(())
    }

    /// A new group, instead of a classic one if there is such; the answer to its first member.
    fn found<K: Records>(&mut self, mut group: ReconciledGroup<K>, ticket: Ticket, response: Response) {
        if let Some(Group::Classic(mut old)) = self.groups.remove(&group.id) {
            // Its members, and those that were given an id, join again and find themselves in the new group.
            classic::send_away(&mut old, ErrorCode::RebalanceInProgress, &mut self.out);
            classic::forget_timers(&mut old, &mut self.out);
        }
        group.watch_all(&mut self.out);
        group.answer(ticket, response, &mut self.out);
        self.out.groups_changed = group.last_batch();
        self.groups.insert(group.id.clone(), (K::WRAP)(Box::new(group)));
    }

    /// Describes groups of one kind, and gives the batch that this rests on.
    fn describe_each<K: Kind, D>(
        &self,
        ids: &[Str],
        describe: impl Fn(&ReconciledGroup<K>) -> D,
        refuse: impl Fn(&str, Refused) -> D,
    ) -> (Vec<D>, BatchId) {
        let mut last = self.out.groups_changed;
        let mut described = Vec::with_capacity(ids.len());
        for id in ids {
            described.push(match find(&self.groups, id) {
                Ok(group) => {
                    last = last.max(group.last_batch());
                    describe(group)
                }
                Err(refused) => refuse(id, refused),
            });
        }
        (described, last)
    }

    /// Time is over for a member, unless it has done meanwhile what it was to do by then.
    pub(in crate::shard) fn member_timer(&mut self, key: &TimerKey) {
        let Some((id, member)) = key.member() else { return };
        let gone = std::slice::from_ref(member);
        match self.groups.get_mut(id) {
            // A consumer group may become a classic one by that.
            Some(Group::Consumer(group)) if group.is_late(member, key) => {
                self.fence_members(id, gone);
            }
            Some(Group::Share(group)) if group.is_late(member, key) => {
                groups::share::fence(group, gone, &mut self.world, &mut self.out);
                group.flush(&mut self.out);
            }
            Some(Group::Streams(group)) if group.is_late(member, key) => {
                groups::streams::fence(group, gone, &mut self.out);
                group.flush(&mut self.out);
            }
            _ => {}
        }
    }

    /// A job of this shard was run, or given up.
    pub fn computed(&mut self, done: Done, now: Now) -> Vec<Effect> {
        self.out.now = now;
        match (self.groups.get_mut(done.0.group()), done.0) {
            (Some(Group::Streams(group)), Outcome::Tasks { epoch, targets, .. }) => {
                group.computed(epoch, targets, &mut self.out);
            }
            (Some(Group::Consumer(group)), Outcome::Partitions { epoch, targets, .. }) => {
                group.computed(epoch, targets, &mut self.out);
            }
            (Some(Group::Consumer(group)), Outcome::Resolved { topics, .. }) => {
                groups::consumer::resolved(group, topics, &mut self.world, &mut self.out);
            }
            // Of a group of the same name that is gone.
            _ => {}
        }
        self.out.take_effects()
    }

    /// The cluster looks like this now. `topics`: those that were created, deleted or got more partitions; `None`: any.
    pub fn image_changed(&mut self, image: &Image, topics: Option<&[Text]>, has_new: bool) {
        self.world.change(image.clone(), topics, has_new);
        if topics.is_some_and(<[Text]>::is_empty) {
            return;
        }
        for group in self.groups.values_mut() {
            let concerns = |reads: &dyn Fn(&str) -> bool| {
                topics.is_none_or(|topics| topics.iter().any(|topic| reads(topic)))
            };
            match group {
                Group::Consumer(group) if concerns(&|topic| group.is_subscribed(topic)) => {
                    group.refresh_at = MonotonicMs(0);
                }
                Group::Streams(group) if concerns(&|topic| group.needs(topic)) => {
                    group.refresh_at = MonotonicMs(0);
                }
                Group::Share(group) if concerns(&|topic| group.names().contains_key(topic)) => {
                    group.refresh_at = MonotonicMs(0);
                }
                _ => {}
            }
        }
    }
}
