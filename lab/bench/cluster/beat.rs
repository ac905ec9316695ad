//! An open-loop producer, and a reader of the same topic, that notice every pause of every partition.
//!
//! `beat BOOTSTRAP TOPIC PARTITIONS PER_SECOND RECORD_BYTES READS [key=value …]`
//!
//! PER_SECOND records go to each partition, whatever becomes of those before; READS 1: a reader without a group, from
//! the end. Words on standard input: `now` tells how long each partition has been silent; `from` opens a window; `to`
//! closes it and tells each partition's longest pause in it, the last one included though it has not ended. The end of
//! the input ends the program. A pause is the time between two acknowledgements (or two records read) of one partition:
//! with 200 records a second it is known to 5 ms. Compiled by rustc alone against the library of the confluent-kafka
//! wheel (beat.py, ../rig/librdkafka.rs).

#[path = "../rig/librdkafka.rs"]
mod librdkafka;

use librdkafka::{
    CONSUMER, Message, PRODUCER, QUEUE_FULL, client, conf, rd_kafka_conf_set_dr_msg_cb, rd_kafka_conf_set_opaque, rd_kafka_consume_callback_queue, rd_kafka_consume_start_queue,
    rd_kafka_last_error, rd_kafka_message_latency, rd_kafka_poll, rd_kafka_produce, rd_kafka_queue_new, settings,
};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::BufRead;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

const END: i64 = -1;

unsafe extern "C" {
    fn rd_kafka_err2name(error: c_int) -> *const c_char;
}

/// What was seen of each partition. Pauses and counts are those of the open window.
struct Pulse {
    last: Vec<Option<Instant>>,
    longest: Vec<Duration>,
    latencies_us: Vec<u32>,
    events: u64,
    failed: u64,
    error: c_int,
}

impl Pulse {
    fn new(partitions: usize) -> Arc<Mutex<Self>> {
        let pulse = Self { last: vec![None; partitions], longest: vec![Duration::ZERO; partitions], latencies_us: Vec::new(), events: 0, failed: 0, error: 0 };
        Arc::new(Mutex::new(pulse))
    }

    fn beat(&mut self, partition: usize, now: Instant) {
        let pause = self.last[partition].map_or(Duration::ZERO, |last| now - last);
        self.longest[partition] = self.longest[partition].max(pause);
        self.last[partition] = Some(now);
        self.events += 1;
    }

    fn fail(&mut self, error: c_int) {
        self.failed += 1;
        self.error = if self.error == 0 { error } else { self.error };
    }

    fn open(&mut self) {
        self.longest.fill(Duration::ZERO);
        self.latencies_us.clear();
        (self.events, self.failed, self.error) = (0, 0, 0);
    }

    /// Silence of each partition until now, ms; -1 where nothing has come yet.
    fn silent(&self, now: Instant) -> String {
        joined(self.last.iter().map(|last| last.map_or(-1.0, |last| (now - last).as_secs_f64() * 1e3)))
    }

    fn told(&mut self, now: Instant) -> String {
        for (longest, last) in self.longest.iter_mut().zip(&self.last) {
            *longest = (*longest).max(last.map_or(Duration::ZERO, |last| now - last));
        }
        self.latencies_us.sort_unstable();
        let count = self.latencies_us.len();
        let percentile = |share: f64| self.latencies_us.get(((count as f64 * share) as usize).min(count.saturating_sub(1))).map_or(0.0, |us| f64::from(*us) / 1e3);
        // SAFETY: a static text of the library.
        let error = if self.error == 0 { "".into() } else { unsafe { CStr::from_ptr(rd_kafka_err2name(self.error)) }.to_string_lossy() };
        format!(
            "{{\"pauses_ms\": [{}], \"events\": {}, \"failed\": {}, \"error\": \"{error}\", \"p50_ms\": {:.3}, \"p99_ms\": {:.3}, \"max_ms\": {:.3}}}",
            joined(self.longest.iter().map(|pause| pause.as_secs_f64() * 1e3)), self.events, self.failed, percentile(0.5), percentile(0.99), percentile(1.0)
        )
    }
}

fn joined(numbers: impl Iterator<Item = f64>) -> String {
    numbers.map(|number| format!("{number:.1}")).collect::<Vec<_>>().join(", ")
}

fn held(pulse: &Mutex<Pulse>) -> MutexGuard<'_, Pulse> {
    pulse.lock().expect("nobody panics while it is held")
}

