//! An open-loop producer whose latencies count from the time at which a record was due, and a reader beside it.
//!
//! `tail produce BOOTSTRAP TOPIC PRODUCERS PER_SECOND RECORD_BYTES SECONDS WARM_UP_SECONDS KEYS [key=value …]`
//! `tail read BOOTSTRAP TOPIC PARTITIONS FROM RECORDS [key=value …]`
//!
//! produce: record k of all is due k ÷ PER_SECOND seconds after the start, whatever became of those before it. Its
//! latency is from then to its acknowledgement, so a stall counts for every record that was due in it (no coordinated
//! omission): a record that a full queue or a busy processor keeps back is late by that as well, and one that is never
//! sent or acknowledged counts with its age at the end ([`GRACE`] after the last was due). One JSON line: a histogram,
//! a time line by the second in which records were due, and of each second the slowest acknowledgements: records of
//! one partition that were answered together ([`Together`]). Times are µs of CLOCK_MONOTONIC, as watch.rs and Python
//! have them. KEYS 0: librdkafka chooses the partition for 10 ms, as it does without keys; else so many keys in turn.
//! read: from the beginning (-2) or the end (-1); RECORDS 0: until the end of standard input. One JSON line.
//! Memory is bounded by the run's seconds ([`SECONDS_MAX`] at most). Compiled by rustc alone (programs.py).

mod histogram;
#[path = "../rig/librdkafka.rs"]
mod librdkafka;

use histogram::Histogram;
use librdkafka::{
    CONSUMER, Message, PRODUCER, QUEUE_FULL, client, conf, rd_kafka_conf_set_dr_msg_cb, rd_kafka_conf_set_opaque, rd_kafka_consume_callback_queue, rd_kafka_consume_start_queue,
    rd_kafka_flush, rd_kafka_last_error, rd_kafka_message_latency, rd_kafka_poll, rd_kafka_produce, rd_kafka_purge, rd_kafka_queue_new, settings, version,
};
use std::ffi::{c_int, c_void};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const SECONDS_MAX: usize = 3600;
/// How long after the last record was due acknowledgements are waited for, µs.
const GRACE: u64 = 60_000_000;
/// Slow acknowledgements that each second keeps.
const SLOWEST: usize = 4;
/// The sender wakes so often: what is due in between is late by that at most.
const TICK: Duration = Duration::from_millis(1);
/// Queue and requests under way.
const PURGE_ALL: c_int = 3;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn clock_gettime(clock: c_int, told: *mut Timespec) -> c_int;
}

/// µs of CLOCK_MONOTONIC.
fn now_us() -> u64 {
    let mut told = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: a live pointer; clock 1 is there on every Linux.
    unsafe { clock_gettime(1, &raw mut told) };
    told.seconds as u64 * 1_000_000 + told.nanoseconds as u64 / 1000
}

/// What one producer is to send, and when.
struct Job {
    bootstrap: String,
    topic: String,
    record_bytes: usize,
    begun: u64,
    seconds: f64,
    warm_up: f64,
    keys: u64,
    settings: Vec<(String, String)>,
    producers: u64,
    /// µs between two records of one producer.
    interval: f64,
}

impl Job {
    /// When record `k` of producer `number` is due: those of several producers lie evenly between each other.
    fn due(&self, number: u64, k: u64) -> u64 {
        self.begun + ((k as f64 + number as f64 / self.producers as f64) * self.interval) as u64
    }

    fn records(&self) -> u64 {
        (self.seconds * 1e6 / self.interval) as u64
    }
}

/// Records of one partition, next to each other, that were acknowledged together: a request's batch.
#[derive(Clone)]
struct Together {
    partition: i32,
    records: u64,
    next_offset: i64,
    /// Of the oldest.
    due: u64,
    handed: u64,
    acked: u64,
}

/// What was due in one second.
#[derive(Clone)]
struct Second {
    latencies: Histogram,
    slowest: Vec<Together>,
}

