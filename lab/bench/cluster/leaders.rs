//! When does every partition have a leader that lives, as each of the brokers says that are left?
//!
//! `leaders PORTS DEAD PREFIX TOPICS WITHIN_S`: asks each port for Metadata (version 1) of PREFIX0, PREFIX1 … again and
//! again, until none of their partitions has an error, no leader, or DEAD for one. A topic that is well is not asked
//! for again. One JSON line: when that was (Unix time), how many partitions, how many were not well when time ran out.
//! Standard library alone; compiled by rustc (beat.py).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const METADATA: i16 = 3;

/// A cursor over an answer.
struct Answer {
    bytes: Vec<u8>,
    at: usize,
}

impl Answer {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        self.at += N;
        self.bytes[self.at - N..self.at].try_into().expect("N bytes")
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    fn short(&mut self) -> i16 {
        i16::from_be_bytes(self.take())
    }

    fn skip_text(&mut self) {
        self.at += self.short().max(0) as usize;
    }

    fn skip_ints(&mut self) {
        self.at += 4 * self.int() as usize;
    }
}

fn ask(connection: &mut TcpStream, topic: &str) -> Answer {
    let mut frame = Vec::new();
    frame.extend(METADATA.to_be_bytes());
    frame.extend(1i16.to_be_bytes());
    frame.extend(7i32.to_be_bytes());
    frame.extend((-1i16).to_be_bytes());
    frame.extend(1i32.to_be_bytes());
    frame.extend((topic.len() as i16).to_be_bytes());
    frame.extend(topic.as_bytes());
    connection.write_all(&(frame.len() as i32).to_be_bytes()).and_then(|()| connection.write_all(&frame)).expect("the broker takes a request");
    let mut size = [0; 4];
    connection.read_exact(&mut size).expect("the broker answers");
    let mut bytes = vec![0; i32::from_be_bytes(size) as usize];
    connection.read_exact(&mut bytes).expect("the broker answers");
    Answer { bytes, at: 4 }
}

/// (partitions, how many of them are not well)
fn ill(mut answer: Answer, dead: i32) -> (usize, usize) {
    for _ in 0..answer.int() {
        answer.int();
        answer.skip_text();
        answer.int();
        answer.skip_text();
    }
    answer.int();
    let (topics, error) = (answer.int(), answer.short());
    assert!(topics == 1, "one topic was asked for");
    answer.skip_text();
    let _: [u8; 1] = answer.take();
    let (mut count, mut bad) = (0, usize::from(error != 0));
    for _ in 0..answer.int() {
        let (error, _, leader) = (answer.short(), answer.int(), answer.int());
        answer.skip_ints();
        answer.skip_ints();
        count += 1;
        bad += usize::from(error != 0 || leader < 0 || leader == dead);
    }
    (count, bad)
}

fn watch(port: &str, dead: i32, names: &[String], until: Instant) -> (f64, usize, usize) {
    let mut connection = TcpStream::connect(format!("127.0.0.1:{port}")).expect("the broker listens");
    connection.set_nodelay(true).expect("a socket");
    let mut partitions = 0;
    for (place, name) in names.iter().enumerate() {
        loop {
            let (count, bad) = ill(ask(&mut connection, name), dead);
            if bad == 0 {
                partitions += count;
                break;
            }
            if Instant::now() > until {
                let left = names[place..].iter().map(|name| ill(ask(&mut connection, name), dead).1).sum();
                return (now(), partitions, left);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    (now(), partitions, 0)
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words[at].parse::<i32>().expect("a number");
    let names: Vec<String> = (0..number(3)).map(|at| format!("{}{at}", words[2])).collect();
    let until = Instant::now() + Duration::from_secs(number(4) as u64);
    let (names, dead) = (&names, number(1));
    let told: Vec<_> = std::thread::scope(|scope| {
        let watching: Vec<_> = words[0].split(',').map(|port| scope.spawn(move || watch(port, dead, names, until))).collect();
        watching.into_iter().map(|thread| thread.join().expect("a broker that answers")).collect()
    });
    println!(
        "{{\"done_at\": {:.4}, \"partitions\": {}, \"not_led\": {}}}",
        told.iter().map(|one| one.0).fold(0.0, f64::max), told.iter().map(|one| one.1).min().unwrap_or(0), told.iter().map(|one| one.2).max().unwrap_or(0)
    );
}
