//! One file, one harm, one start: what came of it, and whether that may be.
//!
//! Allowed: clients see the same records (whether or not something had to be rebuilt); a partition or the node
//! refuses, and the log names the file; the unvouched end of a log after an unclean stop is truncated, and the log
//! says so. Not allowed: other bytes are served, records are missing without a log line, the node panics, producers
//! are out of sequence, the next start makes it worse, or sealed records have left the disk.

use super::copy_tree;
use super::harm::Harm;
use super::prepare::{Prepared, hand_over, is_planted, produce_next};
use super::targets::Target;
use super::view::View;
use crate::broker::Broker;
use crate::kafka::{Connection, Place};
use crate::{Trouble, trouble};
use std::path::Path;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There is no such file, or this cannot be done to it.
    Nothing,
    AsBefore,
    /// As before, and the log names the file.
    Rebuilt,
    Cut,
    PartitionRefused,
    NodeRefused,
    /// Bad, and on the list of what cannot be told.
    Known(&'static str),
    Bad(String),
}

impl Outcome {
    pub fn name(&self) -> &str {
        match self {
            Self::Nothing => "·",
            Self::AsBefore => "as before",
            Self::Rebuilt => "as before, named",
            Self::Cut => "cut, named",
            Self::PartitionRefused => "partition refused",
            Self::NodeRefused => "node refuses",
            Self::Known(_) => "**not told**",
            Self::Bad(_) => "BAD",
        }
    }
}

/// Runs one cell. `clean`: after a clean stop.
pub fn run(
    broker: &mut Broker,
    prepared: &Prepared,
    target: &Target,
    harm: Harm,
    clean: bool,
) -> Result<Outcome, Trouble> {
    let from = if clean { &prepared.clean } else { &prepared.unclean };
    copy_tree(from, &prepared.work)?;
    let Some(file) = target.which.find(&prepared.work)? else { return Ok(Outcome::Nothing) };
    let other = target.other.map(|other| other.find(&prepared.work)).transpose()?.flatten();
    let relative = file.strip_prefix(&prepared.work).map_err(|error| Trouble(error.to_string()))?.to_owned();
    hand_over(&prepared.work)?;
    if !harm.apply(&file, other.as_deref(), &prepared.stale.join(&relative), target.tail)? {
        return Ok(Outcome::Nothing);
    }
    let logs = sealed_logs(&prepared.work)?;
    let outcome = judge(broker, prepared, target, &relative, other.as_deref(), clean);
    broker.process.kill()?;
    let outcome = outcome?;
    match missing(&logs, &sealed_logs(&prepared.work)?, &relative) {
        Some(gone) if !matches!(outcome, Outcome::Bad(_)) => {
            Ok(Outcome::Bad(format!("{gone} left the disk")))
        }
        _ => Ok(outcome),
    }
}

fn judge(
    broker: &mut Broker,
    prepared: &Prepared,
    target: &Target,
    relative: &Path,
    other: Option<&Path>,
    clean: bool,
) -> Result<Outcome, Trouble> {
    let bad = |what: String| Ok(Outcome::Bad(what));
    let names = |log: &str| {
        let named = |path: &Path| log.contains(&*path.to_string_lossy());
        // The file itself, or the partition's directory as a whole.
        let dir = relative.parent().filter(|dir| dir.components().count() > 1);
        // A partition whose journal is gone can only say so.
        let is_journal = relative.to_string_lossy().contains("barnabas-journal-");
        // The last segment as a whole: the one before it is named, and the offset at which it began.
        let base = relative.file_stem().and_then(|base| base.to_string_lossy().parse::<i64>().ok());
        named(relative)
            || base.is_some_and(|base| log.contains(&format!("(offset {base}): the segment is shorter")))
            || (is_journal && log.contains("barnabas-journal-"))
            // Exchanged identities: it is unknown which of the two files is wrong.
            || (relative.ends_with("meta.properties") && log.contains("belongs to log directory"))
            || other.is_some_and(named)
            || dir.is_some_and(|dir| {
                [" ", ":"].iter().any(|end| log.contains(&format!("{}{end}", dir.display())))
            })
    };
    if let Err(error) = broker.start() {
        let log = broker.process.log();
        return match (log.contains("panicked"), names(&log)) {
            (true, _) => bad(format!("panic: {error}")),
            (false, true) => Ok(Outcome::NodeRefused),
            (false, false) => bad(format!("refuses without naming the file: {error}")),
        };
    }
    let first = match View::take(broker.port, &prepared.places) {
        Ok(view) => view,
        Err(error) => return bad(format!("{error}; {}", broker.process.last_lines())),
    };
    let log = broker.process.log();
    let mut outcome = match compare(&prepared.view, &first, target, clean) {
        Ok(outcome) => outcome,
        Err(what) => return bad(what),
    };
    let named = names(&log);
    match outcome {
        Outcome::AsBefore if named => outcome = Outcome::Rebuilt,
        Outcome::PartitionRefused | Outcome::Cut if !named => {
            return bad(format!("{} without naming the file", outcome.name()));
        }
        _ => {}
    }
    match again(broker, prepared, &first, &outcome) {
        Ok(()) => Ok(outcome),
        Err(error) => bad(error.0),
    }
}

