//! Snappy as Java's snappy-java frames it, and bare.
//!
//! ```text
//! 82 53 4E 41 50 50 59 00 | version i32 = 1 | compatible i32 = 1 | then per chunk: length i32, one snappy block
//! ```
//! snappy-java cuts at 32 KiB. librdkafka and others send one bare block without any of this; what does not begin with
//! the eight bytes is read so.
//!
//! Source: xerial snappy-java `SnappyOutputStream`, `SnappyInputStream`.

use crate::records::error::Fault;

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const CHUNK_BYTES: usize = 32 << 10;

/// Appends `input` in snappy-java's framing.
pub(crate) fn deflate(input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&1i32.to_be_bytes());
    out.extend_from_slice(&1i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for chunk in input.chunks(CHUNK_BYTES) {
        let at = out.len();
        out.resize(at + 4 + snap::raw::max_compress_len(chunk.len()), 0);
        let written = encoder.compress(chunk, &mut out[at + 4..]).map_err(|error| error.to_string())?;
        out[at..at + 4].copy_from_slice(&(written as i32).to_be_bytes());
        out.truncate(at + 4 + written);
    }
    Ok(())
}

/// Appends what `input` holds, framed or bare.
pub(crate) fn inflate(input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    if !input.starts_with(&MAGIC) {
        return inflate_block(input, limit, out);
    }
    // Version and oldest compatible version: snappy-java refuses streams that need a newer reader than itself; there
    // has been only version 1.
    let mut rest = input.get(16..).ok_or_else(|| Fault::Stream("header is cut off".into()))?;
    while !rest.is_empty() {
        // Streams written one after the other repeat the header.
        if rest.starts_with(&MAGIC) {
            rest = rest.get(16..).ok_or_else(|| Fault::Stream("header is cut off".into()))?;
            continue;
        }
        let Some((length, tail)) = rest.split_first_chunk::<4>() else {
            return Err(Fault::Stream("chunk length is cut off".into()));
        };
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        let Some((chunk, tail)) = length.and_then(|length| tail.split_at_checked(length)) else {
            return Err(Fault::Stream("chunk is longer than what remains".into()));
        };
        inflate_block(chunk, limit, out)?;
        rest = tail;
    }
    Ok(())
}

fn inflate_block(block: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    let length = snap::raw::decompress_len(block).map_err(|error| Fault::Stream(error.to_string()))?;
    // A copy element of three bytes makes 64: a block that claims more than that lies, and is refused before memory is
    // set aside for it.
    if length > block.len().saturating_mul(32) {
        return Err(Fault::Stream("block claims more than it can hold".into()));
    }
    let at = out.len();
    if length > limit - at.min(limit) {
        return Err(Fault::TooLarge);
    }
    out.resize(at + length, 0);
    let written = snap::raw::Decoder::new()
        .decompress(block, &mut out[at..])
        .map_err(|error| Fault::Stream(error.to_string()))?;
    out.truncate(at + written);
    Ok(())
}