extern "C" fn acknowledged(_: *mut c_void, message: *const Message, opaque: *mut c_void) {
    // SAFETY: librdkafka calls this from `rd_kafka_poll` only; the pulse lives as long as the process, and the message
    // during the call.
    let (pulse, message, us) = unsafe { (&*opaque.cast::<Mutex<Pulse>>(), &*message, rd_kafka_message_latency(message)) };
    let mut pulse = held(pulse);
    if message.err != 0 {
        return pulse.fail(message.err);
    }
    pulse.beat(message.partition as usize, Instant::now());
    pulse.latencies_us.push(us.clamp(0, i64::from(u32::MAX)) as u32);
}

extern "C" fn read(message: *mut Message, opaque: *mut c_void) {
    // SAFETY: librdkafka calls this from `rd_kafka_consume_callback_queue` only; as above.
    let (pulse, message) = unsafe { (&*opaque.cast::<Mutex<Pulse>>(), &*message) };
    let mut pulse = held(pulse);
    if message.err != 0 {
        return pulse.fail(message.err);
    }
    pulse.beat(message.partition as usize, Instant::now());
}

struct Job {
    bootstrap: String,
    topic: String,
    partitions: i32,
    per_second: f64,
    record_bytes: usize,
    settings: Vec<(String, String)>,
}

fn produce(job: &Job, pulse: &Arc<Mutex<Pulse>>) -> ! {
    let mut payload = vec![b'x'; job.record_bytes];
    // SAFETY: librdkafka's own calls with live pointers; this function does not return, so that `payload` and `pulse`
    // live on.
    unsafe {
        let conf = conf(&job.bootstrap, &job.settings);
        rd_kafka_conf_set_dr_msg_cb(conf, acknowledged);
        rd_kafka_conf_set_opaque(conf, Arc::as_ptr(pulse).cast_mut().cast());
        let (handle, topic) = client(PRODUCER, conf, &job.topic);
        let (begun, mut sent) = (Instant::now(), 0u64);
        loop {
            let due = (begun.elapsed().as_secs_f64() * job.per_second * f64::from(job.partitions)) as u64;
            while sent < due {
                let partition = (sent % job.partitions as u64) as i32;
                if rd_kafka_produce(topic, partition, 0, payload.as_mut_ptr().cast(), payload.len(), std::ptr::null(), 0, std::ptr::null_mut()) != 0 {
                    assert!(rd_kafka_last_error() == QUEUE_FULL, "produce: error {}", rd_kafka_last_error());
                    break;
                }
                sent += 1;
            }
            rd_kafka_poll(handle, 1);
        }
    }
}

fn consume(job: &Job, pulse: &Arc<Mutex<Pulse>>) -> ! {
    let (handle, topic) = client(CONSUMER, conf(&job.bootstrap, &[]), &job.topic);
    // SAFETY: librdkafka's own calls with live pointers.
    unsafe {
        let queue = rd_kafka_queue_new(handle);
        for partition in 0..job.partitions {
            assert!(rd_kafka_consume_start_queue(topic, partition, END, queue) == 0, "partition {partition} cannot be read");
        }
        loop {
            rd_kafka_consume_callback_queue(queue, 100, read, Arc::as_ptr(pulse).cast_mut().cast());
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words[at].parse::<f64>().expect("a number");
    let job = Arc::new(Job {
        bootstrap: words[0].clone(), topic: words[1].clone(), partitions: number(2) as i32, per_second: number(3), record_bytes: number(4) as usize, settings: settings(&words[6..]),
    });
    let (acks, reads) = (Pulse::new(job.partitions as usize), Pulse::new(job.partitions as usize));
    let producer = (Arc::clone(&job), Arc::clone(&acks));
    std::thread::spawn(move || produce(&producer.0, &producer.1));
    if number(5) > 0.0 {
        let reader = (Arc::clone(&job), Arc::clone(&reads));
        std::thread::spawn(move || consume(&reader.0, &reader.1));
    }
    let mut opened = Instant::now();
    for word in std::io::stdin().lock().lines() {
        let (mut acks, mut reads, now) = (held(&acks), held(&reads), Instant::now());
        match word.expect("the input").as_str() {
            "now" => println!("{{\"acks\": [{}], \"reads\": [{}]}}", acks.silent(now), reads.silent(now)),
            "from" => {
                (acks.open(), reads.open());
                opened = now;
                println!("{{}}");
            }
            "to" => println!("{{\"seconds\": {:.3}, \"acks\": {}, \"reads\": {}}}", (now - opened).as_secs_f64(), acks.told(now), reads.told(now)),
            other => panic!("no word {other}"),
        }
    }
    // The clients' threads end with the process.
    std::process::exit(0);
}
