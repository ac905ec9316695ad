//! Members of the group: they fetch, acknowledge, forget, leave; and what is judged of what they get.

use barnabas_base::{Offset, Text};
use barnabas_partition::{AckBatch, AckType, Acquire, AcquireMode, Acquired};
use barnabas_replica::{Fetched, ShareAckItem, SharesEffect};
use barnabas_wire::records::BatchHeader;
use bytes::Bytes;

use super::{DELIVERIES_MAX, LOCK_MS, ShareMistake, ShareWorld};

const BATCH_SIZE: i64 = 3;

impl ShareWorld {
    pub(super) fn fetch(&mut self, at: usize) -> Result<(), String> {
        let member = Text::from(["a", "b", "c"][self.random.below(3)]);
        let records_max = 1 + self.random.below(6) as i64;
        let mode = if self.random.one_in(3) { AcquireMode::BatchOptimized } else { AcquireMode::RecordLimit };
        self.fetch_for(at, &member, records_max, mode)
    }

    pub(super) fn fetch_for(
        &mut self,
        at: usize,
        member: &Text,
        records_max: i64,
        mode: AcquireMode,
    ) -> Result<(), String> {
        let leader = &self.leaders[at];
        if leader.is_fenced {
            return Ok(());
        }
        let (key, epoch) = (self.share_key(), leader.epoch);
        let loaded = self.shares_step(at, |shares, effects, _| shares.is_loaded(&key, epoch, effects))?;
        if loaded != Ok(true) {
            return Ok(());
        }
        let bounds = self.log.bounds();
        let next = self.leaders[at].shares.next_read(&key, &bounds, records_max);
        let Some((from, wish)) = next else { return Ok(()) };
        let bytes_max = if self.random.one_in(2) { wish } else { 200 };
        let (records, aborted) = self.log.read(from, bytes_max);
        let fetched = Fetched::of(records, aborted, from, self.log.isolation);
        let fetched = fetched.ok_or("whole batches were read, and none was found in them")?;
        if fetched.end() <= from || fetched.size_bytes() == 0 {
            return Err(format!("what was read from {from} ends at {}", fetched.end()));
        }
        let ask = Acquire { member, mode, records_max, batch_size: BATCH_SIZE, from };
        let read = self.shares_step(at, |shares, _, now| {
            shares.note_read(&key, &fetched);
            shares.acquire(&key, &ask, &fetched, now)
        })?;
        let count: i64 = read.acquired.iter().map(Acquired::count).sum();
        if mode == AcquireMode::RecordLimit && count > records_max {
            return Err(format!("{records_max} records were asked for, and {count} given"));
        }
        if self.is_printed {
            println!("{} leader {at} gives {:?} to {member}", self.now, read.acquired);
        }
        for of in read.acquired {
            self.check_given(at, &of, &read.records)?;
            self.leaders[at].given.push((member.clone(), of, self.now + LOCK_MS));
        }
        Ok(())
    }

    fn check_given(&mut self, at: usize, of: &Acquired, records: &Bytes) -> Result<(), String> {
        if of.delivery_count > DELIVERIES_MAX {
            return Err(format!("{of:?} is given too often"));
        }
        if !holds(records, of) {
            return Err(format!("{of:?} is given without its records"));
        }
        let newest = self.leaders.iter().rposition(|leader| leader.has_loaded);
        for offset in of.first.get()..=of.last.get() {
            self.day.delivered += 1;
            self.given.insert(offset);
            self.note(offset as u64);
            if self.log.is_hidden(offset) {
                return Err(format!("{offset} was aborted, and given to a member that reads committed"));
            }
            // An older leader may not know that it is none.
            if newest == Some(at) && self.settled.contains(&offset) {
                return Err(format!("{offset} is settled, and given by leader {at}"));
            }
        }
        Ok(())
    }

    pub(super) fn acknowledge(&mut self, at: usize) -> Result<(), String> {
        let count = self.leaders[at].given.len();
        if count == 0 || self.leaders[at].is_fenced {
            return Ok(());
        }
        let which = self.random.below(count);
        let (member, of, until) = self.leaders[at].given.swap_remove(which);
        let said = match self.random.below(12) {
            0..6 => AckType::Accept,
            6 => AckType::Reject,
            7 | 8 => AckType::Release,
            9 => {
                self.acknowledge_as(at, &member, (&of, until), AckType::Renew)?;
                self.leaders[at].given.push((member, of, until));
                return Ok(());
            }
            // It is forgotten, and its lock ends.
            _ => return Ok(()),
        };
        self.acknowledge_as(at, &member, (&of, until), said)
    }

    pub(super) fn acknowledge_as(
        &mut self,
        at: usize,
        member: &Text,
        (of, until): (&Acquired, u64),
        said: AckType,
    ) -> Result<(), String> {
        // An acknowledgement below the start is taken, and changes nothing.
        // Nor does one after the lock has ended, when the record may be done in another way.
        let settles = matches!(said, AckType::Accept | AckType::Reject) && self.now < until;
        let first = of.first.max(self.log.bounds().log_start);
        let offsets: Vec<i64> = if settles { (first.get()..=of.last.get()).collect() } else { Vec::new() };
        let key = self.share_key();
        let batch = AckBatch { first: of.first, last: of.last, types: vec![said] };
        let item = ShareAckItem { slot: 0, partition: key.partition, batches: vec![batch] };
        let mut effects = Vec::new();
        let now = barnabas_base::MonotonicMs(self.now);
        let shares = &mut self.leaders[at].shares;
        let command = shares.acknowledge((&key.group, member), &[item], now, &mut effects);
        let is_refused = |effect: &SharesEffect| match effect {
            SharesEffect::Acknowledged { outcomes, .. } => outcomes.iter().any(|each| each.result.is_err()),
            _ => false,
        };
        if self.mistake == Some(ShareMistake::TellsEarly) && !effects.iter().any(is_refused) {
            self.settled.extend(offsets.clone());
        }
        self.leaders[at].commands.insert(command, offsets);
        effects.into_iter().try_for_each(|effect| self.take(at, effect))
    }

    /// A member ends its session with a leader, and with `is_last` the group has no other one there.
    pub(super) fn leave(&mut self, at: usize) -> Result<(), String> {
        if self.leaders[at].is_fenced {
            return Ok(());
        }
        let member = Text::from(["a", "b", "c"][self.random.below(3)]);
        let is_last = self.random.one_in(3);
        self.leaders[at].given.retain(|(owner, ..)| *owner != member);
        let key = self.share_key();
        self.shares_step(at, |shares, effects, _| {
            shares.release((&key.group, &member), &[key.partition], is_last, effects);
        })
    }
}

/// Whether batches in `records` reach over all that was acquired.
fn holds(records: &Bytes, of: &Acquired) -> bool {
    let (mut at, mut next) = (0, of.first);
    while let Ok(header) = BatchHeader::parse(&records[at..]) {
        if (header.base_offset..=header.last_offset()).contains(&next) {
            next = Offset(header.last_offset().get() + 1);
        }
        at += header.size_bytes();
        if at >= records.len() {
            break;
        }
    }
    next > of.last
}
