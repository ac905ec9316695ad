//! Which offsets nobody has needed for as long as the retention lasts.
//!
//! - A group that had members and is empty: counted from when it became empty.
//! - A stable group of consumers: offsets of topics that none of them subscribes to, counted from the commit.
//! - A group that never had members: counted from the commit.
//! - An offset whose client set a retention of its own (versions 2 to 4): when it says.
//! - Otherwise nothing expires.
//!
//! # Source
//! KIP-211; Kafka 4.4 `ClassicGroup.offsetExpirationCondition`, `OffsetMetadataManager.cleanupExpiredOffsets`.

use barnabas_base::{DurationMs, TimestampMs};

use super::store::{OffsetEntry, OffsetKey, Offsets};
use crate::classic::{ClassicGroup, State};

/// What expires in one group.
pub(crate) struct Expired {
    pub keys: Vec<OffsetKey>,
    /// Nothing would be left.
    pub is_all: bool,
}

enum Since {
    Commit,
    Moment(TimestampMs),
}

pub(crate) fn expire(
    offsets: &Offsets,
    group: &ClassicGroup,
    now: TimestampMs,
    retention: DurationMs,
) -> Expired {
    let mut keys = Vec::new();
    let mut is_all = !offsets.has_open_transactions(&group.id);
    let Some(topics) = offsets.of_group(&group.id) else { return Expired { keys, is_all } };
    let Some(since) = since(group) else { return Expired { keys, is_all: false } };
    for (topic, partitions) in topics {
        let is_read = group.is_subscribed(topic);
        for (partition, slot) in partitions {
            let Some(entry) = slot.latest() else { continue };
            let is_over = !is_read && is_expired(entry, &since, now, retention);
            if is_over && !offsets.is_unstable(&group.id, topic, *partition) {
                let (group, topic) = (group.id.clone(), topic.clone());
                keys.push(OffsetKey { group, topic, partition: *partition });
            } else {
                is_all = false;
            }
        }
    }
    Expired { keys, is_all }
}

fn since(group: &ClassicGroup) -> Option<Since> {
    if group.protocol_type.is_none() {
        return Some(Since::Commit);
    }
    match group.state {
        State::Empty => Some(group.state_since.map_or(Since::Commit, Since::Moment)),
        State::Stable if group.is_consumer() && group.subscribed.is_some() => Some(Since::Commit),
        _ => None,
    }
}

fn is_expired(entry: &OffsetEntry, since: &Since, now: TimestampMs, retention: DurationMs) -> bool {
    if entry.expire_timestamp != -1 {
        return now.0 >= entry.expire_timestamp;
    }
    let from = match since {
        Since::Commit => entry.commit_timestamp,
        Since::Moment(moment) => moment.0,
    };
    now.0.saturating_sub(from) >= retention.0
}
