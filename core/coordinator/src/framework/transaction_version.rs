//! Which protocol of transactions a client, or the cluster, follows.

/// `transaction.version`: what a client, or the cluster, does about transactions.
///
/// # Source
/// KIP-890, KIP-1022; Kafka 4.4 `TransactionVersion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TransactionVersion(pub i16);

impl TransactionVersion {
    /// As Kafka always did it.
    pub const V0: Self = Self(0);
    /// Records have tagged fields.
    pub const V1: Self = Self(1);
    /// The epoch is bumped with each transaction; partitions add themselves.
    pub const V2: Self = Self(2);

    pub const fn bumps_epoch(self) -> bool {
        self.0 >= 2
    }

    /// The version of the record's value.
    pub const fn record_version(self) -> i16 {
        if self.0 >= 1 { 1 } else { 0 }
    }

    /// What a client's EndTxn says of it.
    pub const fn of_end_txn(request_version: i16) -> Self {
        if request_version >= 5 { Self::V2 } else { Self::V0 }
    }

    /// What an AddPartitionsToTxn says of the client behind it.
    pub const fn of_add_partitions(request_version: i16) -> Self {
        if request_version >= 5 { Self::V2 } else { Self::V0 }
    }
}
