//! Counters of what the node does and refuses. Plain atomics that any thread may increment. What is
//! counted for every request is in cells of each thread instead (recorder.rs).
//!
//! Each counter only rises; gauges (connections, claimed bytes) are asked of their owners.

use std::sync::atomic::{AtomicU64, Ordering};

/// One counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn one(&self) {
        self.add(1);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Everything that is counted.
#[derive(Debug, Default)]
pub struct Meter {
    pub connections_accepted: Counter,
    pub connections_refused: Counter,
    /// Closed since nothing came for `connections.max.idle.ms`.
    pub connections_idle_closed: Counter,
    /// Frames with a length that cannot be.
    pub bad_frames: Counter,
    /// Requests that could not be read, or whose API or version is not served here.
    pub bad_requests: Counter,
    pub batches_appended: Counter,
    pub batches_refused: Counter,
    /// Of these, those that a directory had no room for.
    pub batches_refused_full: Counter,
    /// Those that the partition's next leader took, when this broker had just ceased to lead.
    pub batches_forwarded: Counter,
    pub append_rounds: Counter,
    pub syncs: Counter,
    pub files_synced: Counter,
    pub journal_rounds: Counter,
    /// Padding included.
    pub journal_bytes: Counter,
    /// Brought from the journal into segments.
    pub written_back_bytes: Counter,
    pub write_backs: Counter,
    /// Appends that went straight into their segment.
    pub direct_appends: Counter,
    /// Appends that waited since the journal had too much to write.
    pub appends_held: Counter,
    pub partitions_opened: Counter,
    pub partitions_failed: Counter,
    pub metadata_records_applied: Counter,
    /// Changes of the in-sync replicas of what this broker led before and after, and those that the controller did not
    /// make.
    pub isr_shrinks: Counter,
    pub isr_expands: Counter,
    pub isr_updates_failed: Counter,
    /// Partitions of the cluster that a replica was made to lead that was neither in sync nor eligible.
    pub unclean_elections: Counter,
    /// Places in segments that are not what was written.
    pub damage_found: Counter,
    pub bytes_scrubbed: Counter,
    /// Fetches of this broker's followers whose records their leaders called damaged, or that came damaged.
    pub fetches_damaged: Counter,
    /// Dead letters of share groups that were written, Produce requests for them, and those that failed for good.
    pub dead_letters: Counter,
    pub dead_letter_requests: Counter,
    pub dead_letters_failed: Counter,
    /// What members of share groups said of records: accept, release, reject, renew.
    pub share_acknowledged: [Counter; 4],
    /// Records whose acquisition lock ended.
    pub share_locks_ended: Counter,
    /// Writes that this node's share coordinators were asked for.
    pub share_state_writes: Counter,
    /// Resources that a request asked for and its principal may not have.
    pub denied: Counter,
    pub otlp: Otlp,
    pub logins: Logins,
    pub audit: Audit,
}

/// What became of pushes of metrics.
#[derive(Debug, Default)]
pub struct Otlp {
    pub taken: Counter,
    pub failed: Counter,
    /// Points that the receiver says it rejected.
    pub points_rejected: Counter,
    /// Requests whose spans the receiver took, and those whose push failed or that it rejected.
    pub spans_taken: Counter,
    pub spans_failed: Counter,
}

/// What became of events for the audit log.
#[derive(Debug, Default)]
pub struct Audit {
    pub taken: Counter,
    /// Its queue was full.
    pub dropped: Counter,
    /// Lines that its file did not take.
    pub failed: Counter,
    /// Lines that are in its topic, and lines that are not: their queue was full, the topic does not take them, or the
    /// node stopped.
    pub topic_written: Counter,
    pub topic_dropped: Counter,
}

/// What came of clients that authenticate by SASL.
#[derive(Debug, Default)]
pub struct Logins {
    pub succeeded: Counter,
    pub failed: Counter,
    /// Those of [`Self::failed`] whose client had authenticated before.
    pub failed_again: Counter,
    pub succeeded_again: Counter,
    /// How long those that succeeded took.
    pub first_ns: Counter,
    pub again_ns: Counter,
    /// Connections closed since their session had ended, and since their user was deleted.
    pub expired: Counter,
    pub revoked: Counter,
}

impl Logins {
    pub fn succeeded(&self, took_ns: u64) {
        self.succeeded.one();
        self.first_ns.add(took_ns);
    }

    pub fn succeeded_again(&self, took_ns: u64) {
        self.succeeded_again.one();
        self.again_ns.add(took_ns);
    }
}

impl Meter {
    /// Names and values, for the log line at the end of the process.
    pub fn snapshot(&self) -> [(&'static str, u64); 24] {
        [
            ("connections_accepted", self.connections_accepted.get()),
            ("connections_refused", self.connections_refused.get()),
            ("connections_idle_closed", self.connections_idle_closed.get()),
            ("bad_frames", self.bad_frames.get()),
            ("bad_requests", self.bad_requests.get()),
            ("batches_appended", self.batches_appended.get()),
            ("batches_refused", self.batches_refused.get()),
            ("batches_refused_full", self.batches_refused_full.get()),
            ("batches_forwarded", self.batches_forwarded.get()),
            ("append_rounds", self.append_rounds.get()),
            ("syncs", self.syncs.get()),
            ("files_synced", self.files_synced.get()),
            ("journal_rounds", self.journal_rounds.get()),
            ("journal_bytes", self.journal_bytes.get()),
            ("written_back_bytes", self.written_back_bytes.get()),
            ("write_backs", self.write_backs.get()),
            ("direct_appends", self.direct_appends.get()),
            ("appends_held", self.appends_held.get()),
            ("partitions_opened", self.partitions_opened.get()),
            ("partitions_failed", self.partitions_failed.get()),
            ("metadata_records_applied", self.metadata_records_applied.get()),
            ("damage_found", self.damage_found.get()),
            ("bytes_scrubbed", self.bytes_scrubbed.get()),
            ("fetches_damaged", self.fetches_damaged.get()),
        ]
    }
}
