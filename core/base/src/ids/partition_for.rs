//! Which partition of an internal topic a group id or transactional id belongs to.
//!
//! Clients do not compute this, but an Apache broker in the same cluster does, and data directories hold what Apache
//! brokers wrote: the arithmetic must be Java's to the bit.

use crate::PartitionIndex;

/// Java's `String.hashCode`: over UTF-16 units, wrapping.
pub fn java_hash(text: &str) -> i32 {
    if text.is_ascii() {
        return hash_of_ascii(text.as_bytes());
    }
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// Sixteen characters a step, of which each is multiplied on its own: an answer may hold thousands of names of 10 kB.
fn hash_of_ascii(text: &[u8]) -> i32 {
    const STEP: usize = 16;
    const POWERS: [i32; STEP] = {
        let mut powers = [1i32; STEP];
        let mut at = STEP - 1;
        while at > 0 {
            powers[at - 1] = powers[at].wrapping_mul(31);
            at -= 1;
        }
        powers
    };
    const STEP_POWER: i32 = POWERS[0].wrapping_mul(31);
    let (steps, rest) = text.as_chunks::<STEP>();
    let hash = steps.iter().fold(0i32, |hash, step| {
        let of_step = step.iter().zip(POWERS).map(|(&unit, power)| i32::from(unit).wrapping_mul(power));
        of_step.fold(hash.wrapping_mul(STEP_POWER), i32::wrapping_add)
    });
    rest.iter().fold(hash, |hash, &unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
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
    fn the_hash_of_ascii_is_that_of_its_units() {
        let text: String = (0..100).map(|number| char::from(b' ' + (number * 7 % 95) as u8)).collect();
        for length in 0..text.len() {
            let units = text[..length].encode_utf16();
            let expected = units.fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
            assert_eq!(java_hash(&text[..length]), expected, "{length}");
        }
    }

    #[test]
    fn the_one_hash_without_an_opposite_counts_as_zero() {
        assert_eq!(partition_for("polygenelubricants", 50), PartitionIndex(0));
        assert_eq!(partition_for("a", 50), PartitionIndex(47));
    }
}
