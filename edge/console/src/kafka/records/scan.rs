//! Looks for a needle in a run of batches, as a segment or a Fetch answer holds it.
//!
//! A batch whose bytes exclude the needle is counted and passed over without a look at its records.
//!
//! Always true: what is not searched is named, by offsets and with the reason.

use super::decode::Decoding;
use super::decode::INFLATED_BYTES_MAX;
use super::fetch::{Shown, shown};
use super::needle::Needle;
use barnabas_client::AbortedTransactions;
use barnabas_wire::records::{Batch, BatchError, Entry, HEADER_BYTES, Records, entries};
use bytes::Bytes;

/// What a search wants of a partition.
#[derive(Debug, Clone, Copy)]
pub struct Sought<'a> {
    pub partition: i32,
    /// The first offset that is not wanted.
    pub until: i64,
    pub needle: &'a Needle,
    pub decoding: Option<&'a Decoding>,
    /// Records that may still be found.
    pub count: usize,
    /// Of keys, values and headers of records that are found: a run ends with the record that reaches it.
    pub bytes_max: usize,
}

/// Whose word is the last about a batch.
#[derive(Debug)]
pub enum Source<'a> {
    /// A segment's bytes: what is damaged, or needs to be known as aborted or not, is for the broker.
    Segment { is_committed: bool },
    /// The broker's answer; with the transactions that it says were aborted, where those are not wanted.
    Fetched(Option<&'a mut AbortedTransactions>),
}

/// Offsets that were not searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub from: i64,
    /// The first one behind them.
    pub to: i64,
    pub why: String,
}

/// What was searched, and what was found.
#[derive(Debug, Default)]
pub struct Scanned {
    /// The first offset that was not looked at.
    pub next: i64,
    pub records: u64,
    /// Of records, inflated.
    pub bytes: u64,
    pub found: Vec<Shown>,
    /// Of what was found.
    pub found_bytes: usize,
    pub gaps: Vec<Gap>,
    /// The broker has to be asked for what comes at `next`.
    pub is_brokers: bool,
}

impl Scanned {
    pub fn from(next: i64) -> Self {
        Self { next, ..Default::default() }
    }

    fn is_full(&self, sought: &Sought<'_>) -> bool {
        self.found.len() >= sought.count || self.found_bytes >= sought.bytes_max
    }
}

/// Searches a run of batches from `scanned.next` on.
pub fn scan(run: Bytes, scanned: &mut Scanned, sought: &Sought<'_>, mut source: Source<'_>) {
    for entry in entries(run) {
        let batch = match entry {
            Ok(Entry::Batch(batch)) => batch,
            Ok(Entry::Message(_)) if matches!(source, Source::Fetched(_)) => {
                let why = "records of a format before Kafka 0.11".to_owned();
                scanned.gaps.push(Gap { from: scanned.next, to: sought.until, why });
                scanned.next = sought.until;
                return;
            }
            Err(error) if matches!(source, Source::Fetched(_)) => {
                scanned.gaps.push(Gap { from: scanned.next, to: sought.until, why: error.to_string() });
                scanned.next = sought.until;
                return;
            }
            Ok(Entry::Message(_)) | Err(_) => {
                scanned.is_brokers = true;
                return;
            }
        };
        let header = batch.header();
        let (base, behind) = (header.base_offset.get(), header.next_offset().get());
        if base >= sought.until {
            scanned.next = sought.until;
            return;
        }
        if behind <= scanned.next {
            continue;
        }
        if header.attributes.is_transactional() {
            let (is_control, producer) = (header.attributes.is_control(), header.producer_id.get());
            let is_aborted = match &mut source {
                Source::Segment { is_committed: true } => {
                    scanned.is_brokers = true;
                    return;
                }
                Source::Segment { is_committed: false } | Source::Fetched(None) => false,
                Source::Fetched(Some(aborted)) if is_control => {
                    aborted.marker(producer);
                    false
                }
                Source::Fetched(Some(aborted)) => aborted.holds(producer, base),
            };
            if is_aborted {
                scanned.next = behind.min(sought.until);
                continue;
            }
        }
        let before = (scanned.found.len(), scanned.found_bytes, scanned.records, scanned.bytes);
        match take(&batch, scanned, sought) {
            Ok(()) => {}
            Err(_) if matches!(source, Source::Segment { .. }) => {
                // The broker gives all of the batch.
                scanned.found.truncate(before.0);
                (scanned.found_bytes, scanned.records, scanned.bytes) = (before.1, before.2, before.3);
                scanned.is_brokers = true;
                return;
            }
            Err(error) => {
                let (from, to) = (base.max(scanned.next), behind.min(sought.until));
                scanned.gaps.push(Gap { from, to, why: error.to_string() });
            }
        }
        if let Some(last) = scanned.found.last().filter(|_| scanned.is_full(sought)) {
            scanned.next = last.offset + 1;
            return;
        }
        scanned.next = behind.min(sought.until);
    }
}

fn take(batch: &Batch, scanned: &mut Scanned, sought: &Sought<'_>) -> Result<(), BatchError> {
    batch.check_crc()?;
    let header = batch.header();
    let is_whole = header.base_offset.get() >= scanned.next && header.next_offset().get() <= sought.until;
    if header.attributes.is_control() {
        scanned.records += u64::from(header.record_count.unsigned_abs());
        return Ok(());
    }
    let is_plain = !header.attributes.is_compressed();
    // Before anything is made of it: most batches end here.
    if is_whole && is_plain && !sought.needle.may_be_in(&batch.bytes()[HEADER_BYTES..]) {
        pass(batch, batch.bytes().len() - HEADER_BYTES, scanned);
        return Ok(());
    }
    let records = batch.records_within(INFLATED_BYTES_MAX)?;
    if is_whole && !is_plain && !sought.needle.may_be_in(records.body()) {
        pass(batch, records.body().len(), scanned);
        return Ok(());
    }
    look(&records, scanned, sought)
}