impl Second {
    fn new() -> Self {
        Self { latencies: Histogram::new(), slowest: Vec::with_capacity(SLOWEST + 1) }
    }

    fn keep(&mut self, one: Together) {
        self.slowest.push(one);
        self.slowest.sort_by_key(|one| std::cmp::Reverse(one.acked - one.due));
        self.slowest.truncate(SLOWEST);
    }
}

/// One producer's figures; its polling thread alone writes them.
struct Told {
    job: Arc<Job>,
    number: u64,
    latencies: Histogram,
    /// From due to handed to librdkafka: the generator's own part.
    late: Histogram,
    seconds: Vec<Second>,
    open: Option<Together>,
    acked: u64,
    failed: u64,
    first_failure: c_int,
    never: u64,
    last_ack: u64,
}

impl Told {
    fn new(job: &Arc<Job>, number: u64) -> Self {
        let seconds = (job.seconds.ceil() as usize).clamp(1, SECONDS_MAX);
        Self {
            job: Arc::clone(job), number, latencies: Histogram::new(), late: Histogram::new(), seconds: vec![Second::new(); seconds], open: None, acked: 0, failed: 0,
            first_failure: 0, never: 0, last_ack: 0,
        }
    }

    fn second(&mut self, due: u64) -> &mut Second {
        let last = self.seconds.len() - 1;
        &mut self.seconds[((due.saturating_sub(self.job.begun) / 1_000_000) as usize).min(last)]
    }

    fn count(&mut self, due: u64, us: u64) {
        if (due - self.job.begun) as f64 >= self.job.warm_up * 1e6 {
            self.latencies.record(us);
        }
        self.second(due).latencies.record(us);
    }

    fn acknowledged(&mut self, partition: i32, offset: i64, due: u64, handed: u64, acked: u64) {
        self.acked += 1;
        self.last_ack = acked;
        self.count(due, acked.saturating_sub(due));
        if (due - self.job.begun) as f64 >= self.job.warm_up * 1e6 {
            self.late.record(handed.saturating_sub(due));
        }
        match &mut self.open {
            Some(open) if open.partition == partition && open.next_offset == offset && acked - open.acked < 1000 => {
                (open.records, open.next_offset) = (open.records + 1, offset + 1);
            }
            _ => {
                let begun = Together { partition, records: 1, next_offset: offset + 1, due, handed, acked };
                self.close(Some(begun));
            }
        }
    }

    fn close(&mut self, next: Option<Together>) {
        if let Some(done) = std::mem::replace(&mut self.open, next) {
            self.second(done.due).keep(done);
        }
    }

    /// Not acknowledged until now: it counts with its age.
    fn never(&mut self, k: u64, now: u64) {
        let due = self.job.due(self.number, k);
        self.never += 1;
        self.count(due, now.saturating_sub(due));
    }
}

extern "C" fn report(_: *mut c_void, message: *const Message, opaque: *mut c_void) {
    // SAFETY: librdkafka calls this from `rd_kafka_poll`, `rd_kafka_flush` only, on the thread that owns `told`; the
    // message is alive during the call.
    let (told, message, us) = unsafe { (&mut *opaque.cast::<Told>(), &*message, rd_kafka_message_latency(message)) };
    let (now, k) = (now_us(), message.private as u64 - 1);
    if message.err != 0 {
        told.failed += 1;
        told.first_failure = if told.first_failure == 0 { message.err } else { told.first_failure };
        return told.never(k, now);
    }
    let due = told.job.due(told.number, k);
    told.acknowledged(message.partition, message.offset, due, now.saturating_sub(us.max(0) as u64), now);
}

