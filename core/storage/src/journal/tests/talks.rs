//! Transcripts of a journal: `talks/*.txt`. Lines with `> ` are inputs, the others are outputs, `# ` explains.
//!
//! `TALKS=write cargo test -p barnabas-storage journal::tests::talks` rewrites the outputs; the diff is the review.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Map, Offset, PartitionIndex, TopicId, TopicPartition, Uuid};
use bytes::Bytes;

use crate::journal::*;
use crate::{AppendBytes, Disk, MemoryDisk, OpenMode};

struct Said<'a> {
    words: Vec<&'a str>,
}

impl<'a> Said<'a> {
    fn word(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn or(&self, key: &str, default: i64) -> i64 {
        self.word(key).map_or(default, |word| word.parse().unwrap_or_else(|_| panic!("{key}={word}")))
    }

    fn partition(&self) -> Arc<JournalPartition> {
        let (topic, index) = self.words[1].split_once('-').unwrap_or_else(|| panic!("{:?}", self.words));
        let topic_partition = TopicPartition::new(topic, PartitionIndex(index.parse().unwrap()));
        Arc::new(JournalPartition { topic_id: TopicId::default(), topic_partition })
    }
}

#[derive(Default)]
struct Talk {
    journal: Option<Journal>,
    round: Option<Round>,
    write_backs: Vec<WriteBack>,
    ends: Map<Arc<JournalPartition>, Offset>,
    answer: String,
    /// What was written; a killed process leaves it to the next.
    disk: MemoryDisk,
    config: Option<JournalConfig>,
    opening: u64,
}

impl Talk {
    fn say(&mut self, line: &str) -> String {
        let said = Said { words: line.split_whitespace().collect() };
        self.answer.clear();
        match said.words[0] {
            "open" => self.open(&said),
            "put" | "range" | "truncate" | "restart" | "remove" => self.submit(&said),
            "round" => self.take(&said),
            "durable" => self.durable(&said),
            "write_back" => {
                let write_back = self.journal().next_write_back();
                self.show_write_back(write_back);
            }
            "all-is-to-be-written_back" => {
                self.journal().write_back_all(said.words.get(1) != Some(&"no-more"))
            }
            "write_back-all-of" => {
                let write_back = self.journal().take_write_back(&said.partition());
                self.show_write_back(write_back);
            }
            "written_back" => {
                let write_back = self.write_backs.remove(0);
                self.journal().written_back(&write_back.ticket);
            }
            "free" => {
                let figures = self.journal().figures();
                writeln!(self.answer, "{} files, {} B staged", figures.files_free, figures.staged_bytes)
                    .unwrap();
            }
            "kill" => self.kill(),
            "crowded?" => {
                let crowded = self.journal().is_crowded();
                writeln!(self.answer, "{crowded}").unwrap();
            }
            "shrink" => {
                let shrunk = self.journal().shrink();
                let files = self.journal().files();
                writeln!(self.answer, "{shrunk}, {files} files").unwrap();
            }
            "fail" => self.journal().fail(),
            "close" => self.journal().close(),
            "closed?" => {
                let closed = self.journal().is_closed();
                writeln!(self.answer, "{closed}").unwrap();
            }
            other => panic!("unknown input {other}"),
        }
        if self.answer.is_empty() {
            self.answer.push_str("ok\n");
        }
        self.answer.clone()
    }

    fn journal(&mut self) -> &mut Journal {
        self.journal.as_mut().expect("a talk begins with open")
    }

    fn open(&mut self, said: &Said<'_>) {
        let config = JournalConfig {
            files: said.or("files", 3) as usize,
            file_bytes: said.or("file", 16_384) as u32,
            round_bytes_max: said.or("round", 8192) as u32,
            round_bytes_enough: said.or("enough", 8192) as u32,
            linger_us: said.or("linger", 0) as u64,
            append_bytes_max: 4096,
            write_back_bytes: said.or("write_back", 1000) as u64,
            write_back_bytes_max: said.or("write_back-max", 1 << 20) as u64,
            staged_bytes_max: said.or("staged", 1 << 20) as u64,
        };
        self.disk = MemoryDisk::new();
        self.opening = 1;
        let empty = recover(&self.disk, Path::new("/"), config.files, Uuid([1; 16])).unwrap();
        self.journal = Some(Journal::open(config.clone(), &empty, 1).unwrap());
        self.config = Some(config);
    }

