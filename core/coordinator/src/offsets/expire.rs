//! Expiration of offsets that have not been used for the retention time.
//!
//! - A group that had members and is empty: counted from when it became empty.
//! - A stable group of consumers: offsets of topics that none of them subscribes to, counted from the commit.
//! - A group that never had members, and a consumer or streams group (KIP-848, KIP-1071): counted from the commit,
//!   for topics without subscribers in the group.
//! - An offset whose client set a retention of its own (versions 2 to 4): when it says.
//! - Otherwise nothing expires.
//!
//! # Source
//! KIP-211; Kafka 4.4 `ClassicGroup.offsetExpirationCondition`, `OffsetMetadataManager.cleanupExpiredOffsets`.

use barnabas_base::{DurationMs, Text, TimestampMs};

use super::store::{OffsetEntry, Offsets};
use crate::groups::Group;
use crate::groups::classic::State;
use crate::records::OffsetKey;

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
    id: &Text,
    group: &Group,
    now: TimestampMs,
    retention: DurationMs,
) -> Expired {
    let mut keys = Vec::new();
    let mut is_all = !offsets.has_open_transactions(id);
    let Some(topics) = offsets.of_group(id) else { return Expired { keys, is_all } };
    let Some(since) = since(group) else { return Expired { keys, is_all: false } };
    for (topic, partitions) in topics {
        let is_read = match group {
            Group::Classic(group) => group.is_subscribed(topic),
            Group::Consumer(group) => group.is_subscribed(topic),
            Group::Streams(group) => group.is_subscribed(topic),
            Group::Share(_) => true,
        };
        for (partition, slot) in partitions {
            let Some(entry) = slot.latest() else { continue };
            let is_over = !is_read && is_expired(entry, &since, now, retention);
            if is_over && !offsets.is_unstable(id, topic, *partition) {
                let (group, topic) = (id.clone(), topic.clone());
                keys.push(OffsetKey { group, topic, partition: *partition });
            } else {
                is_all = false;
            }
        }
    }
    Expired { keys, is_all }
}

fn since(group: &Group) -> Option<Since> {
    let group = match group {
        Group::Classic(group) => group,
        Group::Consumer(_) | Group::Streams(_) => return Some(Since::Commit),
        Group::Share(_) => return None,
    };
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
