//! `barnabas-checkpoints`: whether the checkpoint files of a log directory are those that this program wrote.
//!
//! Kafka's checkpoint files carry no checksum: a digit that has changed into another makes a whole, wrong file. This
//! file names the checksum of each, as it was and as it is about to be, and is replaced before they are, so that
//! whatever a crash leaves fits. It holds the log starts a second time, since nothing else says which records were
//! deleted.
//!
//! If Apache Kafka has used the directory since, the checkpoints are trusted as they are, and this file does not
//! count. `.kafka_cleanshutdown` shows that: Kafka removes it when it starts and writes it with another broker epoch
//! when it stops, and this file contains the checksum of the one that belongs to it. (Kafka may have left any of the
//! checkpoints unchanged.) Kafka ignores this file. Drawn in docs/format/checkpoints.md.

use barnabas_base::{Map, Offset, TopicPartition};
use barnabas_wire::records::crc32c;

use crate::checkpoints::offset_checkpoint;

pub(crate) const FILE_NAME: &str = "barnabas-checkpoints";
const FIRST_LINE: &str = "barnabas-checkpoints 0";
const SYNCED: &str = "synced";
const WRITTEN: &str = "written";
const WITH_JOURNAL: &str = " journal ";
/// Followed by a checksum, or [`ABSENT`].
const STOPPED: &str = " stopped ";
/// In the place of a file's checksum: it does not exist.
const ABSENT: &str = "-";

/// A checksum; `None`: there is no such file.
pub(crate) type Sum = Option<u32>;

pub(crate) fn sum(contents: Option<&[u8]>) -> Sum {
    contents.map(crc32c)
}

/// One checkpoint file: its name, and what it is before and after it is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guarded {
    pub name: &'static str,
    pub before: Sum,
    pub after: Sum,
}

impl Guarded {
    pub fn fits(&self, found: Sum) -> bool {
        found == self.before || found == self.after
    }
}

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guard {
    /// High watermarks were on disk when they were noted.
    pub is_synced: bool,
    /// A journal was open, and this was its newest life: after an unclean stop it must be there, and reach as far.
    pub journal: Option<u64>,
    /// All that was open was closed: the checksum of `.kafka_cleanshutdown`, or that there is none, as some logs were
    /// not recovered since an unclean stop. Nothing while this program works in the directory.
    pub stopped: Option<Sum>,
    pub files: Vec<Guarded>,
    pub log_starts: Map<TopicPartition, Offset>,
}

impl Guard {
    /// Whether another program has used the directory since, judged by the current `.kafka_cleanshutdown` and the
    /// checkpoints, in the order of [`offset_checkpoint::ALL`]. A process that was killed on a full disk, before it
    /// could write this file for the first time, counts as one.
    pub fn is_overtaken(&self, clean_shutdown: Sum, found: &[Sum]) -> bool {
        let mut fit = self.files.iter().zip(found).map(|(file, found)| file.fits(*found));
        match self.stopped {
            Some(stop) if stop != clean_shutdown => true,
            Some(Some(_)) => false,
            // Kafka would leave no trace elsewhere, if it was killed as well.
            Some(None) => fit.any(|fits| !fits),
            // A process that is killed after this program ran has written recovery points, high watermarks or
            // neither.
            None => clean_shutdown.is_some() || !fit.take(2).any(|fits| fits),
        }
    }

    pub fn file(&self, name: &str) -> Option<&Guarded> {
        self.files.iter().find(|file| file.name == name)
    }

    pub fn render(&self) -> String {
        let word = |sum: Sum| sum.map_or(ABSENT.to_owned(), |sum| format!("{sum:08x}"));
        let durability = if self.is_synced { SYNCED } else { WRITTEN };
        let journal = self.journal.map_or(String::new(), |life| format!("{WITH_JOURNAL}{life}"));
        let stopped = self.stopped.map_or(String::new(), |stop| format!("{STOPPED}{}", word(stop)));
        let mut body = format!("{durability}{journal}{stopped}\n");
        for file in &self.files {
            body.push_str(&format!("{} {} {}\n", file.name, word(file.before), word(file.after)));
        }
        body.push_str(&offset_checkpoint::render(&self.log_starts));
        format!("{FIRST_LINE}\n{:08x}\n{body}", crc32c(body.as_bytes()))
    }

    /// `None`: damaged, or of a later version.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (checksum, body) = text.strip_prefix(FIRST_LINE)?.strip_prefix('\n')?.split_once('\n')?;
        if u32::from_str_radix(checksum, 16).ok()? != crc32c(body.as_bytes()) {
            return None;
        }
        let (first, mut rest) = body.split_once('\n')?;
        let sum = |word: &str| match word {
            ABSENT => Some(None),
            word => u32::from_str_radix(word, 16).ok().map(Some),
        };
        let (first, stopped) = match first.split_once(STOPPED) {
            Some((first, stop)) => (first, Some(sum(stop)?)),
            None => (first, None),
        };
        let (durability, journal) = match first.split_once(WITH_JOURNAL) {
            Some((durability, life)) => (durability, Some(life.parse().ok()?)),
            None => (first, None),
        };
        let mut files = Vec::new();
        for name in offset_checkpoint::ALL {
            let (line, after) = rest.split_once('\n')?;
            let mut words = line.strip_prefix(name)?.split_whitespace();
            files.push(Guarded { name, before: sum(words.next()?)?, after: sum(words.next()?)? });
            rest = after;
        }
        let log_starts = offset_checkpoint::parse(rest.as_bytes()).ok()?;
        Some(Self { is_synced: durability == SYNCED, journal, stopped, files, log_starts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_no_bit_may_change() {
        let file = |name| Guarded { name, before: None, after: Some(0xabc) };
        let at = TopicPartition::new("t", barnabas_base::PartitionIndex(3));
        let guard = Guard {
            is_synced: true,
            journal: Some(17),
            stopped: Some(Some(0xd)),
            files: offset_checkpoint::ALL.map(file).to_vec(),
            log_starts: [(at, Offset(77))].into_iter().collect(),
        };
        let text = guard.render().into_bytes();
        assert_eq!(Guard::parse(&text).as_ref(), Some(&guard));
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // But for a letter of the checksum that became a capital.
            assert!(Guard::parse(&flipped).is_none_or(|found| found == guard), "bit {bit}");
            assert_eq!(Guard::parse(&text[..bit / 8]), None, "cut at {}", bit / 8);
        }
    }
}
