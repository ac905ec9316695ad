//! New records of a topic as they come, at a bounded rate: one Fetch for each leader and round. Where the topic is
//! faster, what is too far behind is skipped and counted.

use super::decode::Decoding;
use super::fetch::{self, Limits, Page, Shown, Want};
use super::needle::Needle;
use crate::kafka::{Partition, metadata, offsets};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use std::collections::{BTreeMap, BTreeSet};

/// Of one round.
const RECORDS_MAX: usize = 100;
const BYTES_MAX: usize = 1024 * 1024;
/// Of one leader's answer. A larger batch comes whole, and alone.
const FETCH_BYTES_MAX: i32 = 512 * 1024;
const PARTITION_BYTES_MAX: i32 = 128 * 1024;
/// How long a leader waits for a record, where there is one leader alone.
const WAIT_MS: i32 = 500;
/// A partition that is further behind goes on this far before its end.
const BEHIND_MAX: i64 = 1000;
const BEHIND_AFTER: i64 = 50;

/// Where each partition goes on.
#[derive(Debug)]
pub struct Following {
    pub topic: MetadataResponseTopic,
    pub next: BTreeMap<i32, i64>,
    pub needle: Option<Needle>,
    pub decoding: Option<Decoding>,
}

/// What one round has brought.
#[derive(Debug, Default)]
pub struct Round {
    pub records: Vec<Shown>,
    /// Offsets that were passed over, by partition.
    pub skipped: BTreeMap<i32, i64>,
    pub troubles: BTreeMap<i32, String>,
    /// A partition has another leader now, or none.
    pub has_moved: bool,
    /// Leaders that were asked.
    pub leaders: usize,
    /// Of what the records hold.
    pub bytes: usize,
}

impl Round {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.skipped.is_empty() && self.troubles.is_empty()
    }

    fn skip(&mut self, partition: i32, offsets: i64) {
        if offsets > 0 {
            *self.skipped.entry(partition).or_default() += offsets;
        }
    }
}

impl Following {
    fn name(&self) -> String {
        self.topic.name.as_deref().unwrap_or_default().to_owned()
    }

