//! Rounds and entries ↔ bytes, as docs/format/journal.md draws them. All numbers are big-endian, as in Kafka's files.

use std::sync::Arc;

use barnabas_base::{DirectoryId, LeaderEpoch, Offset, PartitionIndex, TopicPartition, Uuid};
use barnabas_wire::records::crc32c;
use bytes::Bytes;

use super::types::{Entry, EntryKind, JournalPartition, Place};
use crate::disk::block_buffer::BlockBuffer;
use crate::segment::batch::AppendBytes;

pub(super) const MAGIC: [u8; 8] = *b"BarnJrn\x01";
/// From here on the checksum covers.
const CHECKED_FROM: usize = 12;
pub(super) const ROUND_HEADER_BYTES: usize = 88;
pub(super) const ENTRY_HEADER_BYTES: usize = 48;

const RECORDS: u8 = 1;
const RANGE: u8 = 2;
const TRUNCATE: u8 = 3;
const RESTART: u8 = 4;
const REMOVE: u8 = 5;

/// What a round says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoundHeader {
    pub checksum: u32,
    /// Header and entries, without the padding.
    pub len: u32,
    pub directory: DirectoryId,
    /// Drawn at random whenever the journal is opened: what an earlier process left half-written never fits in.
    pub opening: u64,
    pub number: u64,
    pub place: Place,
    pub replay_from: Place,
    pub previous_checksum: u32,
    /// The opening that this one goes on behind; the same in all its rounds. 0: it begins with itself.
    pub continues: u64,
    pub entries: u32,
}

impl RoundHeader {
    /// Completes the header at the front of `buffer`, which holds the entries already. Returns the checksum.
    pub(super) fn seal(mut self, buffer: &mut BlockBuffer) -> u32 {
        self.len = u32::try_from(buffer.len()).expect("a round is smaller than its file");
        let bytes = buffer.bytes_mut();
        bytes[..8].copy_from_slice(&MAGIC);
        let mut at = CHECKED_FROM;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&self.len.to_be_bytes());
        put(&self.directory.0);
        put(&self.opening.to_be_bytes());
        put(&self.number.to_be_bytes());
        put(&self.place.life.to_be_bytes());
        put(&self.place.position.to_be_bytes());
        put(&self.entries.to_be_bytes());
        put(&self.replay_from.life.to_be_bytes());
        put(&self.replay_from.position.to_be_bytes());
        put(&self.previous_checksum.to_be_bytes());
        put(&self.continues.to_be_bytes());
        assert_eq!(at, ROUND_HEADER_BYTES, "the header is drawn in docs/format/journal.md");
        let checksum = crc32c(&bytes[CHECKED_FROM..]);
        bytes[8..CHECKED_FROM].copy_from_slice(&checksum.to_be_bytes());
        checksum
    }

    /// Reads a header; says nothing of whether the round is whole ([`checksum_is_right`]).
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut read = Read { bytes: bytes.get(..ROUND_HEADER_BYTES)? };
        if read.array::<8>()? != MAGIC {
            return None;
        }
        let header = Self {
            checksum: u32::from_be_bytes(read.array()?),
            len: u32::from_be_bytes(read.array()?),
            directory: Uuid(read.array()?),
            opening: u64::from_be_bytes(read.array()?),
            number: u64::from_be_bytes(read.array()?),
            place: Place {
                life: u64::from_be_bytes(read.array()?),
                position: u32::from_be_bytes(read.array()?),
            },
            entries: u32::from_be_bytes(read.array()?),
            replay_from: Place {
                life: u64::from_be_bytes(read.array()?),
                position: u32::from_be_bytes(read.array()?),
            },
            previous_checksum: u32::from_be_bytes(read.array()?),
            continues: u64::from_be_bytes(read.array()?),
        };
        (header.len as usize >= ROUND_HEADER_BYTES).then_some(header)
    }

    /// Whether this round is the one after `before`: of the same opening, or the first of one that goes on behind it.
    pub(super) fn follows(&self, before: &Self) -> bool {
        let is_same = self.opening == before.opening && self.continues == before.continues;
        let goes_on = self.continues == before.opening && self.place.position == 0;
        (is_same || goes_on)
            && self.number == before.number + 1
            && self.previous_checksum == before.checksum
            && self.replay_from >= before.replay_from
    }

    /// Whether `round` (`len` bytes from the magic on) is what was written.
    pub(super) fn checksum_is_right(&self, round: &[u8]) -> bool {
        crc32c(&round[CHECKED_FROM..]) == self.checksum
    }
}

