//! One member on its way to the target: gives up, waits, gets.
//!
//! ```text
//!              target has less for it                     all given up
//!   Stable ───────────────────────────▶ Unrevoked ──────────────────────────┐
//!     ▲ │                               (keeps its epoch)                    │
//!     │ └─ target has more for it, but others still have it ─▶ Unreleased ◀──┤
//!     └──────────────────── nothing to give up, nothing to wait for ◀────────┘
//!                           (the target's epoch)
//! ```
//!
//! A partition is assigned to a member only while no member owns it; a member owns it until its heartbeat says
//! otherwise.
//!
//! # Source
//! KIP-848; Kafka 4.4 `CurrentAssignmentBuilder`.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{Text, TopicId};
use barnabas_metadata::Image;
use barnabas_wire::messages::consumer_group_heartbeat_request::TopicPartitions;

use super::group::ConsumerGroup;
use super::member::{Assigned, ConsumerMember};
use crate::assignment::Partitions;
use crate::groups::reconciled::MemberState;

/// What a member says that it has; `None`: nothing new.
pub(crate) type Owned<'a> = Option<&'a [TopicPartitions]>;

/// The member's next step. `None`: it stays as it is. `changed`: it subscribes to something else now.
pub(crate) fn reconcile(
    group: &ConsumerGroup,
    member: &ConsumerMember,
    image: &Image,
    owned: Owned<'_>,
    changed: bool,
) -> Option<ConsumerMember> {
    let step = Step { group, member, image, owned };
    match member.state {
        MemberState::Stable if member.epoch != group.assignment_epoch => Some(step.next()),
        MemberState::Stable if changed => step.give_up_unsubscribed(),
        MemberState::Stable => None,
        MemberState::Unrevoked if step.still_has(&member.revoking) => {
            if changed {
                step.give_up_unsubscribed()
            } else {
                None
            }
        }
        MemberState::Unrevoked | MemberState::Unreleased | MemberState::Unknown => Some(step.next()),
    }
    .filter(|next| next != member)
}

struct Step<'a> {
    group: &'a ConsumerGroup,
    member: &'a ConsumerMember,
    image: &'a Image,
    owned: Owned<'a>,
}

impl Step<'_> {
    /// Whether the member has, or may have, any of these.
    fn still_has(&self, partitions: &Assigned) -> bool {
        let Some(owned) = self.owned else { return true };
        owned.iter().any(|topic| {
            let of = partitions.get(&topic.topic_id);
            of.is_some_and(|of| topic.partitions.iter().any(|partition| of.contains_key(partition)))
        })
    }

    fn is_subscribed(&self, topic: TopicId) -> bool {
        let Some(topic) = self.image.topics.by_id(topic) else { return false };
        let matched = |pattern: &Text| {
            self.group.own.resolved.get(pattern).is_some_and(|resolved| resolved.topics.contains(&topic.name))
        };
        self.member.subscribes_by_name(&topic.name) || self.member.pattern().is_some_and(matched)
    }

    /// What it must give up at once as it does not subscribe to it any more, whatever the target says.
    fn give_up_unsubscribed(&self) -> Option<ConsumerMember> {
        let gone: Vec<TopicId> =
            self.member.assigned.keys().copied().filter(|topic| !self.is_subscribed(*topic)).collect();
        if gone.is_empty() {
            return None;
        }
        let mut next = self.member.clone();
        let assigned = Arc::make_mut(&mut next.assigned);
        let mut revoking = (*self.member.revoking).clone();
        for topic in gone {
            let partitions = assigned.remove(&topic).unwrap_or_default();
            revoking.entry(topic).or_default().extend(partitions);
        }
        next.advance(self.member.epoch);
        if self.still_has(&revoking) {
            next.state = MemberState::Unrevoked;
            next.revoking = Arc::new(revoking);
        }
        Some(next)
    }

    fn next(&self) -> ConsumerMember {
        let none = Partitions::new();
        let target = self.group.targets.get(&self.member.id).map_or(&none, |target| target);
        let (mut kept, mut revoking) = (Assigned::new(), Assigned::new());
        for (topic, partitions) in self.member.assigned.iter() {
            let wanted = target.get(topic).filter(|_| self.is_subscribed(*topic));
            for (partition, since) in partitions {
                let stays = wanted.is_some_and(|wanted| wanted.binary_search(partition).is_ok());
                let side = if stays { &mut kept } else { &mut revoking };
                side.entry(*topic).or_default().insert(*partition, *since);
            }
        }
        let (new, is_waiting) = self.available(target, &kept);
        let mut next = self.member.clone();
        if !revoking.is_empty() && self.still_has(&revoking) {
            next.state = MemberState::Unrevoked;
            next.advance(self.member.epoch);
            next.assigned = Arc::new(kept);
            next.revoking = Arc::new(revoking);
            return next;
        }
        let epoch = self.group.assignment_epoch;
        for (topic, partition) in new {
            kept.entry(topic).or_default().insert(partition, epoch);
        }
        next.state = if is_waiting { MemberState::Unreleased } else { MemberState::Stable };
        next.advance(epoch);
        if *next.assigned != kept {
            next.assigned = Arc::new(kept);
        }
        next.revoking = Arc::default();
        next
    }

    /// The unowned part of the member's target; and whether other members own some of it. Partitions that this
    /// member has to revoke count as unowned: by the time it gets the others, it has revoked them.
    fn available(&self, target: &Partitions, kept: &Assigned) -> (Vec<(TopicId, i32)>, bool) {
        let (mut new, mut is_waiting) = (Vec::new(), false);
        let nothing = BTreeMap::new();
        for (topic, partitions) in target {
            if !self.is_subscribed(*topic) {
                continue;
            }
            let kept = kept.get(topic).unwrap_or(&nothing);
            for partition in partitions.iter().filter(|partition| !kept.contains_key(partition)) {
                match self.group.owner(*topic, *partition) {
                    Some(owner) if *owner != self.member.id => is_waiting = true,
                    _ => new.push((*topic, *partition)),
                }
            }
        }
        (new, is_waiting)
    }
}