/// The sending half of a producer; how many records librdkafka took.
fn send(job: &Job, number: u64, handle: usize, topic: usize, taken: &AtomicU64) {
    let mut random = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut payload: Vec<u8> = (0..(1 << 16) + job.record_bytes).map(|_| { random ^= random << 13; random ^= random >> 7; random ^= random << 17; b'A' + (random % 26) as u8 }).collect();
    let (records, mut sent) = (job.records(), 0);
    let last = job.begun + (job.seconds * 1e6) as u64 + GRACE;
    while sent < records && now_us() < last {
        let now = now_us();
        while sent < records && job.due(number, sent) <= now {
            let key = if job.keys > 0 { format!("key-{:08}", sent.wrapping_mul(7919) % job.keys) } else { String::new() };
            let key_at = if key.is_empty() { std::ptr::null() } else { key.as_ptr().cast() };
            // SAFETY: librdkafka's own call with live pointers; the payload is never freed, the key is copied.
            let error = unsafe {
                let at = payload.as_mut_ptr().add((sent as usize * 101) & 0xffff);
                rd_kafka_produce(topic as *mut c_void, -1, 0, at.cast(), job.record_bytes, key_at, key.len(), (sent + 1) as *mut c_void)
            };
            if error != 0 {
                let error = unsafe { rd_kafka_last_error() };
                assert!(error == QUEUE_FULL, "produce: error {error}");
                break;
            }
            sent += 1;
        }
        taken.store(sent, Ordering::Release);
        std::thread::sleep(TICK);
    }
    std::mem::forget(payload);
}

fn produce(job: &Arc<Job>, number: u64) -> Box<Told> {
    let mut told = Box::new(Told::new(job, number));
    let (taken, is_sent) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    // SAFETY: librdkafka's own calls with live pointers; `told` outlives the last callback: the handle is polled here.
    let (handle, topic) = unsafe {
        let conf = conf(&job.bootstrap, &job.settings);
        rd_kafka_conf_set_dr_msg_cb(conf, report);
        rd_kafka_conf_set_opaque(conf, (&raw mut *told).cast());
        client(PRODUCER, conf, &job.topic)
    };
    let (of_sender, places) = ((Arc::clone(job), Arc::clone(&taken), Arc::clone(&is_sent)), (handle as usize, topic as usize));
    let sender = std::thread::spawn(move || {
        send(&of_sender.0, number, places.0, places.1, &of_sender.1);
        of_sender.2.store(true, Ordering::Release);
    });
    let last = job.begun + (job.seconds * 1e6) as u64 + GRACE;
    while now_us() < last && !(is_sent.load(Ordering::Acquire) && told.acked + told.failed == taken.load(Ordering::Acquire)) {
        // SAFETY: as above.
        unsafe { rd_kafka_poll(handle, 20) };
    }
    sender.join().expect("the sender");
    // SAFETY: as above. What is still under way is reported as failed, with its number.
    unsafe {
        rd_kafka_purge(handle, PURGE_ALL);
        rd_kafka_flush(handle, 5000);
    }
    let now = now_us();
    (taken.load(Ordering::Acquire)..job.records()).for_each(|k| told.never(k, now));
    told.close(None);
    told
}

/// The figures of all producers, as one line.
fn summed(job: &Job, told: &[Box<Told>]) -> String {
    let (mut latencies, mut late, mut seconds) = (Histogram::new(), Histogram::new(), vec![Second::new(); told[0].seconds.len()]);
    for one in told {
        latencies.merge(&one.latencies);
        late.merge(&one.late);
        for (sum, second) in seconds.iter_mut().zip(&one.seconds) {
            sum.latencies.merge(&second.latencies);
            second.slowest.iter().for_each(|one| sum.keep(one.clone()));
        }
    }
    let line: Vec<String> = seconds.iter().map(|second| {
        let of = |share| second.latencies.percentile_ms(share);
        format!("[{}, {:.3}, {:.3}, {:.3}]", second.latencies.total, of(0.5), of(0.99), of(1.0))
    }).collect();
    let slowest: Vec<String> = seconds.iter().flat_map(|second| &second.slowest).map(|one| format!("[{}, {}, {}, {}, {}]", one.due, one.handed, one.acked, one.partition, one.records)).collect();
    let sum = |of: fn(&Told) -> u64| told.iter().map(|one| of(one)).sum::<u64>();
    let error = told.iter().map(|one| one.first_failure).find(|&error| error != 0).unwrap_or(0);
    format!(
        "{{\"begun_us\": {}, \"acked\": {}, \"failed\": {}, \"never\": {}, \"error\": {error}, \"last_ack_us\": {}, \"histogram\": {}, \"max_us\": {}, \"late_p99_ms\": {:.3}, \"late_max_ms\": {:.3}, \"seconds\": [{}], \"slowest\": [{}], \"librdkafka\": \"{}\"}}",
        job.begun, sum(|one| one.acked), sum(|one| one.failed), sum(|one| one.never), told.iter().map(|one| one.last_ack).max().unwrap_or(0), latencies.sparse(), latencies.max_us,
        late.percentile_ms(0.99), late.percentile_ms(1.0), line.join(", "), slowest.join(", "), version()
    )
}

