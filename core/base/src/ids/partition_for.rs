//! Which partition of an internal topic a group id or transactional id belongs to.
//!
//! Clients do not compute this, but an Apache broker in the same cluster does, and data directories hold what Apache
//! brokers wrote: the arithmetic must be Java's to the bit.

use crate::PartitionIndex;

/// Java's `String.hashCode`: over UTF-16 units, wrapping.
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// The partition of `id` among `partitions` (at least 1).
///
/// # Source
/// Kafka `GroupCoordinatorService.partitionFor`, `Utils.abs`: the smallest integer, which has no opposite, counts as 0.
pub fn partition_for(id: &str, partitions: i32) -> PartitionIndex {
    assert!(partitions > 0, "an internal topic without partitions");
    let hash = java_hash(id);
    let positive = if hash == i32::MIN { 0 } else { hash.abs() };
    PartitionIndex(positive % partitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values computed by java.lang.String.hashCode.
    #[test]
    fn the_hash_is_javas() {
        assert_eq!(java_hash(""), 0);
        assert_eq!(java_hash("a"), 97);
        assert_eq!(java_hash("console-consumer-12345"), 158_455_506);
        assert_eq!(java_hash("größe-😀"), 175_616_671);
        assert_eq!(java_hash("polygenelubricants"), i32::MIN);
    }

    #[test]
    fn the_one_hash_without_an_opposite_counts_as_zero() {
        assert_eq!(partition_for("polygenelubricants", 50), PartitionIndex(0));
        assert_eq!(partition_for("a", 50), PartitionIndex(47));
    }
}
