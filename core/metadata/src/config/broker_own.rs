//! The table of broker keys that are ours and that Kafka does not know.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`super::status`].

use super::key::{ConfigKey, long, string};

#[rustfmt::skip]
pub(super) const KEYS: &[ConfigKey] = &[
    string("log.ack.durability", "synced").one_of(&["synced", "written"]).high()
        .doc("When `acks=all` is answered: `synced`, after the batch is on disk on every in-sync replica; `written`, \
              as Kafka does it, after it is in their page caches."),
    long("log.cache.bytes", "").null().at_least(0)
        .doc("Memory of the node for recently appended batches that are in their segments already, so that readers near the \
              end read no file; unset, a sixteenth of the machine's memory, at most 512 MiB."),
    long("log.dir.min.free.bytes", "-1").at_least(-1).high()
        .doc("Producers are refused with a retriable error while a log directory's file system has less room than this, and \
              let in again when it has a quarter more. The rest goes on. -1: a hundredth of the file system, between \
              32 MiB and 1 GiB, but not more than an eighth of it."),
    long("log.journal.append.bytes.max", "524288").between(0, 2_097_152)
        .doc("What one partition appends at once goes through the journal up to so many bytes; more goes straight into the \
              segment and is synced there, so that it is written once."),
    long("log.journal.bytes", "").null().at_least(12_582_912)
        .doc("Size of each log directory's journal; unset, 256 MiB, at most a twentieth of the file system."),
    long("log.journal.linger.us", "200").between(0, 100_000)
        .doc("The least time between the ends of two rounds of the journal, unless a round is large: more makes rounds larger \
              and fewer under a load of small batches, and answers later. A journal that is idle never waits."),
    long("log.open.files.max", "-1").at_least(-1)
        .doc("Log files that are kept open, over all partitions and log directories; others are opened when they are needed. Files \
              that are being synced may be open beside them. -1: half of the process's limit of descriptors; never more \
              than that."),
    long("log.scrub.bytes.per.second", "33554432").at_least(0)
        .doc("How fast sealed segments are read in the background to find bytes that have changed by themselves. 0: not at all."),
    long("log.scrub.interval.ms", "604800000").at_least(1000)
        .doc("How long after the beginning of one look through all sealed segments of a log directory the next one begins."),
    string("record.validation", "header").one_of(&["header", "full"])
        .doc("How much of a produced batch is looked at when no rule asks for more: `header`, or `full`, every record, \
              as Kafka does it."),
];
