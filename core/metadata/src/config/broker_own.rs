//! The table of broker keys that are ours and that Kafka does not know.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`super::status`]. docs/SETTINGS.md is made from this
//! table: `doc` says what a key does, what is in force where it is not set, and what more and less of it cost and give. What does not
//! depend on the table alone (the machine's memory, the size of a file system) is judged at the start:
//! shell/broker/src/in_force.rs.

use super::key::{ConfigKey, Valid, long, string};

#[rustfmt::skip]
pub(super) const KEYS: &[ConfigKey] = &[
    string("log.ack.durability", "synced").one_of(&["synced", "written"]).high()
        .doc("When producers are answered: `synced`, after their batch is on disk (with `acks=all`, on every in-sync replica); \
              `written`, as Kafka does it, after it is in page caches. `written` saves the journal and its writes; a power cut then \
              loses what was acknowledged in the seconds before it."),
    long("log.cache.bytes", "").null().between(0, 1 << 40).unit("bytes")
        .doc("Memory of the node for recently appended batches that are in their segments already, so that readers near the \
              end read no file. Unset: a sixteenth of the machine's memory, at most 512 MiB. More than half of the machine's memory is \
              refused at the start. More serves readers that are further behind without a read; 0 leaves all of that to the \
              page cache."),
    long("log.dir.min.free.bytes", "-1").or_between(-1, 0, 1 << 50).unit("bytes").high().cluster_wide()
        .doc("Producers are refused with a retriable error while a log directory's file system has less room than this, and \
              let in again when it has a quarter more. The rest goes on. -1: a hundredth of the file system, between \
              32 MiB and 1 GiB, but not more than an eighth of it. More than the whole file system is refused at the start. 0 lets \
              producers fill the disk; what consumers, retention and the next start need is then taken from a small reserve."),
    long("log.journal.append.bytes.max", "524288").between(0, 2_097_152).unit("bytes")
        .doc("What one partition appends at once goes through the journal up to so many bytes; more goes straight into the \
              segment and is synced there, so that it is written once. More writes large appends twice; less costs a sync of its own \
              for each that is larger. 0: the journal takes no records."),
    long("log.journal.bytes", "").null().between(12_582_912, 8_589_934_592).unit("bytes")
        .doc("Size of each log directory's journal, which is set aside with the directory's first record and given back at a clean \
              stop. Unset: 256 MiB, at most a twentieth of the file system, at least 12 MiB. More than half of the file system is \
              refused at the start. More lets small appends gather longer before they are laid into segments, in larger \
              pieces; a start after a kill replays at most this much. A changed value holds for a journal that is made anew: after the next clean stop. After a kill the journal goes on with the files that it has."),
    long("log.journal.linger.us", "200").between(0, 100_000).unit("microseconds")
        .doc("The least time between the ends of two rounds of the journal, unless a round is large: more makes rounds larger \
              and fewer under a load of small batches, which saves CPU and writes, and answers later by up to as much; where each \
              such time brings 24 KiB it is followed by another, up to five. A journal that is idle never waits."),
    long("log.open.files.max", "-1").or_between(-1, 64, 1_048_576).unit("files")
        .doc("Log files that are open at a time, over all partitions and log directories, those that wait for a sync included; others \
              are opened when they are needed. -1: three quarters of what the process's limit of descriptors (`ulimit -n`, the soft \
              limit is raised to the hard one) leaves beside the node's own; the rest is for connections. Never more than that limit \
              allows with 16 connections left. Fewer cost about 2 µs for each file that has to be opened again."),
    long("log.scrub.bytes.per.second", "33554432").or_between(0, 65_536, 1 << 40).unit("bytes a second").cluster_wide()
        .doc("How fast segments are read in the background to find bytes that have changed by themselves. More finds them \
              sooner and takes as much of the disk's bandwidth. 0: not at all; then only what consumers read is checked."),
    long("log.scrub.interval.ms", "604800000").between(1000, 315_360_000_000).unit("milliseconds").cluster_wide()
        .doc("How long after the beginning of one look through all segments of a log directory the next one begins. A week \
              where it is not set."),
    string("metrics.listener", "").null().valid(Valid::HostPort)
        .doc("Where `GET /metrics` is answered over HTTP, in the text that Prometheus reads, with the names that the JMX exporter gives \
              Kafka's figures (docs/METRICS.md): an address and a port, such as 127.0.0.1:9404. Unset: nowhere. The page names client ids \
              and log directories, and whoever reaches the address may read it. `barnabas hotspots` does not need it."),
    string("record.validation", "header").one_of(&["header", "full"])
        .doc("How much of a produced batch is looked at when no rule asks for more: `header`, or `full`, every record, \
              as Kafka does it. `full` finds records that a broken client put together wrongly, for the CPU that it takes to \
              decompress and walk each batch."),
];
