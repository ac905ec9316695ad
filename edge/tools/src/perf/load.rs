//! One producer's thread: what is sent when, and what is noted of it.
//!
//! With a rate, record `i` of the run is due at `i / rate` after its start, whatever became of those before; its
//! latency counts from then. So a stall is seen by every record that would have been sent during it ("coordinated
//! omission" does not happen). Without a rate, or in a closed loop, it counts from the sending.
//!
//! Times are read once for [`CLOCK_EVERY`] records: at a million records a second that is an error of 16 µs at the
//! most.

use super::report::Stats;
use crate::{ToolError, say, say_trouble, tell};
use barnabas_client::{Counters, Delivery, PipelineConfig, PipelinedProducer, Record, Spread, Taken};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Records between two readings of the clock.
const CLOCK_EVERY: u64 = 16;
/// However full the batches are not, the sockets are looked at this often.
const LOOK_EVERY: Duration = Duration::from_micros(500);
/// With a rate, what falls due within so long is sent together: a thread that wakes for each record does little else.
const STEP_MIN: Duration = Duration::from_micros(100);
/// One wait for the sockets; what is due ends it earlier.
const TURN_MAX: Duration = Duration::from_secs(1);
/// Random letters, for records whose content does not matter.
const POOL_BYTES: usize = 64 * 1024;

/// Where records come from.
#[derive(Debug, Clone)]
pub enum Payload {
    /// Random letters, so many.
    Size(usize),
    /// One of these, drawn for each record.
    Lines(Vec<Vec<u8>>),
    /// The record's number in decimal.
    Monotonic,
}

/// What is to be sent.
#[derive(Debug, Clone)]
pub struct Job {
    pub topic: String,
    pub config: PipelineConfig,
    pub spread: Spread,
    pub payload: Payload,
    pub records: u64,
    pub warmup_records: u64,
    pub rate: Option<f64>,
    pub is_open_loop: bool,
    pub producers: u64,
    pub interval: Duration,
}

/// What all producers of a run count together.
#[derive(Debug)]
pub struct Count {
    pub stats: Mutex<Stats>,
    pub steady: Mutex<Option<Stats>>,
    pub failed: Mutex<Failures>,
    is_ended: AtomicBool,
}

#[derive(Debug, Default)]
pub struct Failures {
    pub records: u64,
    pub first: Option<String>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panics with the lock ends the run; the counts stay valid.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Count {
    pub fn new(job: &Job, started: Instant) -> Self {
        Self {
            stats: Mutex::new(Stats::new(started, job.interval, false)),
            steady: Mutex::new(None),
            failed: Mutex::new(Failures::default()),
            is_ended: AtomicBool::new(false),
        }
    }

    /// The warm-up's last record is sent: from here on the steady state counts too.
    fn begin_steady(&self, job: &Job) {
        *lock(&self.steady) = Some(Stats::new(Instant::now(), job.interval, true));
        lock(&self.stats).hush();
    }
}

/// A mark carries the time from which a record counts, and whether the record belongs to the warm-up.
fn mark(ns: u64, is_warm_up: bool) -> u64 {
    ns << 1 | u64::from(is_warm_up)
}

/// Wakes to the microsecond, where the runtime's timers count whole milliseconds.
struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    #[allow(deprecated)] // Of the owner of a descriptor it is sound: tokio's other constructors are unsafe, for those that are not.
    fn new() -> std::io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self(AsyncFd::with_interest(timer, Interest::READABLE)?))
    }

    fn set(&self, after: Duration) -> Result<(), ToolError> {
        let time = |after: Duration| Timespec {
            tv_sec: after.as_secs() as i64,
            tv_nsec: after.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: time(Duration::ZERO), it_value: time(after) };
        let set = timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once);
        set.map(drop).map_err(|error| ToolError::Runtime(error.into()))
    }

    async fn rings(&self) -> Result<(), ToolError> {
        let mut guard = self.0.readable().await.map_err(ToolError::Runtime)?;
        // After this read the descriptor is empty until the next expiry. If the timer expired
        // before it was set again, the caller wakes once too often and looks at the clock.
        guard.clear_ready();
        match rustix::io::read(self.0.get_ref(), &mut [0; 8]) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(ToolError::Runtime(error.into())),
        }
        Ok(())
    }
}