/// Bytes of `entry` in a round.
pub(super) fn entry_bytes(entry: &Entry) -> usize {
    let records = match &entry.kind {
        EntryKind::Records { records, .. } => records_len(records),
        _ => 0,
    };
    ENTRY_HEADER_BYTES + entry.partition.topic_partition.topic.len() + records
}

pub(super) fn records_len(records: &AppendBytes) -> usize {
    match records {
        AppendBytes::Whole(bytes) => bytes.len(),
        AppendBytes::Split { header, body } => header.len() + body.len(),
    }
}

pub(super) fn push_entry(buffer: &mut BlockBuffer, entry: &Entry) {
    let name = entry.partition.topic_partition.topic.as_bytes();
    let name_len = u8::try_from(name.len()).expect("a topic's name has at most 249 bytes");
    let (kind, from, end) = match entry.kind {
        EntryKind::Records { from, end, .. } => (RECORDS, from, end),
        EntryKind::Range { from, end } => (RANGE, from, end),
        EntryKind::Truncate { end } => (TRUNCATE, end, end),
        EntryKind::Restart { at } => (RESTART, at, at),
        EntryKind::Remove => (REMOVE, Offset::ZERO, Offset::ZERO),
    };
    let len = u32::try_from(entry_bytes(entry)).expect("an entry is smaller than its round");
    let mut header = [0; ENTRY_HEADER_BYTES];
    header[..4].copy_from_slice(&len.to_be_bytes());
    header[4] = kind;
    header[5] = name_len;
    header[8..24].copy_from_slice(&entry.partition.topic_id.0);
    header[24..28].copy_from_slice(&entry.partition.topic_partition.partition.get().to_be_bytes());
    header[28..32].copy_from_slice(&entry.leader_epoch.get().to_be_bytes());
    header[32..40].copy_from_slice(&from.get().to_be_bytes());
    header[40..].copy_from_slice(&end.get().to_be_bytes());
    buffer.push(&header);
    buffer.push(name);
    match &entry.kind {
        EntryKind::Records { records: AppendBytes::Whole(bytes), .. } => buffer.push(bytes),
        EntryKind::Records { records: AppendBytes::Split { header, body }, .. } => {
            buffer.push(header);
            buffer.push(body);
        }
        _ => {}
    }
}

/// The entries of a round with a valid checksum; `None`: they do not parse, so another program wrote them.
pub(super) fn parse_entries(round: &Bytes, header: &RoundHeader) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut at = ROUND_HEADER_BYTES;
    while at < round.len() {
        let len = u32::from_be_bytes(Read { bytes: &round[at..] }.array()?) as usize;
        if len < ENTRY_HEADER_BYTES || len > round.len() - at {
            return None;
        }
        entries.push(parse_entry(&round.slice(at..at + len))?);
        at += len;
    }
    (entries.len() == header.entries as usize).then_some(entries)
}

fn parse_entry(bytes: &Bytes) -> Option<Entry> {
    let mut read = Read { bytes: &bytes[4..] };
    let [kind, name_len, _, _] = read.array()?;
    let topic_id = Uuid(read.array()?);
    let partition = PartitionIndex(i32::from_be_bytes(read.array()?));
    let leader_epoch = LeaderEpoch(i32::from_be_bytes(read.array()?));
    let from = Offset(i64::from_be_bytes(read.array()?));
    let end = Offset(i64::from_be_bytes(read.array()?));
    let name_end = ENTRY_HEADER_BYTES + usize::from(name_len);
    let name = std::str::from_utf8(bytes.get(ENTRY_HEADER_BYTES..name_end)?).ok()?;
    let records = bytes.slice(name_end..);
    let kind = match kind {
        RECORDS if !records.is_empty() && from < end => {
            EntryKind::Records { from, end, records: AppendBytes::Whole(records) }
        }
        RANGE if records.is_empty() => EntryKind::Range { from, end },
        TRUNCATE if records.is_empty() => EntryKind::Truncate { end },
        RESTART if records.is_empty() => EntryKind::Restart { at: end },
        REMOVE if records.is_empty() => EntryKind::Remove,
        _ => return None,
    };
    let topic_partition = TopicPartition::new(name, partition);
    Some(Entry { partition: Arc::new(JournalPartition { topic_id, topic_partition }), leader_epoch, kind })
}

/// Takes fields off the front.
struct Read<'a> {
    bytes: &'a [u8],
}

impl Read<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*field)
    }
}
