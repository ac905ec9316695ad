//! librdkafka as load: as many records as it sends in some seconds, when each was acknowledged, one JSON line.
//!
//! `load BOOTSTRAP TOPIC PRODUCERS RECORD_BYTES SECONDS WARM_UP_SECONDS SPREAD RATE [key=value …]`
//!
//! SPREAD 0: no key, librdkafka chooses (one partition for 10 ms, then another); N: one record to each of N partitions
//! in turn, as keys would. RATE: records a second of all producers together, 0 for as many as go. Each producer is a
//! client of its own, with its own thread. Latency is that of the records sent between the warm-up and the end, however
//! late they are acknowledged; the rate is that of acknowledgements from the warm-up until the last of them came.
//! Compiled by rustc alone against the library of the confluent-kafka wheel (clients.py, librdkafka.rs).

mod librdkafka;

use librdkafka::{
    Message, PRODUCER, QUEUE_FULL, client, conf, rd_kafka_conf_set_dr_msg_cb, rd_kafka_conf_set_opaque, rd_kafka_flush, rd_kafka_last_error, rd_kafka_message_latency, rd_kafka_poll,
    rd_kafka_produce, settings, version,
};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Latencies in µs: 64 steps to each power of two.
const STEPS: usize = 64;
const BUCKETS: usize = STEPS * 40;

struct Told {
    from: Instant,
    until: Instant,
    sent: u64,
    acknowledged: u64,
    /// Acknowledged behind the warm-up.
    counted: u64,
    /// Sent between the warm-up and the end, and acknowledged: what the histogram holds.
    timed: u64,
    failed: u64,
    first_failure: c_int,
    histogram: Vec<u64>,
    latency_us_max: i64,
    last: Instant,
    longest_silence: Duration,
}

fn bucket(us: u64) -> usize {
    let power = 63 - (us | STEPS as u64).leading_zeros() as usize - 6;
    (power * STEPS + (us >> power) as usize).min(BUCKETS - 1)
}

fn lower_bound(bucket: usize) -> f64 {
    if bucket < 2 * STEPS {
        return bucket as f64;
    }
    let power = bucket / STEPS - 1;
    ((bucket - power * STEPS) as u64 as f64) * (1u64 << power) as f64
}

extern "C" fn report(_: *mut c_void, message: *const Message, opaque: *mut c_void) {
    // SAFETY: librdkafka calls this from `rd_kafka_poll` and `rd_kafka_flush` only, on the thread that owns `told`.
    let (told, message) = unsafe { (&mut *opaque.cast::<Told>(), &*message) };
    if message.err != 0 {
        told.failed += 1;
        told.first_failure = if told.first_failure == 0 { message.err } else { told.first_failure };
        return;
    }
    told.acknowledged += 1;
    let now = Instant::now();
    told.longest_silence = told.longest_silence.max(now - told.last);
    told.last = now;
    told.counted += u64::from(now >= told.from);
    // SAFETY: the message is alive during the call.
    let us = unsafe { rd_kafka_message_latency(message) };
    let sent = now.checked_sub(Duration::from_micros(us.max(0) as u64)).unwrap_or(now);
    if sent >= told.from && sent < told.until {
        told.timed += 1;
        told.histogram[bucket(us.max(0) as u64)] += 1;
        told.latency_us_max = told.latency_us_max.max(us);
    }
}

struct Job {
    bootstrap: String,
    topic: String,
    record_bytes: usize,
    spread: i32,
    per_second: f64,
    begun: Instant,
    seconds: f64,
    warm_up: f64,
    settings: Vec<(String, String)>,
}

