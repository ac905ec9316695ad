//! CRC-32C (Castagnoli), the checksum of record batches v2, behind one function.
//!
//! The only place that knows which crate computes it; `tests/crc.rs` checks it against a bitwise reference. The CRC-32
//! of old messages and of gzip is another polynomial: see `message_set`.

use crc_fast::{CrcAlgorithm, checksum, checksum_combine};

/// The CRC-32C of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// The CRC-32 (gzip's polynomial) of `bytes`, as messages v0 and v1 carry it.
pub fn crc32(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}

/// The CRC-32C of `head` followed by `tail_len` bytes whose CRC-32C is `tail_crc`.
pub fn crc32c_combine(head_crc: u32, tail_crc: u32, tail_len: usize) -> u32 {
    checksum_combine(CrcAlgorithm::Crc32Iscsi, u64::from(head_crc), u64::from(tail_crc), tail_len as u64)
        as u32
}

/// What becomes of `whole`, the CRC-32C of `old_head` and a tail, once `new_head`, equally long, stands before the
/// same tail. The tail is not read: a checksum is linear, so only the difference of the heads counts.
pub fn crc32c_replace_head(whole: u32, old_head: &[u8], new_head: &[u8], tail_len: usize) -> u32 {
    debug_assert_eq!(old_head.len(), new_head.len());
    whole ^ crc32c_combine(crc32c(old_head), 0, tail_len) ^ crc32c_combine(crc32c(new_head), 0, tail_len)
}
