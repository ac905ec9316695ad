//! A producer that lives through every cut: five requests in flight, and what was not answered is sent again.
//!
//! With `acks=all` it is an idempotent producer with one identity for its whole life: a batch that is sent again has
//! its old sequence, and the node must neither store it twice nor call it out of order. With `acks=1` it has no
//! sequences, so what was not answered is given up: the judge allows it to be there or not, once. What was first sent
//! after a cut must not be acknowledged.

use super::{Acked, LoadTopic, PLAIN_WRITERS, TOPICS};
use crate::Trouble;
use crate::chance::Chance;
use crate::kafka::{Connection, PRODUCE, Place, produce_request, produced};
use crate::records::{Identity, Stamp, batch};
use barnabas_base::{ErrorCode, TimestampMs};
use barnabas_wire::messages::ProduceRequest;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const IN_FLIGHT: usize = 5;

/// What all threads of a cycle's load share.
#[derive(Debug, Default)]
pub struct Shared {
    pub stop: AtomicBool,
    /// Bytes that may still be written in this cycle before the writers slow down.
    pub bytes_left: AtomicI64,
    /// The power is gone.
    pub is_cut: AtomicBool,
}

impl Shared {
    pub fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// One connection after another, until told to stop.
    pub fn reconnect(&self, mut session: impl FnMut() -> Result<(), Trouble>) {
        while self.goes_on() {
            if session().is_err() {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Sent {
    place: Place,
    first: u64,
    count: u32,
    bytes: Bytes,
    /// It was sent, for the last time, when the power was gone.
    is_too_late: bool,
}

/// One producer. See the file's header.
#[derive(Debug)]
pub struct Writer {
    number: u32,
    chance: Chance,
    identity: Option<Identity>,
    next: HashMap<Place, u64>,
    /// In the order in which they were sent.
    unanswered: VecDeque<Sent>,
    pub acked: Vec<Acked>,
    pub has_written: bool,
    /// Answers that no honest node gives to this producer.
    pub refused: Vec<String>,
}

impl Writer {
    pub fn new(number: u32, chance: Chance) -> Self {
        Self {
            number,
            chance,
            identity: None,
            next: HashMap::new(),
            unanswered: VecDeque::new(),
            acked: Vec::new(),
            has_written: false,
            refused: Vec::new(),
        }
    }

    fn acks(&self) -> i16 {
        if self.number >= PLAIN_WRITERS { 1 } else { -1 }
    }

    /// Sends until told to stop, over as many connections as that takes.
    pub fn run(&mut self, port: u16, shared: &Shared) {
        shared.reconnect(|| match self.refused.is_empty() {
            true => self.session(port, shared),
            false => crate::trouble("refused before"),
        });
    }

    /// Waits for what is still unanswered, without sending anything new.
    pub fn settle(&mut self, port: u16) -> Result<(), Trouble> {
        let mut connection = Connection::open(port)?;
        for _ in 0..100 {
            if self.unanswered.is_empty() || self.send_again(&mut connection, &Shared::default())? {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        crate::trouble(format!("writer {} is not answered", self.number))
    }

    fn session(&mut self, port: u16, shared: &Shared) -> Result<(), Trouble> {
        let mut connection = Connection::open(port)?;
        if self.acks() == 1 {
            self.unanswered.clear();
        } else if self.identity.is_none() {
            self.identity = Some(connection.identity()?);
        }
        if !self.send_again(&mut connection, shared)? {
            return crate::trouble("not taken yet");
        }
        let mut requests: VecDeque<usize> = VecDeque::new();
        while shared.goes_on() {
            while requests.len() < IN_FLIGHT {
                requests.push_back(self.send_new(&mut connection, shared)?);
            }
            let Some(batches) = requests.pop_front() else { continue };
            if !self.take_answer(&mut connection, batches, shared)? {
                return crate::trouble("refused");
            }
        }
        Ok(())
    }

    /// What was not answered on the connection before. Whether all of it was taken now.
    fn send_again(&mut self, connection: &mut Connection, shared: &Shared) -> Result<bool, Trouble> {
        let count = self.unanswered.len();
        let acks = self.acks();
        for sent in &mut self.unanswered {
            sent.is_too_late = shared.is_cut.load(Ordering::SeqCst);
            connection.send(&produce_request(acks, [(&sent.place, sent.bytes.clone())]), PRODUCE)?;
        }
        let mut taken = true;
        for _ in 0..count {
            taken &= self.take_answer(connection, 1, shared)?;
            if !taken {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One request with new batches, for one partition or a few. Returns how many.
    fn send_new(&mut self, connection: &mut Connection, shared: &Shared) -> Result<usize, Trouble> {
        let count = if self.chance.one_in(4) { self.chance.within(2, 6) } else { 1 };
        let mut batches: Vec<Sent> = Vec::new();
        for _ in 0..count {
            let (topic, place) = self.somewhere();
            if batches.iter().all(|sent| sent.place != place) {
                batches.push(self.make(topic, place, shared)?);
            }
        }
        let left = shared.bytes_left.load(Ordering::Relaxed);
        if left < 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        let request =
            produce_request(self.acks(), batches.iter().map(|sent| (&sent.place, sent.bytes.clone())));
        let made = batches.len();
        self.unanswered.extend(batches);
        connection.send(&request, PRODUCE)?;
        Ok(made)
    }

    fn somewhere(&mut self) -> (&'static LoadTopic, Place) {
        let topic = &TOPICS[self.chance.within(0, TOPICS.len() as u64) as usize];
        let partition = self.chance.within(0, topic.partitions as u64) as i32;
        (topic, Place { topic: topic.name.to_owned(), partition })
    }

    fn make(&mut self, topic: &LoadTopic, place: Place, shared: &Shared) -> Result<Sent, Trouble> {
        let is_large = self.chance.one_in(24) && shared.bytes_left.load(Ordering::Relaxed) > 0;
        let (count, bytes) = match is_large {
            true if self.chance.one_in(2) => (1, self.chance.within(1_000, topic.large_bytes as u64)),
            true => (40, self.chance.within(20, topic.large_bytes as u64 / 40)),
            false => (self.chance.within(1, 12), self.chance.within(20, 300)),
        };
        let next = self.next.entry(place.clone()).or_insert(0);
        let first = Stamp { writer: self.number, number: *next };
        *next += count;
        let records = batch(self.identity, first, count as u32, bytes as usize, now())?;
        shared.bytes_left.fetch_sub(records.len() as i64, Ordering::Relaxed);
        let is_too_late = shared.is_cut.load(Ordering::SeqCst);
        Ok(Sent { place, first: first.number, count: count as u32, bytes: records, is_too_late })
    }

    /// The answer to one request of so many batches. `false`: some of them must be sent again.
    fn take_answer(
        &mut self,
        connection: &mut Connection,
        batches: usize,
        shared: &Shared,
    ) -> Result<bool, Trouble> {
        let answer = connection.receive::<ProduceRequest>(PRODUCE)?;
        let mut all = true;
        let mut seen = 0;
        for (place, told) in produced(&answer) {
            seen += 1;
            match told {
                Ok(base) => self.note(&place, base, shared)?,
                Err(code) => {
                    all = false;
                    self.note_refusal(&place, code);
                }
            }
        }
        if seen != batches {
            self.refused.push(format!("{seen} answers to {batches} batches"));
        }
        Ok(all)
    }

    fn note(&mut self, place: &Place, base: i64, shared: &Shared) -> Result<(), Trouble> {
        let found = self.unanswered.iter().position(|sent| sent.place == *place);
        let Some(sent) = found.and_then(|at| self.unanswered.remove(at)) else {
            return crate::trouble(format!("an answer for {place} without a request"));
        };
        // Once the node is started again it may well be taken.
        if sent.is_too_late && shared.is_cut.load(Ordering::SeqCst) {
            self.refused.push(format!(
                "writer {} at {place}: acknowledged what was sent when the power was gone",
                self.number
            ));
        }
        let first = Stamp { writer: self.number, number: sent.first };
        self.acked.push(Acked { place: sent.place, base, first, count: sent.count, acks: self.acks() });
        Ok(())
    }

    /// While the node starts or its disk is dying it may refuse; it may never say that this producer is out of step.
    fn note_refusal(&mut self, place: &Place, code: ErrorCode) {
        let passes = code.is_retriable() && code != ErrorCode::OutOfOrderSequenceNumber;
        if !passes {
            self.refused.push(format!("writer {} at {place}: {code}", self.number));
        }
    }
}

fn now() -> TimestampMs {
    TimestampMs(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64))
}
