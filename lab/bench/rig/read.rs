//! librdkafka as a reader: a topic from its beginning, so many records, one JSON line.
//!
//! `read BOOTSTRAP TOPIC PARTITIONS RECORDS [key=value …]`
//!
//! One client, all partitions, no group: what it costs to read, and nothing else. The rate counts from the first
//! record. Compiled by rustc alone against the library of the confluent-kafka wheel (clients.py, librdkafka.rs).

mod librdkafka;

use librdkafka::{BEGINNING, CONSUMER, Message, client, conf, rd_kafka_consume_callback_queue, rd_kafka_consume_start_queue, rd_kafka_queue_new, settings};
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

const SILENCE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Told {
    records: u64,
    bytes: u64,
    failed: u64,
    error: c_int,
    first: Option<Instant>,
}

extern "C" fn take(message: *mut Message, opaque: *mut c_void) {
    // SAFETY: librdkafka calls this from `rd_kafka_consume_callback_queue` only, on the thread that owns `told`.
    let (told, message) = unsafe { (&mut *opaque.cast::<Told>(), &*message) };
    if message.err != 0 {
        told.failed += 1;
        told.error = message.err;
        return;
    }
    told.first.get_or_insert_with(Instant::now);
    told.records += 1;
    told.bytes += (message.len + message.key_len) as u64;
}

fn read(bootstrap: &str, topic: &str, partitions: i32, wanted: u64, settings: &[(String, String)]) -> Told {
    let mut told = Told::default();
    let (handle, topic) = client(CONSUMER, conf(bootstrap, settings), topic);
    // SAFETY: librdkafka's own calls with live pointers; `told` outlives the last callback, which is made by the loop
    // below.
    unsafe {
        let queue = rd_kafka_queue_new(handle);
        for partition in 0..partitions {
            assert!(rd_kafka_consume_start_queue(topic, partition, BEGINNING, queue) == 0, "partition {partition} cannot be read");
        }
        let (mut last, mut before) = (Instant::now(), 0);
        while told.records < wanted && last.elapsed() < SILENCE {
            rd_kafka_consume_callback_queue(queue, 200, take, (&raw mut told).cast());
            if told.records > before {
                (last, before) = (Instant::now(), told.records);
            }
        }
    }
    told
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words[at].parse::<u64>().expect("a number");
    let told = read(&words[0], &words[1], number(2) as i32, number(3), &settings(&words[4..]));
    let seconds = told.first.map_or(f64::INFINITY, |first| first.elapsed().as_secs_f64());
    println!(
        "{{\"records\": {}, \"bytes\": {}, \"failed\": {}, \"error\": {}, \"records_per_s\": {:.0}}}",
        told.records, told.bytes, told.failed, told.error, told.records as f64 / seconds
    );
}