fn pass(batch: &Batch, bytes: usize, scanned: &mut Scanned) {
    scanned.records += u64::from(batch.header().record_count.unsigned_abs());
    scanned.bytes += bytes as u64;
}

/// # Errors
/// A record cannot be read. Those before it have been looked at.
fn look(records: &Records, scanned: &mut Scanned, sought: &Sought<'_>) -> Result<(), BatchError> {
    let from = scanned.next;
    scanned.bytes += records.body().len() as u64;
    for record in records.iter() {
        let record = record?;
        let offset = record.offset.get();
        if offset < from {
            continue;
        }
        if offset >= sought.until || scanned.is_full(sought) {
            break;
        }
        scanned.records += 1;
        if sought.needle.is_in_record(&record, sought.decoding) {
            let shown = shown(sought.partition, records.header(), &record, sought.decoding);
            scanned.found_bytes += shown.bytes();
            scanned.found.push(shown);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{Offset, ProducerId, TimestampMs};
    use barnabas_wire::messages::fetch_response::{AbortedTransaction, PartitionData};
    use barnabas_wire::records::{BatchBuilder, BatchOptions, Codec, Compression};

    fn batch(base: i64, values: &[&str], options: BatchOptions) -> Vec<u8> {
        let mut builder = BatchBuilder::new(BatchOptions { base_offset: Offset(base), ..options });
        values.iter().for_each(|value| builder.push(TimestampMs(1), None, Some(value.as_bytes()), &[]));
        builder.build().expect("built").to_vec()
    }

    fn plain(base: i64, values: &[&str]) -> Vec<u8> {
        batch(base, values, BatchOptions::default())
    }

    fn sought(needle: &Needle) -> Sought<'_> {
        Sought { partition: 0, until: i64::MAX, needle, decoding: None, count: 100, bytes_max: 1 << 20 }
    }

    fn needle(text: &str) -> Needle {
        Needle::text(text, false).expect("sound")
    }

    fn offsets(scanned: &Scanned) -> Vec<i64> {
        scanned.found.iter().map(|record| record.offset).collect()
    }

    const SEGMENT: Source<'static> = Source::Segment { is_committed: false };

    #[test]
    fn records_are_found_and_all_are_counted() {
        let compression = Compression::of(Codec::Gzip);
        let gzip = BatchOptions { compression, ..BatchOptions::default() };
        let run = [plain(0, &["a", "b"]), batch(2, &["xbx", "c"], gzip), plain(7, &["c", "b"])].concat();
        let needle = needle("b");
        let search = |from, sought: &Sought<'_>| {
            let mut scanned = Scanned::from(from);
            scan(run.clone().into(), &mut scanned, sought, SEGMENT);
            (offsets(&scanned), scanned.next, scanned.records)
        };
        assert_eq!(search(0, &sought(&needle)), (vec![1, 2, 8], 9, 6));
        // From within a batch, up to within a batch, and no further than what is wanted.
        assert_eq!(search(1, &Sought { until: 8, ..sought(&needle) }), (vec![1, 2], 8, 4));
        assert_eq!(search(0, &Sought { count: 2, ..sought(&needle) }), (vec![1, 2], 3, 3));
        assert_eq!(search(0, &Sought { until: 5, ..sought(&needle) }), (vec![1, 2], 5, 4));
        assert_eq!(search(9, &sought(&needle)), (vec![], 9, 0));
    }

    #[test]
    fn damage_is_the_brokers_in_a_segment_and_named_in_its_answer() {
        let mut run = [plain(0, &["b"]), plain(1, &["b", "b"]), plain(3, &["b"])].concat();
        let second = plain(0, &["b"]).len();
        run[second + 70] ^= 1;
        let needle = needle("b");
        let mut own = Scanned::from(0);
        scan(run.clone().into(), &mut own, &sought(&needle), SEGMENT);
        assert_eq!((offsets(&own), own.next, own.is_brokers), (vec![0], 1, true));
        let mut fetched = Scanned::from(1);
        scan(run.into(), &mut fetched, &sought(&needle), Source::Fetched(None));
        assert_eq!((offsets(&fetched), fetched.next, fetched.is_brokers), (vec![3], 4, false));
        assert_eq!(fetched.gaps.iter().map(|gap| (gap.from, gap.to)).collect::<Vec<_>>(), [(1, 3)]);
    }

    #[test]
    fn aborted_records_are_left_out_of_a_committed_search() {
        let transaction = |producer| BatchOptions {
            producer_id: ProducerId(producer),
            transactional: true,
            ..BatchOptions::default()
        };
        let run = [batch(0, &["b"], transaction(1)), batch(1, &["b"], transaction(2))].concat();
        let aborted = AbortedTransaction { producer_id: 1, first_offset: 0, ..Default::default() };
        let data = PartitionData { aborted_transactions: Some(vec![aborted]), ..Default::default() };
        let needle = needle("b");
        let mut scanned = Scanned::from(0);
        let mut known = AbortedTransactions::new(&data);
        scan(run.clone().into(), &mut scanned, &sought(&needle), Source::Fetched(Some(&mut known)));
        assert_eq!((offsets(&scanned), scanned.next), (vec![1], 2));
        let mut own = Scanned::from(0);
        scan(run.into(), &mut own, &sought(&needle), Source::Segment { is_committed: true });
        assert_eq!((own.next, own.is_brokers), (0, true), "a segment does not say what was aborted");
    }
}
