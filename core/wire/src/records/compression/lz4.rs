//! The LZ4 frame as Kafka writes and reads it.
//!
//! ```text
//! 04 22 4D 18 | FLG | BD | [content size u64] | HC | blocks: size u32 LE (top bit: stored), bytes, [xxh32] | 0 u32 |
//! [xxh32]
//! ```
//! Written: 64 KiB blocks, independent of each other, no checksums. Read: independent blocks of any size, checksums of
//! blocks checked, that of the content skipped, as Kafka does; what follows the end mark is not looked at.
//!
//! HC is the second byte of xxh32 over FLG to content size. Kafka 0.8 computed it over the frame's magic too, and its
//! message format 0 has kept that: there it is written so, and not checked when read.
//!
//! Source: LZ4 frame format 1.6.1; Kafka `Lz4BlockOutputStream`, `Lz4BlockInputStream`, KAFKA-3160.

use crate::records::error::Fault;

const MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
const BLOCK_BYTES: usize = 64 << 10;
/// FLG: version 1, blocks independent. BD: blocks of at most 64 KiB.
const DESCRIPTOR: [u8; 2] = [0x60, 0x40];
const STORED: u32 = 1 << 31;

/// Appends `input` as one frame; `broken_checksum` is the header checksum of message format 0.
pub(crate) fn deflate(input: &[u8], broken_checksum: bool, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&DESCRIPTOR);
    let hashed = if broken_checksum { at } else { at + MAGIC.len() };
    let checksum = (xxh32(&out[hashed..]) >> 8) as u8;
    out.push(checksum);
    for block in input.chunks(BLOCK_BYTES) {
        let at = out.len();
        out.resize(at + 4 + lz4_flex::block::get_maximum_output_size(block.len()), 0);
        let written = lz4_flex::block::compress_into(block, &mut out[at + 4..]).unwrap_or(usize::MAX);
        let (size, flag) = if written < block.len() { (written, 0) } else { (block.len(), STORED) };
        out.truncate(at + 4 + size);
        if flag == STORED {
            out[at + 4..].copy_from_slice(block);
        }
        out[at..at + 4].copy_from_slice(&(size as u32 | flag).to_le_bytes());
    }
    out.extend_from_slice(&0u32.to_le_bytes());
}

/// What a frame's descriptor says.
struct Descriptor {
    block_bytes_max: usize,
    block_checksums: bool,
}

/// Appends what the frame `input` holds.
pub(crate) fn inflate(
    mut input: &[u8],
    ignore_checksum: bool,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let descriptor = read_descriptor(&mut input, ignore_checksum)?;
    // What lies behind it in `out` is room that a block was given and did not need. It is kept for the next block: to
    // fill it with zeros again for each of many short blocks would cost far more than the blocks.
    let mut end = out.len();
    loop {
        let size = u32::from_le_bytes(*take::<4>(&mut input)?);
        let stored = size & STORED != 0;
        let size = (size & !STORED) as usize;
        if size == 0 {
            out.truncate(end);
            return Ok(());
        }
        if size > descriptor.block_bytes_max {
            return fault("block is larger than the frame allows");
        }
        let Some((block, rest)) = input.split_at_checked(size) else { return fault("block is cut off") };
        input = rest;
        if descriptor.block_checksums && u32::from_le_bytes(*take::<4>(&mut input)?) != xxh32(block) {
            return fault("block checksum does not match");
        }
        if stored {
            out.truncate(end);
            out.extend_from_slice(block);
            end = out.len();
        } else {
            end += inflate_block(block, descriptor.block_bytes_max, limit, out, end)?;
        }
        if end > limit {
            return Err(Fault::TooLarge);
        }
    }
}

/// Inflates a block to `at` in `out`. Returns how many bytes came out.
fn inflate_block(
    block: &[u8],
    block_bytes_max: usize,
    limit: usize,
    out: &mut Vec<u8>,
    at: usize,
) -> Result<usize, Fault> {
    // LZ4 makes at most 255 bytes of one, so a short block is not given a whole block's room.
    let wanted = block_bytes_max.min(block.len().saturating_mul(255));
    let room = wanted.min(limit.saturating_sub(at).saturating_add(1));
    if out.len() < at + room {
        out.resize(at + room, 0);
    }
    match lz4_flex::block::decompress_into(block, &mut out[at..at + room]) {
        Ok(written) => Ok(written),
        Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) if room < wanted => Err(Fault::TooLarge),
        Err(error) => fault(&error.to_string()),
    }
}

