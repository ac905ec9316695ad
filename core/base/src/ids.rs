//! Numbers that must not be mixed up: each its own type, each with Kafka's width and sentinel.

pub(crate) mod epochs;
pub(crate) mod partition_for;
pub(crate) mod topic;
pub(crate) mod uuid;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        #[repr(transparent)]
        pub struct $name(pub $int);

        impl $name {
            /// The bare number, for the wire and for files.
            pub const fn get(self) -> $int {
                self.0
            }
        }

        impl From<$int> for $name {
            fn from(value: $int) -> Self {
                Self(value)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A record's place in its partition. The end of a range is the offset after its last record.
    Offset(i64)
}
number! {
    /// How often a partition's leadership has changed hands. −1: not known.
    LeaderEpoch(i32)
}
number! {
    /// How often the controller has changed a partition's state. −1: not known.
    PartitionEpoch(i32)
}
number! {
    /// A node. −1: none.
    BrokerId(i32)
}
number! {
    /// One registration of a broker: the metadata offset of its record. −1: not known.
    BrokerEpoch(i64)
}
number! {
    /// A partition's number within its topic.
    PartitionIndex(i32)
}
number! {
    /// An idempotent or transactional producer. −1: neither.
    ProducerId(i64)
}
number! {
    /// One life of a producer; a higher one fences the lower. −1: none.
    ProducerEpoch(i16)
}
number! {
    /// A producer's record count in one partition; runs from 0 to `i32::MAX`, then from 0 again. −1: none.
    Sequence(i32)
}
number! {
    /// One life of a transaction coordinator. −1: none.
    CoordinatorEpoch(i32)
}

number! {
    /// A connection to this node, counted as they are accepted: of two, the one with the higher number came later.
    ConnectionNumber(u64)
}

impl Offset {
    pub const ZERO: Self = Self(0);
    /// "No offset", as Kafka's wire and files write it.
    pub const NONE: Self = Self(-1);

    /// The offset `records` further on. It ends at the type's bounds: offsets of requests can be any number, and one
    /// that wraps would name another record.
    #[must_use]
    pub const fn plus(self, records: i64) -> Self {
        Self(self.0.saturating_add(records))
    }

    /// How many offsets lie from `earlier` up to this one. It ends at the type's bounds, as [`Offset::plus`] does.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// How many offsets lie from this one up to `last`, `last` among them.
    pub const fn count_to(self, last: Self) -> i64 {
        last.since(self).saturating_add(1)
    }
}

impl LeaderEpoch {
    pub const NONE: Self = Self(-1);
}

impl PartitionEpoch {
    pub const NONE: Self = Self(-1);
}

impl BrokerId {
    pub const NONE: Self = Self(-1);
}

impl BrokerEpoch {
    pub const NONE: Self = Self(-1);
}

impl ProducerId {
    pub const NONE: Self = Self(-1);

    pub const fn is_some(self) -> bool {
        self.0 >= 0
    }
}

impl ProducerEpoch {
    pub const NONE: Self = Self(-1);
}

impl CoordinatorEpoch {
    pub const NONE: Self = Self(-1);
}

impl Sequence {
    pub const NONE: Self = Self(-1);

    /// The sequence `records` further on, past `i32::MAX` from 0 again.
    ///
    /// # Source
    /// Kafka `DefaultRecordBatch.incrementSequence`.
    #[must_use]
    pub const fn plus(self, records: i32) -> Self {
        match self.0.checked_add(records) {
            Some(sum) => Self(sum),
            // Past the end by so many, which wraps to a number from 0 on.
            None => Self(self.0.wrapping_add(records) & i32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_wraps_to_zero() {
        assert_eq!(Sequence(i32::MAX).plus(1), Sequence(0));
        assert_eq!(Sequence(i32::MAX - 1).plus(3), Sequence(1));
        assert_eq!(Sequence(5).plus(3), Sequence(8));
        assert_eq!(Sequence(i32::MAX).plus(i32::MAX), Sequence(i32::MAX - 1));
    }

    #[test]
    fn offsets_of_requests_end_at_the_bounds_of_the_type() {
        let (least, largest) = (Offset(i64::MIN), Offset(i64::MAX));
        assert_eq!(largest.plus(1), largest);
        assert_eq!(least.plus(-1), least);
        assert_eq!(largest.since(least), i64::MAX);
        assert_eq!(least.since(largest), i64::MIN);
        assert_eq!(least.count_to(largest), i64::MAX);
        assert_eq!(Offset(3).count_to(Offset(5)), 3);
    }
}
