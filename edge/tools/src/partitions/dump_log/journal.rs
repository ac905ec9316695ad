//! The rounds of a journal's file and their entries: what is not written back to segments, or was lately.
//!
//! Reads one file for itself, in the order of its places. Whether a round is replayed after a crash also depends on the
//! other files (docs/format/journal.md, *Which round counts*); this shows what a round says of that.
//!
//! Source: docs/format/journal.md, which draws the bytes.

use super::segment::{batch_line, print_records};
use super::{Shown, failed};
use crate::{ToolError, say};
use barnabas_base::Uuid;
use barnabas_wire::records::{Entry as Stored, crc32c, entries};
use bytes::{Buf, Bytes};
use std::path::Path;

const MAGIC: &[u8; 8] = b"BarnJrn\x01";
const BLOCK_BYTES: usize = 4096;
const ROUND_HEADER_BYTES: usize = 88;
const ENTRY_HEADER_BYTES: usize = 48;
/// From here on the checksum covers.
const CHECKED_FROM: usize = 12;
const KINDS: [&str; 5] = ["records", "range", "truncate", "restart", "remove"];
const INDENT: &str = "|";

/// Whether a file is called as the files of a journal are.
pub fn is_journal(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.strip_prefix("barnabas-journal-");
    number.is_some_and(|number| number.len() == 2 && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Prints a file; returns what is wrong with it.
pub fn dump(path: &Path, shown: &Shown) -> Result<Vec<String>, ToolError> {
    let file = Bytes::from(std::fs::read(path).map_err(|error| failed(path, error))?);
    let Some(first) = Round::parse(&file, 0) else {
        say("No round: this file was never written, or its first round is torn")?;
        return Ok(Vec::new());
    };
    say(&format!("Journal of the log directory {}, generation {}", first.directory, first.life))?;
    let mut at = 0;
    while at as u64 <= shown.bytes_max
        && let Some(round) = Round::parse(&file, at).filter(|round| round.is_of(first.life, at))
    {
        say(&round.line())?;
        if !round.is_valid {
            return Ok(vec![format!(
                "{}: the round at {at} is torn or damaged; what follows is not shown",
                path.display()
            )]);
        }
        for entry in round.entries() {
            let entry = entry.map_err(|why| failed(path, format!("the round at {at}: {why}")))?;
            say(&entry.line())?;
            if shown.records {
                print_batches(path, &entry, shown)?;
            }
        }
        at += round.bytes.len().next_multiple_of(BLOCK_BYTES);
    }
    let left = file.len() - at.min(file.len());
    say(&format!(
        "The rounds of this generation end at {at}; {left} bytes behind them are of earlier ones, or unused"
    ))?;
    Ok(Vec::new())
}

/// The batches of an entry and their records, as a segment's are shown. Positions count from the entry's first batch.
fn print_batches(path: &Path, entry: &Entry, shown: &Shown) -> Result<(), ToolError> {
    let mut position = 0;
    for stored in entries(entry.records.clone()) {
        let batch = match stored.map_err(|error| failed(path, error))? {
            Stored::Batch(batch) => batch,
            Stored::Message(_) => return Err(failed(path, "an entry has records of an old message format")),
        };
        say(&format!("{INDENT} {}", batch_line(batch.header(), position, batch.check_crc().is_ok())))?;
        position += batch.header().size_bytes() as u64;
        print_records(path, &batch, shown, |_| {})?;
    }
    Ok(())
}

/// A round as it stands in the file.
struct Round {
    /// From the magic to the end of the last entry.
    bytes: Bytes,
    checksum: u32,
    directory: Uuid,
    opening: u64,
    number: u64,
    life: u64,
    position: u32,
    entries: u32,
    replay_from: (u64, u32),
    previous_checksum: u32,
    continues: u64,
    is_valid: bool,
}

impl Round {
    /// `None`: no round begins at `at`.
    fn parse(file: &Bytes, at: usize) -> Option<Self> {
        let mut read = file.get(at..at + ROUND_HEADER_BYTES)?;
        if read.get(..MAGIC.len())? != MAGIC {
            return None;
        }
        read.advance(MAGIC.len());
        let (checksum, length) = (read.get_u32(), read.get_u32() as usize);
        if length < ROUND_HEADER_BYTES || length > file.len() - at {
            return None;
        }
        let bytes = file.slice(at..at + length);
        let mut directory = [0; 16];
        read.copy_to_slice(&mut directory);
        let is_valid = crc32c(&bytes[CHECKED_FROM..]) == checksum;
        Some(Self {
            checksum,
            directory: Uuid(directory),
            opening: read.get_u64(),
            number: read.get_u64(),
            life: read.get_u64(),
            position: read.get_u32(),
            entries: read.get_u32(),
            replay_from: (read.get_u64(), read.get_u32()),
            previous_checksum: read.get_u32(),
            continues: read.get_u64(),
            is_valid,
            bytes,
        })
    }

    /// Whether it says that it stands where it was read.
    fn is_of(&self, life: u64, at: usize) -> bool {
        self.life == life && self.position as usize == at
    }

    fn line(&self) -> String {
        format!(
            "round: {} generation: {} position: {} opening: {:016x} continues: {:016x} replayFrom: {}/{} entries: {} size: {} \
             previousCrc: {} crc: {} isvalid: {}",
            self.number,
            self.life,
            self.position,
            self.opening,
            self.continues,
            self.replay_from.0,
            self.replay_from.1,
            self.entries,
            self.bytes.len(),
            self.previous_checksum,
            self.checksum,
            self.is_valid,
        )
    }

    /// Its entries, up to the first that cannot be read.
    fn entries(&self) -> impl Iterator<Item = Result<Entry, String>> + '_ {
        let mut at = ROUND_HEADER_BYTES;
        std::iter::from_fn(move || {
            if at >= self.bytes.len() {
                return None;
            }
            let entry = Entry::parse(&self.bytes.slice(at..));
            at = entry.as_ref().map_or(self.bytes.len(), |entry| at + entry.length);
            Some(entry)
        })
    }
}

/// What one partition has to do with a round.
#[derive(Debug)]
struct Entry {
    length: usize,
    kind: &'static str,
    topic: String,
    topic_id: Uuid,
    partition: i32,
    leader_epoch: i32,
    from: i64,
    end: i64,
    records: Bytes,
}

impl Entry {
    /// `bytes` may go on behind it.
    fn parse(bytes: &Bytes) -> Result<Self, String> {
        let mut read = bytes.get(..ENTRY_HEADER_BYTES).ok_or("an entry is cut short")?;
        let (length, kind, name) = (read.get_u32() as usize, read.get_u8(), usize::from(read.get_u8()));
        read.advance(2);
        if length < ENTRY_HEADER_BYTES + name || length > bytes.len() {
            return Err(format!("an entry of {length} bytes does not fit in its round"));
        }
        let kind = usize::from(kind).checked_sub(1).and_then(|place| KINDS.get(place));
        let mut topic_id = [0; 16];
        read.copy_to_slice(&mut topic_id);
        let topic = bytes.slice(ENTRY_HEADER_BYTES..ENTRY_HEADER_BYTES + name);
        Ok(Self {
            length,
            kind: kind.copied().ok_or("an entry has an unknown kind")?,
            topic: String::from_utf8_lossy(&topic).into_owned(),
            topic_id: Uuid(topic_id),
            partition: read.get_i32(),
            leader_epoch: read.get_i32(),
            from: read.get_i64(),
            end: read.get_i64(),
            records: bytes.slice(ENTRY_HEADER_BYTES + name..length),
        })
    }

    fn line(&self) -> String {
        format!(
            "{INDENT} {}: {}-{} topicId: {} leaderEpoch: {} from: {} end: {} size: {}",
            self.kind,
            self.topic,
            self.partition,
            self.topic_id,
            self.leader_epoch,
            self.from,
            self.end,
            self.records.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{BufMut, BytesMut};

    fn entry(kind: u8, topic: &str, from: i64, end: i64, records: &[u8]) -> Bytes {
        let mut entry = BytesMut::new();
        entry.put_u32((ENTRY_HEADER_BYTES + topic.len() + records.len()) as u32);
        entry.put_slice(&[kind, topic.len() as u8, 0, 0]);
        entry.put_slice(&[7; 16]);
        entry.put_i32(2);
        entry.put_i32(5);
        entry.put_i64(from);
        entry.put_i64(end);
        entry.put_slice(topic.as_bytes());
        entry.put_slice(records);
        entry.freeze()
    }

    /// A round of one generation, with its padding.
    fn round(number: u64, life: u64, position: u32, entries: &[Bytes]) -> Bytes {
        let body: Vec<u8> = entries.concat();
        let mut round = BytesMut::new();
        round.put_slice(MAGIC);
        round.put_u32(0);
        round.put_u32((ROUND_HEADER_BYTES + body.len()) as u32);
        round.put_slice(&[9; 16]);
        round.put_u64(0xab);
        round.put_u64(number);
        round.put_u64(life);
        round.put_u32(position);
        round.put_u32(entries.len() as u32);
        round.put_u64(life);
        round.put_u32(0);
        round.put_u32(77);
        round.put_u64(0);
        round.put_slice(&body);
        let checksum = crc32c(&round[CHECKED_FROM..]);
        round[8..CHECKED_FROM].copy_from_slice(&checksum.to_be_bytes());
        let padded = round.len().next_multiple_of(BLOCK_BYTES);
        round.resize(padded, 0);
        round.freeze()
    }

    #[test]
    fn rounds_and_entries_are_read_as_they_are_drawn() {
        let entries = [entry(1, "orders", 3, 5, b"batches"), entry(5, "gone", 0, 0, b"")];
        let file = round(41, 7, 0, &entries);
        let read = Round::parse(&file, 0).expect("a round");
        assert!(read.is_valid && read.is_of(7, 0) && !read.is_of(7, 4096) && !read.is_of(3, 0));
        let line = read.line();
        let expected = "round: 41 generation: 7 position: 0 opening: 00000000000000ab continues: 0000000000000000 \
                        replayFrom: 7/0 entries: 2 size: 201 previousCrc: 77 crc: ";
        assert!(line.starts_with(expected), "{line}");
        let lines: Vec<String> = read.entries().map(|entry| entry.expect("sound").line()).collect();
        let id = Uuid([7; 16]);
        assert_eq!(
            lines,
            [
                format!("| records: orders-2 topicId: {id} leaderEpoch: 5 from: 3 end: 5 size: 7"),
                format!("| remove: gone-2 topicId: {id} leaderEpoch: 5 from: 0 end: 0 size: 0"),
            ]
        );
    }

    #[test]
    fn damage_is_told_from_the_end() {
        let sound = round(1, 1, 0, &[entry(1, "t", 0, 1, b"x")]);
        let mut torn = sound.to_vec();
        torn[ROUND_HEADER_BYTES + 20] ^= 1;
        assert!(!Round::parse(&torn.into(), 0).expect("a round").is_valid);
        assert!(Round::parse(&Bytes::from(vec![0; BLOCK_BYTES]), 0).is_none());
        let mut long = entry(1, "t", 0, 1, b"x").to_vec();
        long[..4].copy_from_slice(&1_000_u32.to_be_bytes());
        let refused = Entry::parse(&long.into()).expect_err("too long");
        assert_eq!(refused, "an entry of 1000 bytes does not fit in its round");
        assert!(Entry::parse(&entry(9, "t", 0, 1, b"")).expect_err("no kind").contains("unknown kind"));
    }

    #[test]
    fn files_of_a_journal_are_known_by_their_names() {
        for (path, is) in
            [("/d/barnabas-journal-00", true), ("barnabas-journal-1", false), ("barnabas-journal-0x", false)]
        {
            assert_eq!(is_journal(Path::new(path)), is, "{path}");
        }
    }
}