fn read_descriptor(input: &mut &[u8], ignore_checksum: bool) -> Result<Descriptor, Fault> {
    if *take::<4>(input)? != MAGIC {
        return fault("does not begin with the frame magic");
    }
    let hashed = *input;
    let [flags, block] = *take::<2>(input)?;
    if flags >> 6 != 1 {
        return fault("unknown frame version");
    }
    if flags & 0x03 != 0 || block & 0x8f != 0 {
        return fault("reserved bits are set");
    }
    if flags & 0x20 == 0 {
        return fault("blocks that depend on each other are not supported");
    }
    let block_bytes_max = match (block >> 4) & 7 {
        size @ 4..=7 => 1usize << (2 * size + 8),
        _ => return fault("unknown block size"),
    };
    if flags & 0x08 != 0 {
        take::<8>(input)?;
    }
    let hashed = &hashed[..hashed.len() - input.len()];
    let [checksum] = *take::<1>(input)?;
    if !ignore_checksum && checksum != (xxh32(hashed) >> 8) as u8 {
        return fault("header checksum does not match");
    }
    Ok(Descriptor { block_bytes_max, block_checksums: flags & 0x10 != 0 })
}

fn fault<T>(what: &str) -> Result<T, Fault> {
    Err(Fault::Stream(what.into()))
}

fn take<'a, const N: usize>(input: &mut &'a [u8]) -> Result<&'a [u8; N], Fault> {
    let Some((taken, rest)) = input.split_first_chunk::<N>() else { return fault("frame is cut off") };
    *input = rest;
    Ok(taken)
}

const PRIMES: [u32; 5] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D, 0x27D4_EB2F, 0x1656_67B1];

/// xxHash32 with seed 0. Source: xxHash specification 0.1.1.
fn xxh32(bytes: &[u8]) -> u32 {
    let round = |lane: u32, word: u32| {
        lane.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(13).wrapping_mul(PRIMES[0])
    };
    let word = |chunk: &[u8]| u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    let mut hash = PRIMES[4];
    let stripes = bytes.chunks_exact(16);
    let mut rest = stripes.remainder();
    if bytes.len() >= 16 {
        let mut lanes = [PRIMES[0].wrapping_add(PRIMES[1]), PRIMES[1], 0, 0u32.wrapping_sub(PRIMES[0])];
        for stripe in stripes {
            for (lane, chunk) in lanes.iter_mut().zip(stripe.chunks_exact(4)) {
                *lane = round(*lane, word(chunk));
            }
        }
        hash = lanes[0].rotate_left(1);
        hash = hash.wrapping_add(lanes[1].rotate_left(7));
        hash = hash.wrapping_add(lanes[2].rotate_left(12)).wrapping_add(lanes[3].rotate_left(18));
    }
    hash = hash.wrapping_add(bytes.len() as u32);
    while let Some((chunk, tail)) = rest.split_first_chunk::<4>() {
        hash = hash.wrapping_add(u32::from_le_bytes(*chunk).wrapping_mul(PRIMES[2]));
        hash = hash.rotate_left(17).wrapping_mul(PRIMES[3]);
        rest = tail;
    }
    for &byte in rest {
        hash = hash.wrapping_add(u32::from(byte).wrapping_mul(PRIMES[4]));
        hash = hash.rotate_left(11).wrapping_mul(PRIMES[0]);
    }
    hash ^= hash >> 15;
    hash = hash.wrapping_mul(PRIMES[1]);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(PRIMES[2]);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_xxh32() {
        // The specification's sanity values: empty, and lengths on both sides of a stripe.
        assert_eq!(xxh32(b""), 0x02CC_5D05);
        assert_eq!(xxh32(b"a"), 0x550D_7456);
        assert_eq!(xxh32(b"abc"), 0x32D1_53FF);
        assert_eq!(xxh32(b"Nobody inspects the spammish repetition"), 0xE229_3B2F);
    }
}
