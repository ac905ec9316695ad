//! The one thing that is read of what members say to each other: the topics that consumers subscribe to.
//!
//! Every version of the consumer protocol begins as version 0 does (version int16, then an array of topic names), so no
//! version needs to be known. What cannot be read makes the group one whose topics are not known, never an error.
//!
//! # Source
//! Kafka `ClassicGroup.computeSubscribedTopics`.

use std::collections::BTreeSet;

use barnabas_base::Text;
use bytes::{Buf, Bytes};

/// What these subscriptions name together; `None` where one is missing or cannot be read.
pub(super) fn topics<'a>(subscriptions: impl Iterator<Item = Option<&'a Bytes>>) -> Option<BTreeSet<Text>> {
    let mut all = BTreeSet::new();
    for subscription in subscriptions {
        read(subscription?.clone(), &mut all)?;
    }
    Some(all)
}

fn read(mut subscription: Bytes, all: &mut BTreeSet<Text>) -> Option<()> {
    let version = subscription.try_get_i16().ok()?;
    let count = subscription.try_get_i32().ok()?;
    if version < 0 || count < 0 {
        return None;
    }
    for _ in 0..count {
        let length = usize::try_from(subscription.try_get_i16().ok()?).ok()?;
        if subscription.remaining() < length {
            return None;
        }
        let name = subscription.split_to(length);
        all.insert(Text::from(std::str::from_utf8(&name).ok()?));
    }
    Some(())
}