    /// The next process goes on with what it finds.
    fn kill(&mut self) {
        (self.round, self.write_backs) = (None, Vec::new());
        let config = self.config.clone().expect("a talk begins with open");
        let found = recover(&self.disk, Path::new("/"), config.files, Uuid([1; 16])).unwrap();
        for replay in &found.partitions {
            let end = replay.items.last().map_or(replay.synced_end, |item| Some(item.end));
            let end = end.unwrap();
            writeln!(self.answer, "{} waits, to {end}", replay.partition.topic_partition).unwrap();
            self.ends.insert(Arc::clone(&replay.partition), end);
        }
        self.opening += 1;
        match Journal::open(config, &found, self.opening) {
            Ok(journal) => self.journal = Some(journal),
            Err(error) => writeln!(self.answer, "{error}").unwrap(),
        }
    }

    /// Writes the round that is under way as the disk would have it.
    fn write(&mut self, round: &Round) {
        let path = Path::new("/").join(slot_file_name(round.slot));
        let file = self.disk.open(&path, OpenMode::Create).unwrap();
        let len = self.config.as_ref().map_or(0, |config| config.file_bytes.into());
        file.set_len(len).unwrap();
        file.write_at(round.position, &[round.bytes()]).unwrap();
    }

    fn submit(&mut self, said: &Said<'_>) {
        let partition = said.partition();
        let from = self.ends.get(&partition).copied().unwrap_or(Offset::ZERO);
        let end = Offset(said.or("end", from.get() + 10));
        let records = AppendBytes::Whole(Bytes::from(vec![0; said.or("bytes", 100) as usize]));
        let (kind, end) = match said.words[0] {
            "put" => (EntryKind::Records { from, end, records }, end),
            "range" => (EntryKind::Range { from, end }, end),
            "truncate" => (EntryKind::Truncate { end }, end),
            "restart" => (EntryKind::Restart { at: end }, end),
            _ => (EntryKind::Remove, Offset::ZERO),
        };
        let entry = Entry { partition: Arc::clone(&partition), leader_epoch: LeaderEpoch(0), kind };
        match self.journal().submit(entry) {
            Ok(round) => {
                self.ends.insert(partition, end);
                writeln!(self.answer, "in round {round}").unwrap();
            }
            Err(refused) => writeln!(self.answer, "refused: {refused}").unwrap(),
        }
    }

    fn take(&mut self, said: &Said<'_>) {
        match self.journal().take_round(Micros(said.or("now", 0) as u64)) {
            Take::Write(round) => {
                writeln!(
                    self.answer,
                    "write round {}: file {} at {}, {} B, life {}, replay from {}:{}",
                    round.number,
                    round.slot,
                    round.position,
                    round.bytes().len(),
                    round.place.life,
                    round.replay_from.life,
                    round.replay_from.position
                )
                .unwrap();
                self.round = Some(round);
            }
            Take::Wait(until) => writeln!(self.answer, "wait until {}", until.0).unwrap(),
            Take::Nothing => self.answer.push_str("nothing\n"),
        }
    }

    fn durable(&mut self, said: &Said<'_>) {
        let round = self.round.take().expect("a round is under way");
        self.write(&round);
        let done = self.journal().round_durable(round, Micros(said.or("now", 0) as u64));
        for end in done.ends {
            writeln!(self.answer, "{} to {}", end.partition.topic_partition, end.end).unwrap();
        }
    }

    fn show_write_back(&mut self, write_back: Option<WriteBack>) {
        let Some(write_back) = write_back else { return self.answer.push_str("nothing\n") };
        write!(self.answer, "{}:", write_back.partition.topic_partition).unwrap();
        for op in &write_back.ops {
            match op {
                WriteBackOp::Append { from, end, .. } => write!(self.answer, " [{from}, {end})"),
                WriteBackOp::Truncate { end } => write!(self.answer, " cut at {end}"),
                WriteBackOp::Restart { at } => write!(self.answer, " restart at {at}"),
                WriteBackOp::Remove => write!(self.answer, " remove"),
            }
            .unwrap();
        }
        writeln!(self.answer, " ({} B)", write_back.bytes).unwrap();
        self.write_backs.push(write_back);
    }
}

#[test]
fn talks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/journal/tests/talks");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let expected = std::fs::read_to_string(&path).unwrap();
        let (mut talk, mut told) = (Talk::default(), String::new());
        for line in expected.lines() {
            if let Some(said) = line.strip_prefix("> ") {
                writeln!(told, "{line}").unwrap();
                told.push_str(&talk.say(said));
            } else if line.is_empty() || line.starts_with('#') {
                writeln!(told, "{line}").unwrap();
            }
        }
        #[expect(clippy::disallowed_methods, reason = "a test writes its own files")]
        if std::env::var_os("TALKS").is_some() {
            std::fs::write(&path, &told).unwrap();
        } else {
            assert_eq!(told, expected, "{}", path.display());
        }
    }
}
