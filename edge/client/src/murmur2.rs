//! Which partition a key belongs to: the hash that every Kafka client agrees on.

/// Kafka's hash of keys: MurmurHash2 with Kafka's seed. Every client library agrees on it.
///
/// # Source
/// Austin Appleby's MurmurHash2, in the public domain; seed 0x9747b28c, Kafka `Utils.murmur2`.
pub fn murmur2(key: &[u8]) -> i32 {
    const FACTOR: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c_u32 ^ key.len() as u32;
    let mut words = key.chunks_exact(4);
    for word in &mut words {
        let mut mixed = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(FACTOR);
        mixed = (mixed ^ (mixed >> 24)).wrapping_mul(FACTOR);
        hash = hash.wrapping_mul(FACTOR) ^ mixed;
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(FACTOR);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(FACTOR);
    (hash ^ (hash >> 15)) as i32
}

#[cfg(test)]
mod tests {
    use super::murmur2;

    #[test]
    fn keys_hash_as_kafkas_clients_hash_them() {
        // Values that Kafka's own `Utils.murmur2` gave.
        for (key, hash) in KNOWN {
            assert_eq!(murmur2(key.as_bytes()), *hash, "{key}");
        }
    }

    const KNOWN: &[(&str, i32)] = &[
        ("", 275646681),
        ("a", -1563381124),
        ("ab", 316155434),
        ("abc", 479470107),
        ("abcd", -1323649548),
        ("hello, world", 853996457),
        ("the quick brown fox", 2136040129),
        ("21", -973932308),
    ];
}
