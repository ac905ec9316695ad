//! The journal itself: what submitting, copying and checksumming cost, without a disk and with one.

use std::path::Path;
use std::sync::Arc;

use barnabas_base::{DirectoryId, LeaderEpoch, Offset, PartitionIndex, TopicId, TopicPartition};
use barnabas_disk::{JournalFiles, LinuxDisk};
use barnabas_storage::AppendBytes;
use barnabas_storage::journal::{
    Entry, EntryKind, Journal, JournalConfig, JournalPartition, Micros, Refused, Round, Take, recover,
    slot_file_name,
};
use bytes::Bytes;

use crate::{Clock, Rounds, noise};

const BATCH_BYTES: [usize; 4] = [200, 1 << 10, 16 << 10, 64 << 10];
const ROUND_BYTES: [usize; 4] = [16 << 10, 64 << 10, 256 << 10, 1 << 20];
const DIRECTORY: DirectoryId = barnabas_base::Uuid([7; 16]);
const PARTITIONS: usize = 16;

/// Batches of many connections, spread over more memory than the caches hold.
struct Batches {
    store: Bytes,
    bytes: usize,
    at: usize,
}

impl Batches {
    fn next(&mut self) -> Bytes {
        if self.at + self.bytes > self.store.len() {
            self.at = 0;
        }
        self.at += self.bytes;
        self.store.slice(self.at - self.bytes..self.at)
    }
}

/// A committer reduced to its calls.
struct Committer {
    journal: Journal,
    files: Option<JournalFiles>,
    batches: Batches,
    ends: Vec<(Arc<JournalPartition>, Offset)>,
    turn: usize,
}

pub(crate) fn run(folder: &Path, mib_each: u64, print: &mut dyn FnMut(String)) -> Result<(), String> {
    let store = Bytes::from(noise((mib_each << 20).clamp(4 << 20, 64 << 20) as usize));
    for with_disk in [false, true] {
        for batch_bytes in BATCH_BYTES {
            for round_bytes in ROUND_BYTES.into_iter().filter(|round| *round > batch_bytes) {
                let batches = Batches { store: store.clone(), bytes: batch_bytes, at: 0 };
                let mut committer = Committer::new(folder, batches, with_disk)?;
                let rounds = committer.measure(round_bytes, mib_each << 20)?;
                let disk = if with_disk { "direct+dsync recycled" } else { "none" };
                print(rounds.line(&format!(
                    "\"journal\":\"{disk}\",\"batch_bytes\":{batch_bytes},\"round_bytes\":{round_bytes}"
                )));
            }
        }
    }
    let config = config();
    for slot in 0..config.files {
        let _ = std::fs::remove_file(folder.join(slot_file_name(slot)));
    }
    Ok(())
}

fn config() -> JournalConfig {
    JournalConfig { files: 4, file_bytes: 16 << 20, ..JournalConfig::default() }
}

impl Committer {
    fn new(folder: &Path, batches: Batches, with_disk: bool) -> Result<Self, String> {
        let config = config();
        let (count, bytes) = (config.files, u64::from(config.file_bytes));
        let mut recovered =
            recover(&LinuxDisk, folder, count, DIRECTORY).map_err(|error| error.to_string())?;
        let files = if with_disk {
            Some(JournalFiles::open(folder, count, bytes).map_err(|error| error.to_string())?)
        } else {
            None
        };
        // What an earlier run left is nobody's.
        recovered.keep(|_| false);
        let opening = Clock::now().wall_ns;
        let journal = Journal::open(config, &recovered, opening).map_err(|error| error.to_string())?;
        let partition = |index| {
            let topic_partition = TopicPartition::new("a-topic-of-ours", PartitionIndex(index as i32));
            (Arc::new(JournalPartition { topic_id: TopicId::default(), topic_partition }), Offset::ZERO)
        };
        Ok(Self { journal, files, batches, ends: (0..PARTITIONS).map(partition).collect(), turn: 0 })
    }

    fn measure(&mut self, round_bytes: usize, bytes: u64) -> Result<Rounds, String> {
        let mut rounds = Rounds::default();
        // Once without measuring: buffers and maps grow, files are made.
        self.round(round_bytes)?;
        let mut written = 0;
        while written < bytes {
            let before = Clock::now();
            let taken = self.round(round_bytes)?;
            rounds.add(before, Clock::now(), taken);
            written += taken;
            self.write_back_all();
        }
        Ok(rounds)
    }

    /// Submits until the round holds `round_bytes`, and writes it. Returns the record bytes.
    fn round(&mut self, round_bytes: usize) -> Result<u64, String> {
        let mut filled = 0;
        while filled + self.batches.bytes <= round_bytes {
            let records = AppendBytes::Whole(self.batches.next());
            let (partition, from) = &mut self.ends[self.turn];
            self.turn = (self.turn + 1) % PARTITIONS;
            let kind = EntryKind::Records { from: *from, end: from.plus(10), records };
            *from = from.plus(10);
            let entry = Entry { partition: Arc::clone(partition), leader_epoch: LeaderEpoch(1), kind };
            match self.journal.submit(entry) {
                Ok(_) => filled += self.batches.bytes,
                Err(Refused::RoundFull) => break,
                Err(refused) => return Err(refused.to_string()),
            }
        }
        let round = match self.journal.take_round(Micros(0)) {
            Take::Write(round) => round,
            other => return Err(format!("no round to write: {other:?}")),
        };
        self.write(&round)?;
        self.journal.round_durable(round, Micros(0));
        Ok(filled as u64)
    }

    fn write(&mut self, round: &Round) -> Result<(), String> {
        let Some(files) = &mut self.files else { return Ok(()) };
        files.write_durable(round.slot, round.position, round.bytes()).map_err(|error| error.to_string())
    }

    /// Writing back is measured elsewhere: here it only frees files.
    fn write_back_all(&mut self) {
        while let Some(write_back) = self.journal.next_write_back() {
            self.journal.written_back(&write_back.ticket);
        }
    }
}