/// Producers go on, and a second start shows the same and what they added.
fn again(broker: &mut Broker, prepared: &Prepared, first: &View, outcome: &Outcome) -> Result<(), Trouble> {
    let mut connection = Connection::open(broker.port)?;
    let mut next = prepared.next.clone();
    let mut expected = first.clone();
    for (place, contents) in &mut expected.partitions {
        let Ok(contents) = contents else { continue };
        if is_planted(place) || *outcome == Outcome::Cut {
            continue;
        }
        let base = produce_next(&mut connection, prepared.identity, &mut next, place)?;
        if base != contents.end {
            return trouble(format!("{place} ended at {} and gave offset {base}", contents.end));
        }
        contents.end += 5;
    }
    if broker.process.log().contains("panicked") {
        return trouble(format!("panic: {}", broker.process.last_lines()));
    }
    broker.stop()?;
    broker.start().map_err(|error| Trouble(format!("at the second start: {error}")))?;
    let second = View::take(broker.port, &prepared.places)?;
    for (place, wanted) in &expected.partitions {
        let found = second.partitions.get(place);
        match (wanted, found) {
            (Ok(wanted), Some(Ok(found))) => {
                if found.end != wanted.end
                    || found.start != wanted.start
                    || !found.bytes.starts_with(&wanted.bytes)
                {
                    let (start, end) = (found.start, found.end);
                    return trouble(format!(
                        "{place} is {start}..{end} after a second start, should be {}..{}",
                        wanted.start, wanted.end
                    ));
                }
            }
            (Ok(_), _) => return trouble(format!("{place} cannot be read after a second start: {found:?}")),
            (Err(_), _) => {}
        }
    }
    if second.committed != first.committed || second.topics != first.topics {
        return trouble("committed offsets or topics are others after a second start");
    }
    broker.stop().map(drop)
}

fn compare(before: &View, now: &View, target: &Target, clean: bool) -> Result<Outcome, String> {
    if now.topics != before.topics {
        return Err(format!("topics: {:?}", now.topics));
    }
    let mut outcome = Outcome::AsBefore;
    for (place, was) in &before.partitions {
        let was = was.as_ref().map_err(Clone::clone)?;
        match now.partitions.get(place) {
            Some(Ok(is)) if is == was => {}
            Some(Ok(is)) => {
                let is_front = is.start == was.start && is.end < was.end && was.bytes.starts_with(&is.bytes);
                if !(is_front && target.may_cut && !clean) {
                    return Err(difference(place, (was.start, was.end), (is.start, is.end)));
                }
                outcome = Outcome::Cut;
            }
            Some(Err(_)) => outcome = Outcome::PartitionRefused,
            None => return Err(format!("{place} is gone")),
        }
    }
    match (&before.committed, &now.committed) {
        (Ok(before), Ok(now)) if before != now => Err(format!("committed offsets: {now:?}")),
        (_, Err(_)) => Ok(Outcome::PartitionRefused),
        _ => Ok(outcome),
    }
}

fn difference(place: &Place, was: (i64, i64), is: (i64, i64)) -> String {
    if was == is {
        return format!("{place} serves other bytes or other aborted transactions");
    }
    format!("{place} was {}..{} and is {}..{}", was.0, was.1, is.0, is.1)
}

/// Every sealed segment on disk, wherever its directory was moved to: its name and contents.
fn sealed_logs(work: &Path) -> Result<Vec<(String, Vec<u8>)>, Trouble> {
    let mut found = Vec::new();
    for root in ["a", "b"] {
        for partition in std::fs::read_dir(work.join(root))? {
            let partition = partition?.path();
            if !partition.is_dir() {
                continue;
            }
            let mut logs: Vec<_> =
                std::fs::read_dir(&partition)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
            logs.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
            logs.sort();
            logs.pop();
            for log in logs {
                let name = log.strip_prefix(work).map_err(|error| Trouble(error.to_string()))?;
                found.push((name.display().to_string(), std::fs::read(&log)?));
            }
        }
    }
    Ok(found)
}

/// The first sealed segment that is nowhere any more. The harmed file itself may have been replaced.
fn missing(before: &[(String, Vec<u8>)], now: &[(String, Vec<u8>)], harmed: &Path) -> Option<String> {
    let gone = before.iter().find(|(name, bytes)| {
        *name != harmed.display().to_string()
            && !bytes.is_empty()
            && now.iter().all(|(_, found)| found != bytes)
    });
    gone.map(|(name, _)| name.clone())
}
