//! `%020d.txnindex`: the aborted transactions whose markers lie in a segment, in the order of their markers.
//!
//! An entry is 34 bytes: version (i16, 0), producer id, first offset, last offset, last stable offset (i64 each). The
//! file is made with the first entry. Source: Kafka `TransactionIndex`, `AbortedTxn`.

use barnabas_base::{Offset, ProducerId};

pub(crate) const ENTRY_BYTES: usize = 34;

/// One aborted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
    /// The offset of the abort marker.
    pub last_offset: Offset,
    /// The last stable offset once this transaction was over.
    pub last_stable_offset: Offset,
}

impl AbortedTransaction {
    pub(crate) fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        let fields = [
            self.producer_id.get(),
            self.first_offset.get(),
            self.last_offset.get(),
            self.last_stable_offset.get(),
        ];
        for (field, to) in fields.iter().zip(bytes[2..].chunks_exact_mut(8)) {
            to.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8; ENTRY_BYTES]) -> Option<Self> {
        if bytes[..2] != [0, 0] {
            return None;
        }
        let field = |at: usize| {
            let from = 2 + at * 8;
            i64::from_be_bytes(bytes[from..from + 8].try_into().expect("eight bytes"))
        };
        Some(Self {
            producer_id: ProducerId(field(0)),
            first_offset: Offset(field(1)),
            last_offset: Offset(field(2)),
            last_stable_offset: Offset(field(3)),
        })
    }
}

/// The entries at the front of a segment's index, and how many bytes they take. Where that is not all of `bytes`, what
/// follows is no entry, or one that is cut off.
pub(crate) fn decode_front(bytes: &[u8], base: Offset) -> (Vec<AbortedTransaction>, usize) {
    let mut entries: Vec<AbortedTransaction> = Vec::new();
    let (chunks, _) = bytes.as_chunks::<ENTRY_BYTES>();
    for chunk in chunks {
        let rises = |entry: &AbortedTransaction| {
            entry.last_offset >= base
                && entry.first_offset <= entry.last_offset
                && entries.last().is_none_or(|before| before.last_offset < entry.last_offset)
        };
        match AbortedTransaction::decode(chunk).filter(rises) {
            Some(entry) => entries.push(entry),
            None => break,
        }
    }
    let whole = entries.len() * ENTRY_BYTES;
    (entries, whole)
}