struct Sender<'a> {
    job: &'a Job,
    count: &'a Count,
    producer: PipelinedProducer,
    timer: Timer,
    started: Instant,
    started_unix: Duration,
    now: Duration,
    looked: Duration,
    until_clock: u64,
    random: u64,
    pool: Vec<u8>,
    pool_at: usize,
    fresh: Vec<u8>,
}

/// Sends every `producers`th record of the job, from `first` on. Returns what the client counted.
pub async fn send(job: &Job, count: &Count, first: u64, started: Instant) -> Result<Counters, ToolError> {
    let producer = PipelinedProducer::new(&job.topic, job.config.clone(), job.spread).await?;
    let started_unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() - started.elapsed();
    let mut sender = Sender {
        job,
        count,
        producer,
        timer: Timer::new().map_err(ToolError::Runtime)?,
        started,
        started_unix,
        now: started.elapsed(),
        looked: Duration::ZERO,
        until_clock: 0,
        random: first.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        pool: Vec::new(),
        pool_at: 0,
        fresh: Vec::new(),
    };
    sender.fill_pool();
    sender.send_all(first).await?;
    sender.flush().await?;
    Ok(sender.producer.counters())
}

impl Sender<'_> {
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn fill_pool(&mut self) {
        if let Payload::Size(size) = self.job.payload {
            self.pool = vec![0; POOL_BYTES + size];
            let mut pool = std::mem::take(&mut self.pool);
            self.scribble(&mut pool);
            self.pool = pool;
            self.fresh = vec![0; size];
        }
    }

    /// Random letters from A to Z.
    fn scribble(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let drawn = self.draw().to_le_bytes();
            for (byte, drawn) in chunk.iter_mut().zip(drawn) {
                *byte = b'A' + ((u16::from(drawn) * 26) >> 8) as u8;
            }
        }
    }

    async fn flush(&mut self) -> Result<(), ToolError> {
        self.producer.close_batches()?;
        while self.producer.outstanding() > 0 {
            self.producer.turn(TURN_MAX).await?;
            self.take_deliveries()?;
        }
        Ok(())
    }

    async fn send_all(&mut self, first: u64) -> Result<(), ToolError> {
        let (records, step) = (self.job.records, self.job.producers);
        let mut index = first;
        while index < records && !self.count.is_ended.load(Ordering::Relaxed) {
            let mut from = self.now;
            if let Some(rate) = self.job.rate {
                let due = Duration::from_secs_f64(index as f64 / rate);
                self.wait_for(due).await?;
                from = if self.job.is_open_loop { due } else { self.now };
            } else if self.until_clock == 0 {
                self.look().await?;
                from = self.now;
            }
            self.until_clock -= u64::from(self.until_clock > 0);
            let warm = self.job.warmup_records;
            if warm > 0 && index == warm {
                self.count.begin_steady(self.job);
            }
            let mark = mark(from.as_nanos() as u64, index < warm);
            self.send_one(index, mark).await?;
            index += step;
        }
        Ok(())
    }

    /// Reads the clock, and looks at the sockets where that is due.
    async fn look(&mut self) -> Result<(), ToolError> {
        self.until_clock = CLOCK_EVERY;
        self.now = self.started.elapsed();
        if self.producer.is_due() || self.now - self.looked >= LOOK_EVERY {
            self.looked = self.now;
            self.producer.turn(Duration::ZERO).await?;
            self.take_deliveries()?;
        }
        Ok(())
    }

    /// Waits until `due`. What is due already is not waited for, but the sockets are looked at now and then.
    async fn wait_for(&mut self, due: Duration) -> Result<(), ToolError> {
        if due <= self.now {
            if self.until_clock == 0 {
                self.look().await?;
            }
            return Ok(());
        }
        loop {
            self.now = self.started.elapsed();
            if due <= self.now {
                return Ok(());
            }
            self.timer.set((due - self.now).max(STEP_MIN))?;
            tokio::select! {
                turned = self.producer.turn(TURN_MAX) => turned?,
                rang = self.timer.rings() => rang?,
            }
            self.looked = self.now;
            self.take_deliveries()?;
        }
    }

    async fn send_one(&mut self, index: u64, mark: u64) -> Result<(), ToolError> {
        let mut line = Vec::new();
        let drawn = match &self.job.payload {
            Payload::Lines(lines) => {
                let count = lines.len() as u64;
                (self.draw() % count) as usize
            }
            // Without compression, payloads may repeat. With compression each is drawn again, as in
            // Kafka's tool.
            Payload::Size(size) if self.job.config.compression == Default::default() => {
                self.pool_at = (self.pool_at + size + 1) % POOL_BYTES;
                self.pool_at
            }
            Payload::Size(_) => {
                let mut fresh = std::mem::take(&mut self.fresh);
                self.scribble(&mut fresh);
                self.fresh = fresh;
                usize::MAX
            }
            Payload::Monotonic => {
                line = index.to_string().into_bytes();
                0
            }
        };
        let timestamp_ms = Some((self.started_unix + self.now).as_millis() as i64);
        loop {
            let value = match &self.job.payload {
                Payload::Lines(lines) => &lines[drawn][..],
                Payload::Size(_) if drawn == usize::MAX => &self.fresh[..],
                Payload::Size(size) => &self.pool[drawn..drawn + size],
                Payload::Monotonic => &line[..],
            };
            let record = Record { value: Some(value), timestamp_ms, ..Record::default() };
            if self.producer.send(&record, mark)? == Taken::Yes {
                return Ok(());
            }
            self.producer.turn(Duration::from_millis(100)).await?;
            self.take_deliveries()?;
            self.now = self.started.elapsed();
        }
    }

    fn take_deliveries(&mut self) -> Result<(), ToolError> {
        while let Some(trouble) = self.producer.next_trouble() {
            say_trouble("producer-perf-test", &trouble, &self.job.topic, "written")?;
        }
        let Some(mut delivery) = self.producer.next_delivery() else { return Ok(()) };
        let now = self.started.elapsed().as_nanos() as u64;
        let count = self.count;
        let mut stats = lock(&count.stats);
        let mut steady = lock(&count.steady);
        loop {
            self.note(delivery, now, &mut stats, steady.as_mut());
            match self.producer.next_delivery() {
                Some(next) => delivery = next,
                None => break,
            }
        }
        let at = Instant::now();
        let mut lines = stats.window_lines(at);
        lines.extend(steady.iter_mut().flat_map(|steady| steady.window_lines(at)));
        for line in lines {
            say(&line)?;
        }
        Ok(())
    }

    fn note(&self, delivery: Delivery, now: u64, stats: &mut Stats, mut steady: Option<&mut Stats>) {
        if let Some(error) = delivery.error {
            let mut failed = lock(&self.count.failed);
            if failed.first.is_none() {
                tell(&format!("WARN {} records were not sent: {error}", delivery.records));
                failed.first = Some(error.to_string());
            }
            failed.records += delivery.records.unsigned_abs() as u64;
            return;
        }
        // Within a batch sizes may differ; in its sum they do not.
        let (mut bytes_left, mut records_left) =
            (delivery.content_bytes, u64::from(delivery.records.unsigned_abs()));
        for (mark, records) in delivery.marks {
            let us = now.saturating_sub(mark >> 1) / 1_000;
            let records = u64::from(records);
            let bytes = bytes_left * records / records_left.max(1);
            (bytes_left, records_left) = (bytes_left - bytes, records_left - records);
            stats.record(us, records, bytes);
            // Kafka's tool counts by the sending too: what was sent before the steady state is none of it.
            if let Some(steady) = steady.as_deref_mut().filter(|_| mark & 1 == 0) {
                steady.record(us, records, bytes);
            }
        }
    }
}

/// Ends all producers of a run early: one of them failed.
pub fn end(count: &Count) {
    count.is_ended.store(true, Ordering::Relaxed);
}
