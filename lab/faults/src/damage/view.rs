//! Everything that the node's clients can see: topics, each partition's bytes and aborted transactions, committed
//! offsets.

use crate::kafka::{Connection, Place};
use crate::{Trouble, trouble};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::{MetadataRequest, OffsetFetchRequest};
use barnabas_wire::records::batches;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const FETCH_BYTES: i32 = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(6);
pub const GROUP: &str = "readers";

/// One partition as a consumer sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    pub start: i64,
    pub end: i64,
    pub bytes: Vec<u8>,
    /// (producer, first offset)
    pub aborted: Vec<(i64, i64)>,
}

/// A node's answers. A partition that is refused has its error instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub topics: BTreeMap<String, usize>,
    pub partitions: BTreeMap<Place, Result<Contents, String>>,
    pub committed: Result<BTreeMap<Place, i64>, String>,
}

impl View {
    /// Reads everything of the topics that are no internal ones. Bytes that fail their checksum are an error of the
    /// text: they must not have been served.
    pub fn take(port: u16, wanted: &[Place]) -> Result<Self, Trouble> {
        let mut connection = Connection::open(port)?;
        let answer = connection.call(&MetadataRequest { topics: None, ..Default::default() }, 9)?;
        let named = answer.topics.iter().filter(|topic| !topic.is_internal);
        let topics =
            named.filter_map(|topic| Some((topic.name.as_ref()?.to_string(), topic.partitions.len())));
        let mut view =
            Self { topics: topics.collect(), partitions: BTreeMap::new(), committed: Ok(BTreeMap::new()) };
        for place in wanted {
            let contents = contents(&mut connection, place)?;
            view.partitions.insert(place.clone(), contents);
        }
        view.committed = committed(&mut connection)?;
        Ok(view)
    }
}

fn contents(connection: &mut Connection, place: &Place) -> Result<Result<Contents, String>, Trouble> {
    let begun = Instant::now();
    loop {
        let found = read_all(connection, place)?;
        match &found {
            // It has no leader yet: the node has just started.
            Err(code) if code.contains("NOT_LEADER") || code.contains("LEADER_NOT") => {}
            _ => return Ok(found),
        }
        if begun.elapsed() > PATIENCE {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn read_all(connection: &mut Connection, place: &Place) -> Result<Result<Contents, String>, Trouble> {
    let mut contents = Contents::default();
    let (start, end) = match (connection.list_offset(place, -2), connection.list_offset(place, -1)) {
        (Ok(start), Ok(end)) => (start, end),
        (Err(error), _) | (_, Err(error)) => return Ok(Err(error.0)),
    };
    (contents.start, contents.end) = (start, end);
    let mut next = start;
    while next < end {
        let (code, records, aborted) = fetch(connection, place, next)?;
        if code != ErrorCode::None {
            return Ok(Err(format!("{code} at offset {next}")));
        }
        let before = next;
        let mut run = batches(records.clone());
        for batch in &mut run {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    return trouble(format!("{place} served what is no batch at offset {next}: {error}"));
                }
            };
            if let Err(error) = batch.check_crc() {
                let base = batch.header().base_offset;
                return trouble(format!("{place} served a damaged batch at offset {base}: {error}"));
            }
            next = batch.header().next_offset().get();
        }
        if next == before {
            return Ok(Err(format!("nothing at offset {next}, and the log ends at {end}")));
        }
        contents.bytes.extend_from_slice(&records);
        contents.aborted.extend(aborted);
    }
    contents.aborted.sort_unstable();
    contents.aborted.dedup();
    Ok(Ok(contents))
}

type Piece = (ErrorCode, bytes::Bytes, Vec<(i64, i64)>);

/// A fetch of committed records alone.
fn fetch(connection: &mut Connection, place: &Place, from: i64) -> Result<Piece, Trouble> {
    let told = connection.fetched(place, from, FETCH_BYTES, true)?;
    let aborted = told.aborted_transactions.unwrap_or_default();
    let aborted = aborted.iter().map(|aborted| (aborted.producer_id, aborted.first_offset)).collect();
    Ok((ErrorCode::from_code(told.error_code), told.records.unwrap_or_default(), aborted))
}

fn committed(connection: &mut Connection) -> Result<Result<BTreeMap<Place, i64>, String>, Trouble> {
    let group = OffsetFetchRequestGroup { group_id: GROUP.into(), topics: None, ..Default::default() };
    let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
    let begun = Instant::now();
    loop {
        let mut answer = connection.call(&request, 8)?;
        let Some(told) = answer.groups.pop() else { return trouble("OffsetFetch names no group") };
        let code = ErrorCode::from_code(told.error_code);
        if code == ErrorCode::None {
            let mut offsets = BTreeMap::new();
            for topic in &told.topics {
                for partition in &topic.partitions {
                    let place = Place { topic: topic.name.to_string(), partition: partition.partition_index };
                    offsets.insert(place, partition.committed_offset);
                }
            }
            return Ok(Ok(offsets));
        }
        if begun.elapsed() > PATIENCE || !code.is_retriable() {
            return Ok(Err(code.to_string()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