fn produce(job: &Job, seed: u64) -> Told {
    let from = job.begun + Duration::from_secs_f64(job.warm_up);
    let until = job.begun + Duration::from_secs_f64(job.seconds);
    let mut told = Box::new(Told {
        from, until, sent: 0, acknowledged: 0, counted: 0, timed: 0, failed: 0, first_failure: 0, histogram: vec![0; BUCKETS], latency_us_max: 0, last: Instant::now(), longest_silence: Duration::ZERO,
    });
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut payload: Vec<u8> = (0..(1 << 16) + job.record_bytes).map(|_| { random ^= random << 13; random ^= random >> 7; random ^= random << 17; b'A' + (random % 26) as u8 }).collect();
    // SAFETY: librdkafka's own calls with live pointers; `told` and `payload` outlive the handle's last callback.
    unsafe {
        let conf = conf(&job.bootstrap, &job.settings);
        rd_kafka_conf_set_dr_msg_cb(conf, report);
        rd_kafka_conf_set_opaque(conf, (&raw mut *told).cast());
        let (handle, topic) = client(PRODUCER, conf, &job.topic);
        let mut sent = 0u64;
        let mut partition = if job.spread > 0 { (seed as i32 * 7919) % job.spread } else { -1 };
        loop {
            if sent % 64 == 0 {
                rd_kafka_poll(handle, 0);
                let now = Instant::now();
                if now >= until {
                    break;
                }
                let due = (now - job.begun).as_secs_f64() * job.per_second;
                if job.per_second > 0.0 && sent as f64 > due {
                    rd_kafka_poll(handle, 1);
                    continue;
                }
            }
            let at = payload.as_mut_ptr().add((sent as usize * 101) & 0xffff);
            if rd_kafka_produce(topic, partition, 0, at.cast(), job.record_bytes, std::ptr::null(), 0, std::ptr::null_mut()) == 0 {
                sent += 1;
                if job.spread > 0 {
                    partition = (partition + 1) % job.spread;
                }
            } else {
                assert!(rd_kafka_last_error() == QUEUE_FULL, "produce: error {}", rd_kafka_last_error());
                rd_kafka_poll(handle, 1);
                if Instant::now() >= until {
                    break;
                }
            }
        }
        rd_kafka_flush(handle, 60_000);
        told.sent = sent;
    }
    // The handle is not destroyed: the process ends.
    std::mem::forget(payload);
    *told
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words[at].parse::<f64>().expect("a number");
    let producers = number(2) as u64;
    let job = Arc::new(Job {
        bootstrap: words[0].clone(), topic: words[1].clone(), record_bytes: number(3) as usize, seconds: number(4), warm_up: number(5),
        spread: number(6) as i32, per_second: number(7) / producers as f64, begun: Instant::now(), settings: settings(&words[8..]),
    });
    let threads: Vec<_> = (0..producers).map(|seed| { let job = Arc::clone(&job); std::thread::spawn(move || produce(&job, seed + 1)) }).collect();
    let told: Vec<Told> = threads.into_iter().map(|thread| thread.join().expect("a producer")).collect();
    let sum = |of: fn(&Told) -> u64| told.iter().map(of).sum::<u64>();
    let counts: Vec<u64> = (0..BUCKETS).map(|at| told.iter().map(|one| one.histogram[at]).sum()).collect();
    let percentile = |share: f64| {
        let wanted = (sum(|one| one.timed) as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        counts.iter().position(|count| { seen += count; seen >= wanted }).map_or(0.0, |at| lower_bound(at) / 1000.0)
    };
    let version = version();
    let from = job.begun + Duration::from_secs_f64(job.warm_up);
    let last = told.iter().map(|one| one.last).max().unwrap_or(from);
    let span = last.saturating_duration_since(from).as_secs_f64().max(1e-3);
    println!(
        "{{\"unacknowledged\": {}, \"acknowledged\": {}, \"failed\": {}, \"error\": {}, \"records_per_s\": {:.0}, \"p50_ms\": {:.3}, \"p99_ms\": {:.3}, \"p999_ms\": {:.3}, \"max_ms\": {:.3}, \"longest_silence_ms\": {:.1}, \"librdkafka\": \"{version}\"}}",
        sum(|one| one.sent - one.acknowledged - one.failed), sum(|one| one.acknowledged), sum(|one| one.failed), told.iter().map(|one| one.first_failure).find(|&error| error != 0).unwrap_or(0),
        sum(|one| one.counted) as f64 / span, percentile(0.5), percentile(0.99), percentile(0.999),
        told.iter().map(|one| one.latency_us_max).max().unwrap_or(0) as f64 / 1e3,
        told.iter().map(|one| one.longest_silence.as_secs_f64() * 1e3).fold(0.0, f64::max)
    );
}