    /// Asks every leader once. With `is_first` none waits for records.
    ///
    /// # Errors
    /// The authorizer refuses; no broker answers.
    pub async fn round(&mut self, cluster: &mut Cluster, is_first: bool) -> Result<Round, ClientError> {
        let mut round = Round::default();
        let leaders = self.leaders(&mut round);
        round.leaders = leaders.len();
        let wait_ms = if leaders.len() == 1 && !is_first { WAIT_MS } else { 0 };
        let (bytes, partition_bytes) = (FETCH_BYTES_MAX, PARTITION_BYTES_MAX);
        let limits = Limits { wait_ms, bytes, partition_bytes, is_committed: false };
        let mut lost = BTreeSet::new();
        for (leader, asked) in leaders {
            let told = match fetch::ask(cluster, leader, &self.topic, (&asked, limits)).await {
                Ok(told) => told,
                Err(error) if error.is_retriable() => {
                    round.has_moved = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            for row in told {
                match ErrorCode::from_code(row.error_code) {
                    ErrorCode::None => {
                        if let (Some(decoding), Some(records)) = (&self.decoding, &row.records) {
                            decoding.prepare(records).await;
                        }
                        self.take(&mut round, row);
                    }
                    ErrorCode::OffsetOutOfRange => {
                        lost.insert(row.partition_index);
                    }
                    code if code.is_retriable() => round.has_moved = true,
                    code => return Err(ClientError::refused(self.name(), code.code(), None)),
                }
            }
        }
        self.find_again(cluster, &mut round, lost).await?;
        if round.has_moved {
            self.topic = metadata::topic(cluster, &self.name()).await?;
        }
        Ok(round)
    }

    /// The partitions of each leader, and where they go on.
    fn leaders(&self, round: &mut Round) -> BTreeMap<BrokerId, Vec<(i32, i64)>> {
        let mut leaders: BTreeMap<BrokerId, Vec<(i32, i64)>> = BTreeMap::new();
        for (partition, next) in &self.next {
            let row = self.topic.partitions.iter().find(|row| row.partition_index == *partition);
            match row.map(|row| row.leader_id).filter(|leader| *leader >= 0) {
                Some(leader) => leaders.entry(BrokerId(leader)).or_default().push((*partition, *next)),
                None => round.has_moved = true,
            }
        }
        leaders
    }

    fn take(&mut self, round: &mut Round, told: fetch::PartitionData) {
        let partition = told.partition_index;
        let Some(next) = self.next.get_mut(&partition) else { return };
        let mut page = Page::from(*next);
        let want = Want {
            partition,
            count: RECORDS_MAX.saturating_sub(round.records.len()),
            bytes_max: BYTES_MAX.saturating_sub(round.bytes),
            until: i64::MAX,
            needle: self.needle.as_ref(),
            decoding: self.decoding.as_ref(),
        };
        fetch::read(&mut page, told, &want);
        let end = page.high_watermark;
        let behind = end - page.next;
        let onward = match &page.trouble {
            // What cannot be read now cannot be read later.
            Some(_) => end.max(page.next),
            None if behind > BEHIND_MAX => end - BEHIND_AFTER,
            None => page.next,
        };
        round.skip(partition, onward - page.next);
        round.bytes += page.bytes;
        round.records.extend(page.records);
        round.troubles.extend(page.trouble.map(|trouble| (partition, trouble)));
        *next = onward;
    }

    /// Records were deleted, or the log is shorter now: goes on at the nearer end.
    async fn find_again(
        &mut self,
        cluster: &mut Cluster,
        round: &mut Round,
        lost: BTreeSet<i32>,
    ) -> Result<(), ClientError> {
        let name = self.name();
        let lost: BTreeSet<Partition> = lost.into_iter().map(|partition| (name.clone(), partition)).collect();
        let starts = offsets::list(cluster, &lost, offsets::EARLIEST).await?;
        let ends = offsets::list(cluster, &lost, offsets::LATEST).await?;
        for of in lost {
            let (Some(Ok(start)), Some(Ok(end))) = (starts.get(&of), ends.get(&of)) else {
                round.has_moved = true;
                continue;
            };
            if let Some(next) = self.next.get_mut(&of.1) {
                let found = (*next).clamp(*start, (*end).max(*start));
                round.skip(of.1, found - *next);
                *next = found;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::TimestampMs;
    use barnabas_wire::records::{BatchBuilder, BatchOptions};

    fn following(next: i64, needle: Option<&str>) -> Following {
        let needle = needle.map(|text| Needle::text(text, false).expect("sound"));
        Following {
            topic: MetadataResponseTopic::default(),
            next: BTreeMap::from([(0, next)]),
            needle,
            decoding: None,
        }
    }

    /// `count` records from offset 0 on, of a partition that ends at `end`.
    fn told(count: i64, end: i64) -> fetch::PartitionData {
        let mut batch = BatchBuilder::new(BatchOptions::default());
        for offset in 0..count {
            batch.push(TimestampMs(offset), None, Some(format!("value {offset}").as_bytes()), &[]);
        }
        let records = (count > 0).then(|| batch.build().expect("a batch"));
        fetch::PartitionData { partition_index: 0, high_watermark: end, records, ..Default::default() }
    }

    #[test]
    fn topic_that_is_too_fast_is_skipped_and_counted() {
        let (mut following, mut round) = (following(0, None), Round::default());
        following.take(&mut round, told(500, 1_000_000));
        assert_eq!(round.records.len(), RECORDS_MAX);
        assert_eq!(following.next[&0], 1_000_000 - BEHIND_AFTER);
        assert_eq!(round.skipped[&0], 1_000_000 - BEHIND_AFTER - RECORDS_MAX as i64);
    }

    #[test]
    fn burst_is_shown_round_by_round() {
        let mut following = following(0, None);
        let mut seen = Vec::new();
        for _ in 0..3 {
            let mut round = Round::default();
            following.take(&mut round, told(250, 250));
            assert!(round.skipped.is_empty());
            seen.extend(round.records.iter().map(|record| record.offset));
        }
        assert!(seen.into_iter().eq(0..250));
        assert_eq!(following.next[&0], 250);
    }

    #[test]
    fn text_is_looked_for_in_all_that_is_read() {
        let (mut following, mut round) = (following(0, Some("value 17")), Round::default());
        following.take(&mut round, told(250, 250));
        let found: Vec<i64> = round.records.iter().map(|record| record.offset).collect();
        assert_eq!(
            (found, following.next[&0]),
            ([17, 170, 171, 172, 173, 174, 175, 176, 177, 178, 179].to_vec(), 250)
        );
    }

    #[test]
    fn unreadable_records_are_named_and_passed() {
        let (mut following, mut round) = (following(0, None), Round::default());
        let mut told = told(3, 3);
        let mut bytes = told.records.take().expect("records").to_vec();
        *bytes.last_mut().expect("a byte") ^= 1;
        told.records = Some(bytes.into());
        following.take(&mut round, told);
        assert!(round.troubles[&0].contains("at offset 0"), "{:?}", round.troubles);
        assert_eq!((following.next[&0], round.skipped[&0]), (3, 3));
    }
}
