//! The table of broker keys that are ours and that Kafka does not know.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`super::status`].

use super::key::{ConfigKey, string};

#[rustfmt::skip]
pub(super) const KEYS: &[ConfigKey] = &[
    string("log.ack.durability", "synced").one_of(&["synced", "written"]).high()
        .doc("When `acks=all` is answered: `synced`, after the batch is on disk on every in-sync replica; `written`, \
              as Kafka does it, after it is in their page caches."),
    string("record.validation", "header").one_of(&["header", "full"])
        .doc("How much of a produced batch is looked at when no rule asks for more: `header`, or `full`, every record, \
              as Kafka does it."),
];
