//! Where the records of a topic are read from: which partitions, and between which offsets.
//!
//! | query | meaning |
//! |---|---|
//! | `from` | `newest` (the last `limit` of each partition), `oldest`, `offset`, `time` |
//! | `partition` | one partition, or several with commas between; absent: all |
//! | `offset`, `time` | for `from=offset`, and for `from=time` in milliseconds since 1970 |
//! | `limit` | at most so many records, 1 to 500; 50 where absent |

use crate::http::call::Place;
use crate::http::problem::Problem;
use crate::http::shape::Param;
use crate::http::shape::Shape::{Int, OneOf, Text};
use crate::kafka::{Partition, offsets};
use barnabas_base::ErrorCode;
use barnabas_client::Cluster;
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use std::collections::{BTreeMap, BTreeSet};

const LIMIT: usize = 50;
pub const LIMIT_MAX: usize = 500;
/// Partitions of one answer: each is a request of its own.
pub const PARTITIONS_MAX: usize = 64;

pub const FROM: Param =
    Param { name: "from", shape: OneOf(&["newest", "oldest", "offset", "time"]), about: "Where to begin" };
pub const OFFSET: Param = Param { name: "offset", shape: Int, about: "With from=offset" };
pub const TIME: Param = Param { name: "time", shape: Int, about: "With from=time: milliseconds since 1970" };
pub const PARTITION: Param =
    Param { name: "partition", shape: Text, about: "Partitions, with commas between; absent: all" };
pub const LIMITED: Param = Param { name: "limit", shape: Int, about: "At most so many records, 1 to 500" };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    Newest,
    Oldest,
    Offset(i64),
    Time(i64),
}

impl From {
    /// # Errors
    /// Another word; the offset or the time is missing.
    pub fn read(at: &Place, absent: Self) -> Result<Self, Problem> {
        let missing = |name: &str| Problem::bad(format!("{name} is missing"));
        let number = |name: &str| number(at, name)?.ok_or_else(|| missing(name));
        match at.query("from") {
            None => Ok(absent),
            Some("newest") => Ok(Self::Newest),
            Some("oldest") => Ok(Self::Oldest),
            Some("offset") => number("offset").map(Self::Offset),
            Some("time") => number("time").map(Self::Time),
            Some(_) => Err(Problem::bad("from takes newest, oldest, offset or time")),
        }
    }
}

/// A number of the query, from 0 on; `None`: it has none of this name.
///
/// # Errors
/// It is another word.
pub fn number(at: &Place, name: &str) -> Result<Option<i64>, Problem> {
    let read = |word: &str| {
        let number = word.parse::<i64>().ok().filter(|number| *number >= 0);
        number.ok_or_else(|| Problem::bad(format!("{name} takes a number, not '{}'", word.escape_debug())))
    };
    at.query(name).map(read).transpose()
}

/// # Errors
/// It is none.
pub fn limit(at: &Place) -> Result<usize, Problem> {
    let Some(word) = at.query("limit") else { return Ok(LIMIT) };
    let limit = word.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| Problem::bad(format!("limit takes 1 to {LIMIT_MAX}")))
}

/// # Errors
/// The topic has no such partition; it has too many to be read at once.
pub fn wanted(at: &Place, topic: &MetadataResponseTopic) -> Result<BTreeSet<Partition>, Problem> {
    wanted_of(at, topic, PARTITIONS_MAX)
}

/// [`wanted`], at most so many.
///
/// # Errors
/// As [`wanted`].
pub fn wanted_of(
    at: &Place,
    topic: &MetadataResponseTopic,
    count_max: usize,
) -> Result<BTreeSet<Partition>, Problem> {
    let name = topic.name.as_deref().unwrap_or_default();
    let all: BTreeSet<Partition> =
        topic.partitions.iter().map(|row| (name.to_owned(), row.partition_index)).collect();
    let wanted = match at.query("partition") {
        Some(words) => {
            let one = |word: &str| {
                let one = word.parse().ok().map(|index: i32| (name.to_owned(), index));
                let missing =
                    || Problem::not_found(format!("{name} has no partition '{}'", word.escape_debug()));
                one.filter(|one| all.contains(one)).ok_or_else(missing)
            };
            words.split(',').map(one).collect::<Result<_, _>>()?
        }
        None => all,
    };
    if wanted.len() > count_max {
        return Err(Problem::bad(format!(
            "{} partitions of {name}, and one answer reads {count_max} at most: name some by partition=",
            wanted.len()
        )));
    }
    Ok(wanted)
}

/// The offsets from which to which each partition is read, or its error.
pub type Spans = BTreeMap<Partition, Result<(i64, i64), ErrorCode>>;

/// Each span is within its partition.
///
/// # Errors
/// The caller may not describe the topic; a broker does not answer.
pub async fn spans(
    cluster: &mut Cluster,
    wanted: &BTreeSet<Partition>,
    from: From,
    limit: usize,
) -> Result<Spans, Problem> {
    let ends = offsets::list(cluster, wanted, offsets::LATEST).await?;
    let starts = offsets::list(cluster, wanted, offsets::EARLIEST).await?;
    let times = match from {
        From::Time(time) => offsets::list(cluster, wanted, time).await?,
        _ => BTreeMap::new(),
    };
    let denied = |end: &Result<i64, ErrorCode>| *end == Err(ErrorCode::TopicAuthorizationFailed);
    if let Some((partition, Err(code))) = ends.iter().find(|end| denied(end.1)) {
        return Err(Problem::refused(format!("reading {}", partition.0), code.code(), None));
    }
    let span = |partition: &Partition| {
        let (start, end) = (starts.get(partition).copied()?, ends.get(partition).copied()?);
        let (start, end) = match (start, end) {
            (Ok(start), Ok(end)) => (start, end),
            (Err(code), _) | (_, Err(code)) => return Some(Err(code)),
        };
        let at = match from {
            From::Newest => end - limit as i64,
            From::Oldest => start,
            From::Offset(offset) => offset,
            // −1: nothing is that new.
            From::Time(_) => match times.get(partition).copied()? {
                Ok(-1) => end,
                Ok(at) => at,
                Err(code) => return Some(Err(code)),
            },
        };
        Some(Ok((at.clamp(start, end.max(start)), end)))
    };
    Ok(wanted.iter().filter_map(|partition| Some((partition.clone(), span(partition)?))).collect())
}
