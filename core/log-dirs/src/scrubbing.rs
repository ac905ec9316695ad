//! The scrub's rounds: how far one has come, when the next one is due, and what an operator does about what it finds.
//!
//! Neighbour: shell/broker/src/upkeep/scrub.rs, which reads the segments and keeps the progress in a file.

use std::collections::BTreeSet;

use barnabas_base::{BrokerId, TimestampMs, TopicPartition, name};
use barnabas_metadata::Image;

/// What an operator does about a damaged metadata log, which is not to be abandoned.
pub const METADATA_LOG: &str = "The metadata log is damaged: restore it from a backup. If a majority of the controllers runs, \
     replace this node's metadata directory instead (docs/OPERATIONS.md, Replace a failed disk or machine)";

/// How far the look through a directory has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    begun_ms: i64,
    /// Everything up to this partition's segment is done. `None`: all is done.
    pub at: Option<(String, i64)>,
    /// Partitions whose replicas are damaged.
    pub damaged: BTreeSet<String>,
}

/// Before the name of a damaged partition. No partition's directory is called that.
const DAMAGED: &str = "damaged";

impl Progress {
    /// A round that begins now.
    pub fn begin(now: TimestampMs) -> Self {
        Self { begun_ms: now.0, at: Some((String::new(), -1)), ..Self::default() }
    }

    /// The round that is due. `kept`: what was last written. `None`: there is none yet.
    pub fn due(kept: Option<Self>, now: TimestampMs, interval_ms: i64) -> Option<Self> {
        match kept {
            // A clock that was put back ends no pause.
            Some(done) if done.at.is_none() && (0..interval_ms).contains(&(now.0 - done.begun_ms)) => None,
            Some(begun) if begun.at.is_some() => Some(begun),
            _ => Some(Self::begin(now)),
        }
    }

    /// Whether a round goes on with a partition, and behind which of its segments.
    pub fn after(&self, partition: &str) -> Option<i64> {
        let (name, base) = self.at.as_ref().map_or(("", 0), |(name, base)| (name.as_str(), *base));
        (partition >= name).then_some(if partition == name { base } else { -1 })
    }

    /// As it is written.
    pub fn render(&self) -> String {
        let at = self.at.as_ref().map(|(name, base)| format!("{name} {base}\n")).unwrap_or_default();
        let damaged: String = self.damaged.iter().map(|name| format!("{DAMAGED} {name}\n")).collect();
        format!("0\n{}\n{at}{damaged}", self.begun_ms)
    }

    /// Whatever cannot be read is as if there were none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let begun_ms = (lines.next()? == "0").then(|| lines.next()?.parse().ok()).flatten()?;
        let mut progress = Self { begun_ms, ..Self::default() };
        for (first, second) in lines.filter_map(|line| line.split_once(' ')) {
            if first == DAMAGED {
                progress.damaged.insert(second.to_owned());
            } else if let Ok(base) = second.parse() {
                progress.at = Some((first.to_owned(), base));
            }
        }
        Some(progress)
    }
}

/// What is, or is to be, done about damage in a partition's segment. `None`: the segment is no partition's.
pub fn remedy(of: Option<&TopicPartition>, image: &Image, me: BrokerId) -> &'static str {
    let Some(TopicPartition { topic, partition }) = of else {
        return "Restore the file from a backup";
    };
    if **topic == *name::CLUSTER_METADATA {
        return METADATA_LOG;
    }
    let row = image.topics.by_name(topic).and_then(|topic| topic.partition(*partition));
    match row.filter(|row| row.replicas().len() > 1) {
        Some(row) if row.leader == me => {
            "This broker leads the partition: if another replica is in sync, that one takes over, and this \
             replica is repaired from it"
        }
        Some(_) => "The replica is repaired from its leader",
        None => {
            "No other broker has a replica: restore the file from a backup, or let consumers seek past it"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Of, with};
    use barnabas_base::{PartitionIndex, Text};

    #[test]
    fn progress_is_read_back_and_nonsense_is_none() {
        let at = Some(("some.topic-7".to_owned(), 12_345));
        let damaged = BTreeSet::from(["a-1".to_owned(), "b-0".to_owned()]);
        for progress in [
            Progress { begun_ms: 99, at: at.clone(), ..Progress::default() },
            Progress { begun_ms: 5, ..Progress::default() },
            Progress { begun_ms: 5, damaged: damaged.clone(), ..Progress::default() },
            Progress { begun_ms: 5, at, damaged },
        ] {
            assert_eq!(Progress::parse(&progress.render()), Some(progress));
        }
        for nonsense in ["", "1\n5\n", "0\n", "0\nx\n", "\0\0\0"] {
            assert_eq!(Progress::parse(nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn round_is_due_after_its_interval_and_goes_on_where_it_stopped() {
        let now = TimestampMs(10_000);
        let done = |begun_ms| Some(Progress { begun_ms, ..Progress::default() });
        assert_eq!(Progress::due(None, now, 5_000), Some(Progress::begin(now)));
        assert_eq!(Progress::due(done(6_000), now, 5_000), None);
        assert_eq!(Progress::due(done(5_000), now, 5_000), Some(Progress::begin(now)));
        assert_eq!(
            Progress::due(done(20_000), now, 5_000),
            Some(Progress::begin(now)),
            "the clock was put back"
        );
        let at = Some(("b-1".to_owned(), 7));
        let begun = Progress { begun_ms: 1, at, ..Progress::default() };
        assert_eq!(Progress::due(Some(begun.clone()), now, 5_000), Some(begun.clone()));
        assert_eq!(["a-0", "b-1", "c-0"].map(|name| begun.after(name)), [None, Some(7), Some(-1)]);
        assert_eq!(Progress::begin(now).after("a-0"), Some(-1));
    }

    #[test]
    fn remedy_says_who_repairs_the_replica() {
        let of = |leader, replicas| Of { leader, replicas, isr: replicas, directories: &[] };
        let (image, _) = with(Image::default(), &[1, 2], 0, &[of(1, &[1, 2]), of(2, &[1, 2]), of(1, &[1])]);
        let said = |topic: &str, partition| {
            let name = TopicPartition { topic: Text::from(topic), partition: PartitionIndex(partition) };
            remedy(Some(&name), &image, BrokerId(1))
        };
        assert!(said("t", 0).starts_with("This broker leads the partition"));
        assert_eq!(said("t", 1), "The replica is repaired from its leader");
        assert!(said("t", 2).starts_with("No other broker has a replica"));
        assert!(said("unknown", 0).starts_with("No other broker has a replica"));
        assert_eq!(said(name::CLUSTER_METADATA, 0), METADATA_LOG);
        assert_eq!(remedy(None, &image, BrokerId(1)), "Restore the file from a backup");
    }
}
