//! Answers that are written piece by piece and are never in memory as a whole.
//!
//! The pieces are made of the same image in the same way each time. A first pass counts their bytes, because the length
//! of the frame stands before the first piece.
//!
//! Made by [`crate::k03_metadata`], [`crate::k32_describe_configs`], [`crate::k46_list_partition_reassignments`] and
//! [`crate::k74_list_config_resources`]; shell/broker/src/requests/call/pieces.rs writes them, beside the workers.

use barnabas_wire::{EncodeError, Writer};
use bytes::Bytes;

use crate::Context;

/// Topics, partitions and other entries from which on an answer is large: below, it is made in less than a millisecond.
pub(crate) const LARGE_MIN: usize = 2000;

/// Bytes of a piece, about.
pub const PIECE_BYTES: usize = 256 * 1024;

/// A long answer while it is written.
pub trait InPieces: Send {
    /// The next piece; `None` after the last. Always with the same context.
    ///
    /// # Errors
    /// A field cannot carry what is in the image. The connection is to be closed.
    fn piece(&mut self, ctx: &Context<'_>) -> Result<Option<Bytes>, EncodeError>;

    /// The same answer from its first piece on.
    fn rewound(&self) -> Box<dyn InPieces>;
}

/// Cuts a struct that was written with an empty array, after which `after` bytes and the tagged fields stand, around
/// that array; what comes before ends in the count that shall stand there.
pub(crate) fn around(written: &Bytes, after: usize, count: usize, is_flexible: bool) -> (Bytes, Bytes) {
    let (empty, tagged): (&[u8], usize) = if is_flexible { (&[1], 1) } else { (&[0; 4], 0) };
    let tail_at = written.len() - after - tagged;
    let count_at = tail_at - empty.len();
    assert_eq!(&written[count_at..tail_at], empty, "an empty array stands where it is expected");
    let mut w = Writer::with_capacity(tail_at + 8);
    w.raw_slice(&written[..count_at]);
    if is_flexible {
        w.uvarint(count as u32 + 1)
    } else {
        w.int32(count as i32)
    }
    (w.into_bytes(), written.slice(tail_at..))
}
