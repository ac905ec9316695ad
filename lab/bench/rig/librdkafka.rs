//! What load.rs and read.rs use of librdkafka, declared by hand: the library is the confluent-kafka wheel's, which
//! brings no header.
//!
//! Both are compiled by rustc alone (clients.py), each with this file as a module; each uses a part of it. So are
//! cluster/beat.rs and tail/tail.rs.
#![allow(dead_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};

#[repr(C)]
pub struct Message {
    pub err: c_int,
    topic: *mut c_void,
    pub partition: i32,
    payload: *mut c_void,
    pub len: usize,
    key: *mut c_void,
    pub key_len: usize,
    pub offset: i64,
    pub private: *mut c_void,
}

pub type Report = extern "C" fn(*mut c_void, *const Message, *mut c_void);
pub type Take = extern "C" fn(*mut Message, *mut c_void);

pub const PRODUCER: c_int = 0;
pub const CONSUMER: c_int = 1;
pub const QUEUE_FULL: c_int = -184;
pub const BEGINNING: i64 = -2;

unsafe extern "C" {
    fn rd_kafka_conf_new() -> *mut c_void;
    fn rd_kafka_conf_set(conf: *mut c_void, name: *const c_char, value: *const c_char, error: *mut c_char, size: usize) -> c_int;
    fn rd_kafka_new(kind: c_int, conf: *mut c_void, error: *mut c_char, size: usize) -> *mut c_void;
    fn rd_kafka_topic_new(handle: *mut c_void, name: *const c_char, conf: *mut c_void) -> *mut c_void;
    fn rd_kafka_version_str() -> *const c_char;
    pub fn rd_kafka_conf_set_dr_msg_cb(conf: *mut c_void, report: Report);
    pub fn rd_kafka_conf_set_opaque(conf: *mut c_void, opaque: *mut c_void);
    pub fn rd_kafka_produce(
        topic: *mut c_void, partition: i32, flags: c_int, payload: *mut c_void, len: usize, key: *const c_void, key_len: usize, opaque: *mut c_void,
    ) -> c_int;
    pub fn rd_kafka_last_error() -> c_int;
    pub fn rd_kafka_poll(handle: *mut c_void, timeout_ms: c_int) -> c_int;
    pub fn rd_kafka_purge(handle: *mut c_void, flags: c_int) -> c_int;
    pub fn rd_kafka_flush(handle: *mut c_void, timeout_ms: c_int) -> c_int;
    pub fn rd_kafka_message_latency(message: *const Message) -> i64;
    pub fn rd_kafka_queue_new(handle: *mut c_void) -> *mut c_void;
    pub fn rd_kafka_consume_start_queue(topic: *mut c_void, partition: i32, offset: i64, queue: *mut c_void) -> c_int;
    pub fn rd_kafka_consume_callback_queue(queue: *mut c_void, timeout_ms: c_int, take: Take, opaque: *mut c_void) -> c_int;
}

pub fn text(word: &str) -> CString {
    CString::new(word).expect("no NUL in an argument")
}

/// The settings of a client, `bootstrap` among them.
pub fn conf(bootstrap: &str, settings: &[(String, String)]) -> *mut c_void {
    let mut error = [0 as c_char; 512];
    // SAFETY: librdkafka's own calls with live pointers.
    unsafe {
        let conf = rd_kafka_conf_new();
        for (key, value) in settings.iter().chain([&("bootstrap.servers".to_owned(), bootstrap.to_owned())]) {
            if rd_kafka_conf_set(conf, text(key).as_ptr(), text(value).as_ptr(), error.as_mut_ptr(), error.len()) != 0 {
                panic!("{key}={value}: {}", CStr::from_ptr(error.as_ptr()).to_string_lossy());
            }
        }
        conf
    }
}

/// A client, and a topic of it. Neither is destroyed: the process ends.
pub fn client(kind: c_int, conf: *mut c_void, topic: &str) -> (*mut c_void, *mut c_void) {
    let mut error = [0 as c_char; 512];
    // SAFETY: `conf` is of `conf()` and is given away here; the name is copied.
    unsafe {
        let handle = rd_kafka_new(kind, conf, error.as_mut_ptr(), error.len());
        assert!(!handle.is_null(), "{}", CStr::from_ptr(error.as_ptr()).to_string_lossy());
        (handle, rd_kafka_topic_new(handle, text(topic).as_ptr(), std::ptr::null_mut()))
    }
}

/// The words `key=value` of a command line.
pub fn settings(words: &[String]) -> Vec<(String, String)> {
    words.iter().map(|word| word.split_once('=').expect("key=value")).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

pub fn version() -> String {
    // SAFETY: a static text of the library.
    unsafe { CStr::from_ptr(rd_kafka_version_str()) }.to_string_lossy().into_owned()
}
