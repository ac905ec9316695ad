//! CRC-32C (Castagnoli), the checksum of record batches v2, behind one function.
//!
//! The only place that knows which crate computes it; the tests check it against a bitwise reference. The CRC-32 of old
//! messages and of gzip is another polynomial: see `message_set`.

use crc_fast::{CrcAlgorithm, checksum};

/// The CRC-32C of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// The CRC-32 (gzip's polynomial) of `bytes`, as messages v0 and v1 carry it.
pub fn crc32(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}

/// What becomes of `whole`, the CRC-32C of `old_head` and a tail, once `new_head`, equally long, stands before the same
/// tail. The tail is not read: a checksum is linear, so only the difference of the heads counts, moved over the tail's
/// length. That takes half a microsecond for any length.
pub(super) fn crc32c_replace_head(whole: u32, old_head: &[u8], new_head: &[u8], tail_len: usize) -> u32 {
    debug_assert_eq!(old_head.len(), new_head.len());
    let difference = crc32c(old_head) ^ crc32c(new_head);
    whole ^ multiply(difference, power_of_x(tail_len))
}

/// The Castagnoli polynomial, bits reflected: the highest bit stands for x⁰.
const POLYNOMIAL: u32 = 0x82F6_3B78;
const ONE: u32 = 1 << 31;

/// `a × b` modulo the polynomial, one bit of `a` at a time.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = ONE;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = if b & 1 == 0 { b >> 1 } else { (b >> 1) ^ POLYNOMIAL };
        bit >>= 1;
    }
    product
}

/// `x` to the power 8 × 2ⁿ for each n: what 2ⁿ bytes of zeros multiply a checksum with.
const POWERS: [u32; usize::BITS as usize] = {
    let mut powers = [0; usize::BITS as usize];
    // x⁸, of which each further entry is the square of the one before.
    powers[0] = ONE >> 8;
    let mut n = 1;
    while n < powers.len() {
        powers[n] = multiply(powers[n - 1], powers[n - 1]);
        n += 1;
    }
    powers
};

/// What `bytes` bytes of zeros multiply a checksum with.
fn power_of_x(bytes: usize) -> u32 {
    let set = (0..POWERS.len()).filter(|n| bytes >> n & 1 == 1);
    set.fold(ONE, |power, n| multiply(power, POWERS[n]))
}
