//! Mistakes in opening, syncing and cleaning a log that tests plant, one at a time, to show that they would be noticed.
//! Outside of tests there are none.

/// See `log/tests/kill.rs`, `chain.rs` and `headers.rs`, `cleaner/tests/crashes.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Index entries past the recovery point are believed, and what lies before the last of them is not checked.
    BelievesEntriesPastRecoveryPoint,
    /// A producer snapshot that is newer than the recovery point is believed.
    BelievesNewerSnapshots,
    /// Times that were indexed before the newest offset entry are taken for all there are.
    BelievesTimesToTheEnd,
    /// A log ends where its last batch says, whatever is known of its end.
    BelievesTheLastBatch,
    /// Retention does not say first which segments go.
    DeletesBeforeItSaysSo,
    /// What is found is durable as it is found, whatever an earlier process did to it before it was killed.
    TakesFoundForSynced,
    /// A sync that began late covers all that was written by then, whatever its files.
    CoversOtherFiles,
    /// Of two records with one key the older one stays.
    KeepsTheOlder,
    /// Tombstones go when they are first seen.
    DropsTombstonesAtOnce,
    /// A batch without records goes, though its producer's last sequence stands there.
    ForgetsProducers,
    /// Aborted records are taken for the newest of their key.
    BelievesAborted,
    /// Markers go before the records of their transaction.
    DropsMarkersFirst,
    /// Damaged batches are cleaned like others.
    SkipsChecksums,
    /// The old segments go before the new ones are ready to take their place.
    SwapsOldFirst,
    /// A log that was truncated in the meantime gets its old records back.
    IgnoresTruncation,
    /// What an earlier cleaning left lies beside this one's files.
    LeavesStrangers,
}

barnabas_base::planted!(Mistake);
