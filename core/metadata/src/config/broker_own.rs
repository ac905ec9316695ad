//! The table of broker keys that are ours and that Kafka does not know.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`super::status`].

use super::key::{ConfigKey, long, string};

#[rustfmt::skip]
pub(super) const KEYS: &[ConfigKey] = &[
    string("log.ack.durability", "synced").one_of(&["synced", "written"]).high()
        .doc("When `acks=all` is answered: `synced`, after the batch is on disk on every in-sync replica; `written`, \
              as Kafka does it, after it is in their page caches."),
    long("log.dir.min.free.bytes", "-1").at_least(-1).high()
        .doc("Producers are refused with a retriable error while a log directory's file system has less room than this, and \
              let in again when it has a quarter more. The rest goes on. -1: a hundredth of the file system, between \
              32 MiB and 1 GiB, but not more than an eighth of it."),
    string("record.validation", "header").one_of(&["header", "full"])
        .doc("How much of a produced batch is looked at when no rule asks for more: `header`, or `full`, every record, \
              as Kafka does it."),
];
