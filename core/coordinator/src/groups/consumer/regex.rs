//! Expressions and the topics that they match.
//!
//! All expressions of a group are resolved together, on another thread ([`crate::Job`]), so that a change of topics
//! raises the group's epoch once: after a new expression, after new topics, and at intervals.
//!
//! # Source
//! KIP-848; Kafka 4.4 `GroupMetadataManager.maybeUpdateRegularExpressions`, `handleRegularExpressionsResult`.

use std::sync::Arc;

use barnabas_base::{ErrorCode, Text};

use super::group::ConsumerGroup;
use super::member::ConsumerMember;
use crate::assignment::{Job, Resolved, Resolving, Topics, Work};
use crate::framework::pattern;
use crate::groups::reconciled::{METADATA_REFRESH, Refused, World};
use crate::outbox::Effect;
use crate::outbox::Outbox;
use crate::records::Entry;

/// Expressions are not resolved again before this much time has passed.
const RESOLVE_AGAIN_MIN_MS: i64 = 10_000;

/// Different expressions of one group. Kafka has no such bound, and no group of good will comes near it.
const EXPRESSIONS_MAX: usize = 1_000;

/// What a heartbeat means for the group's expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// The member subscribes by another one, of which it is not known yet what it matches.
    Unresolved,
    /// The member subscribes by another one, which is resolved already, or by none any more.
    Resolved,
}

/// # Errors
/// INVALID_REGULAR_EXPRESSION. Only for an expression that is new to the group.
pub(super) fn check(group: &ConsumerGroup, member: &ConsumerMember) -> Result<(), Refused> {
    match member.pattern() {
        Some(wanted)
            if group.patterns().len() >= EXPRESSIONS_MAX && !group.patterns().contains_key(wanted) =>
        {
            let why =
                format!("The group has {EXPRESSIONS_MAX} expressions, which is as many as it may have.");
            Err(Refused::new(ErrorCode::InvalidRegularExpression, why))
        }
        Some(wanted) if !group.patterns().contains_key(wanted) => {
            pattern::of_topics(wanted).map(drop).map_err(|why| {
                let why =
                    format!("SubscribedTopicRegex `{wanted}` is not a valid regular expression: {why}.");
                Refused::new(ErrorCode::InvalidRegularExpression, why)
            })
        }
        _ => Ok(()),
    }
}

/// After `old` has become `new` and both are counted.
pub(super) fn changed(
    group: &mut ConsumerGroup,
    old: Option<&ConsumerMember>,
    new: &ConsumerMember,
) -> Change {
    let before = old.and_then(ConsumerMember::pattern);
    if before == new.pattern() {
        return Change::None;
    }
    before.into_iter().for_each(|pattern| forget_if_unused(group, pattern));
    match new.pattern() {
        Some(pattern) if !group.own.resolved.contains_key(pattern) => Change::Unresolved,
        _ => Change::Resolved,
    }
}

/// No member subscribes by it any more.
pub(super) fn forget_if_unused(group: &mut ConsumerGroup, pattern: &Text) {
    if !group.patterns().contains_key(pattern) && group.own.resolved.remove(pattern).is_some() {
        group.note(Entry::Regex(pattern.clone()));
    }
}

/// Has the group's expressions resolved, if it is time for it.
pub(super) fn resolve_if_due(group: &mut ConsumerGroup, world: &World, out: &mut Outbox) {
    if group.patterns().is_empty() || group.own.resolving {
        return;
    }
    let now = out.now.wall.0;
    let last = group.own.resolved.values().map(|resolved| resolved.timestamp).max();
    let seen = group.own.resolved.values().map(|resolved| resolved.version).max();
    if last.is_some_and(|last| now <= last.saturating_add(RESOLVE_AGAIN_MIN_MS)) {
        return;
    }
    let is_new = group.patterns().len() != group.own.resolved.len();
    let has_new_topics = seen.is_none_or(|seen| seen < world.last_created_at);
    let interval = out.config.consumer.regex_refresh_interval.0;
    let is_old = last.is_none_or(|last| now > last.saturating_add(interval));
    if is_new || has_new_topics || is_old {
        group.own.resolving = true;
        let resolving = Resolving {
            group: group.id.clone(),
            patterns: group.patterns().keys().cloned().collect(),
            image: world.image.clone(),
            describable: None,
        };
        out.compute(Effect::Compute(Box::new(Job(Work::Resolve(resolving)))));
    }
}

/// The group's expressions are resolved; `None`: the job failed. The members learn of it with their next heartbeats.
pub(crate) fn resolved(
    group: &mut ConsumerGroup,
    topics: Option<Topics>,
    world: &mut World,
    out: &mut Outbox,
) {
    group.own.resolving = false;
    let Some(topics) = topics else { return };
    let mut is_other = false;
    for (pattern, matched) in topics.by_pattern {
        if !group.patterns().contains_key(&pattern) {
            continue;
        }
        let old = group.own.resolved.get(&pattern).map(|resolved| &resolved.topics);
        let topics_now = match old {
            Some(old) if *old == matched => Arc::clone(old),
            _ => {
                is_other |= old.is_some() || !matched.is_empty();
                matched
            }
        };
        let now = Resolved { topics: topics_now, version: topics.version, timestamp: out.now.wall.0 };
        group.own.resolved.insert(pattern.clone(), now);
        group.note(Entry::Regex(pattern));
    }
    let hash = group.metadata_hash(world);
    if is_other || hash != group.metadata_hash {
        group.raise(hash, out.now.mono);
        group.refresh_at = out.now.mono.plus(METADATA_REFRESH);
    }
    group.flush(out);
}

#[cfg(test)]
mod tests;
