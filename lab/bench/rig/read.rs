//! librdkafka as a reader: a topic from its beginning, so many records, one JSON line.
//!
//! `read BOOTSTRAP TOPIC PARTITIONS RECORDS [key=value …]`
//!
//! One client, all partitions, no group: what it costs to read, and nothing else. The rate counts from the first record.
//! Compiled by rustc alone against the library of the confluent-kafka wheel (clients.py); declared here is what is used.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::time::{Duration, Instant};

#[repr(C)]
struct Message {
    err: c_int,
    topic: *mut c_void,
    partition: i32,
    payload: *mut c_void,
    len: usize,
    key: *mut c_void,
    key_len: usize,
    offset: i64,
    private: *mut c_void,
}

type Take = extern "C" fn(*mut Message, *mut c_void);

unsafe extern "C" {
    fn rd_kafka_conf_new() -> *mut c_void;
    fn rd_kafka_conf_set(conf: *mut c_void, name: *const c_char, value: *const c_char, error: *mut c_char, size: usize) -> c_int;
    fn rd_kafka_new(kind: c_int, conf: *mut c_void, error: *mut c_char, size: usize) -> *mut c_void;
    fn rd_kafka_topic_new(handle: *mut c_void, name: *const c_char, conf: *mut c_void) -> *mut c_void;
    fn rd_kafka_queue_new(handle: *mut c_void) -> *mut c_void;
    fn rd_kafka_consume_start_queue(topic: *mut c_void, partition: i32, offset: i64, queue: *mut c_void) -> c_int;
    fn rd_kafka_consume_callback_queue(queue: *mut c_void, timeout_ms: c_int, take: Take, opaque: *mut c_void) -> c_int;
}

const CONSUMER: c_int = 1;
const BEGINNING: i64 = -2;
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

fn text(word: &str) -> CString {
    CString::new(word).expect("no NUL in an argument")
}

fn read(bootstrap: &str, topic: &str, partitions: i32, wanted: u64, settings: &[(&str, &str)]) -> Told {
    let mut told = Told::default();
    let mut error = [0 as c_char; 512];
    // SAFETY: librdkafka's own calls with live pointers; `told` outlives the last callback, which is made by the loop below.
    unsafe {
        let conf = rd_kafka_conf_new();
        for (key, value) in settings.iter().chain([&("bootstrap.servers", bootstrap)]) {
            if rd_kafka_conf_set(conf, text(key).as_ptr(), text(value).as_ptr(), error.as_mut_ptr(), error.len()) != 0 {
                panic!("{key}={value}: {}", CStr::from_ptr(error.as_ptr()).to_string_lossy());
            }
        }
        let handle = rd_kafka_new(CONSUMER, conf, error.as_mut_ptr(), error.len());
        assert!(!handle.is_null(), "{}", CStr::from_ptr(error.as_ptr()).to_string_lossy());
        let topic = rd_kafka_topic_new(handle, text(topic).as_ptr(), std::ptr::null_mut());
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
    // The handle is not destroyed: the process ends.
    told
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words[at].parse::<u64>().expect("a number");
    let settings: Vec<_> = words[4..].iter().map(|word| word.split_once('=').expect("key=value")).collect();
    let told = read(&words[0], &words[1], number(2) as i32, number(3), &settings);
    let seconds = told.first.map_or(f64::INFINITY, |first| first.elapsed().as_secs_f64());
    println!(
        "{{\"records\": {}, \"bytes\": {}, \"failed\": {}, \"error\": {}, \"records_per_s\": {:.0}}}",
        told.records, told.bytes, told.failed, told.error, told.records as f64 / seconds
    );
}