struct Counted {
    records: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
}

extern "C" fn read(message: *mut Message, opaque: *mut c_void) {
    // SAFETY: librdkafka calls this from `rd_kafka_consume_callback_queue` only; both are alive during the call.
    let (counted, message) = unsafe { (&*opaque.cast::<Counted>(), &*message) };
    if message.err != 0 {
        counted.errors.fetch_add(1, Ordering::Relaxed);
        return;
    }
    counted.records.fetch_add(1, Ordering::Relaxed);
    counted.bytes.fetch_add(message.len as u64, Ordering::Relaxed);
}

fn consume(words: &[String]) {
    let (partitions, from, records) = (number(words, 2) as i32, number(words, 3) as i64, number(words, 4) as u64);
    let (handle, topic) = client(CONSUMER, conf(&words[0], &settings(&words[5..])), &words[1]);
    let counted = Counted { records: AtomicU64::new(0), bytes: AtomicU64::new(0), errors: AtomicU64::new(0) };
    let ended = Arc::new(AtomicBool::new(false));
    let of_input = Arc::clone(&ended);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        of_input.store(true, Ordering::Relaxed);
    });
    let begun = now_us();
    // SAFETY: librdkafka's own calls with live pointers.
    unsafe {
        let queue = rd_kafka_queue_new(handle);
        for partition in 0..partitions {
            assert!(rd_kafka_consume_start_queue(topic, partition, from, queue) == 0, "partition {partition} cannot be read");
        }
        while !ended.load(Ordering::Relaxed) && (records == 0 || counted.records.load(Ordering::Relaxed) < records) {
            rd_kafka_consume_callback_queue(queue, 100, read, (&raw const counted).cast_mut().cast());
        }
    }
    let seconds = (now_us() - begun) as f64 / 1e6;
    let of = |one: &AtomicU64| one.load(Ordering::Relaxed);
    println!("{{\"records\": {}, \"mb_per_s\": {:.1}, \"seconds\": {seconds:.2}, \"errors\": {}}}", of(&counted.records), of(&counted.bytes) as f64 / 1e6 / seconds, of(&counted.errors));
}

fn number(words: &[String], at: usize) -> f64 {
    words[at].parse().unwrap_or_else(|_| panic!("word {at} is no number: {}", words[at]))
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("produce") => {
            let words = &words[1..];
            let producers = number(words, 2) as u64;
            let job = Arc::new(Job {
                bootstrap: words[0].clone(), topic: words[1].clone(), record_bytes: number(words, 4) as usize, seconds: number(words, 5), warm_up: number(words, 6),
                keys: number(words, 7) as u64, settings: settings(&words[8..]), producers, interval: producers as f64 * 1e6 / number(words, 3), begun: now_us() + 200_000,
            });
            let threads: Vec<_> = (0..producers).map(|number| { let job = Arc::clone(&job); std::thread::spawn(move || produce(&job, number)) }).collect();
            let told: Vec<Box<Told>> = threads.into_iter().map(|thread| thread.join().expect("a producer")).collect();
            println!("{}", summed(&job, &told));
        }
        Some("read") => consume(&words[1..]),
        other => panic!("produce or read, not {other:?}"),
    }
    // The clients' threads end with the process.
    std::process::exit(0);
}
