//! Attackers: one hostile connection after another, each made by its number alone.

use crate::make::{Maker, Request};
use crate::random::Random;
use crate::records::Batches;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Of connections that were closed, so many are kept for the report.
const KEPT: usize = 32;
/// Bytes of a frame that are kept.
const KEPT_BYTES: usize = 1 << 20;

/// What a node is attacked with.
#[derive(Debug)]
pub struct Attack {
    pub seed: u64,
    pub address: SocketAddr,
    pub requests: Vec<Request>,
    /// By API: the versions that the node advertises.
    pub served: Vec<(i16, i16, i16)>,
    pub batches: Batches,
    pub topic_ids: Vec<[u8; 16]>,
    pub stop: AtomicBool,
    pub next: AtomicU64,
    pub frames: AtomicU64,
    /// The newest connections and what they sent: the open ones, and some that were closed.
    pub sent: Mutex<VecDeque<Sent>>,
}

/// One connection's last frames.
#[derive(Debug, Clone)]
pub struct Sent {
    pub number: u64,
    pub what: String,
    pub bytes: Vec<u8>,
}

impl Attack {
    /// One connection after another.
    pub fn run(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            self.connection(number);
        }
    }

    /// The connection of this number.
    pub fn connection(&self, number: u64) {
        let mut random = Random::of(self.seed, number);
        let Ok(mut stream) = TcpStream::connect_timeout(&self.address, Duration::from_secs(5)) else {
            std::thread::sleep(Duration::from_millis(50));
            return;
        };
        let patience = Some(Duration::from_millis(300));
        let _ = stream.set_read_timeout(patience).and_then(|()| stream.set_write_timeout(patience));
        match random.below(20) {
            0 => self.half_a_frame(number, &mut random, &mut stream),
            1 => self.without_reading(number, random, &mut stream),
            _ => self.talk(number, random, &mut stream),
        }
    }

    fn half_a_frame(&self, number: u64, random: &mut Random, stream: &mut TcpStream) {
        let length = random.of_slice(&[0, 1, 4, 1_000, 100 << 20, i32::MAX, -1, i32::MIN]);
        let mut bytes = length.to_be_bytes().to_vec();
        let more = random.of_slice(&[0, 2, 8, 100]);
        bytes.extend(random.bytes(more));
        bytes.truncate(random.of_slice(&[2, 4, 200]));
        self.note(number, "half a frame", &bytes);
        let _ = stream.write_all(&bytes);
        std::thread::sleep(Duration::from_millis(random.of_slice(&[1, 100, 2_000])));
    }

    fn without_reading(&self, number: u64, random: Random, stream: &mut TcpStream) {
        let mut maker = self.maker(random);
        let (what, frame) = self.frame(&mut maker);
        self.note(number, &format!("{what}, many times, not reading"), &frame);
        for _ in 0..300 {
            self.frames.fetch_add(1, Ordering::Relaxed);
            if stream.write_all(&frame).is_err() {
                return;
            }
        }
    }

    fn talk(&self, number: u64, mut random: Random, stream: &mut TcpStream) {
        let count = random.of_slice(&[1, 1, 2, 5, 20]);
        let mut maker = self.maker(random);
        for _ in 0..count {
            let (what, frame) = self.frame(&mut maker);
            self.note(number, &what, &frame);
            self.frames.fetch_add(1, Ordering::Relaxed);
            if stream.write_all(&frame).is_err() || !answered(stream) {
                return;
            }
        }
    }

    fn maker(&self, random: Random) -> Maker<'_> {
        Maker { random, batches: &self.batches, topic_ids: &self.topic_ids }
    }

    /// A request in any version that is served, sound or with something wrong in it; and what it is.
    fn frame(&self, maker: &mut Maker<'_>) -> (String, Vec<u8>) {
        let (key, min, max) = self.served[maker.random.below(self.served.len())];
        let version = min + maker.random.below(usize::try_from(max - min + 1).unwrap_or(1)) as i16;
        let Some(request) = self.requests.iter().find(|request| request.key == key) else {
            return (format!("api {key}"), Vec::new());
        };
        let mut body = key.to_be_bytes().to_vec();
        body.extend(version.to_be_bytes());
        body.extend((maker.random.next() as i32).to_be_bytes());
        let client = maker.random.of_slice(&["fuzz", "fuzz", "", "__admin_client"]);
        body.extend((client.len() as i16).to_be_bytes());
        body.extend(client.as_bytes());
        if request.is_flexible(version) {
            body.push(0);
        }
        let from = body.len();
        body.extend(maker.body(request, version));
        let mut what = format!("{} {version}", request.name);
        if maker.random.once_in(4) {
            what.push_str(", changed");
            change(&mut body, from, &mut maker.random);
        }
        let mut frame = (body.len() as i32).to_be_bytes().to_vec();
        frame.extend(body);
        (what, frame)
    }

    /// What was sent last.
    pub fn newest(&self, count: usize) -> Vec<String> {
        let Ok(sent) = self.sent.lock() else { return Vec::new() };
        let told = |sent: &Sent| format!("{} {} ({} bytes)", sent.number, sent.what, sent.bytes.len());
        sent.iter().rev().take(count).map(told).collect()
    }

    fn note(&self, number: u64, what: &str, bytes: &[u8]) {
        let Ok(mut sent) = self.sent.lock() else { return };
        let bytes = bytes[..bytes.len().min(KEPT_BYTES)].to_vec();
        sent.push_back(Sent { number, what: what.to_owned(), bytes });
        while sent.len() > KEPT {
            sent.pop_front();
        }
    }
}

/// Whether an answer came, or none for now; `false`: the connection is closed.
fn answered(stream: &mut TcpStream) -> bool {
    let mut length = [0; 4];
    if let Err(error) = stream.read_exact(&mut length) {
        return matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
    }
    let mut left = u64::from(u32::from_be_bytes(length));
    let mut buffer = [0; 64 << 10];
    while left > 0 {
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match stream.read(&mut buffer[..most]) {
            Ok(0) | Err(_) => return false,
            Ok(count) => left -= count as u64,
        }
    }
    true
}

/// Something wrong in the body: bits, numbers, lengths, the end.
fn change(body: &mut Vec<u8>, from: usize, random: &mut Random) {
    for _ in 0..=random.below(3) {
        if body.len() <= from {
            return;
        }
        let at = from + random.below(body.len() - from);
        match random.below(5) {
            0 => body[at] ^= 1 << random.below(8),
            1 => body[at] = random.of_slice(&[0x00, 0x7f, 0x80, 0xff]),
            2 => body.truncate(at),
            3 => {
                let more = random.bytes(20);
                body.extend(more);
            }
            _ => {
                let number = random.of_slice(&[i32::MAX, i32::MIN, -1, 0x00ff_ffff]).to_be_bytes();
                let end = body.len().min(at + 4);
                body[at..end].copy_from_slice(&number[..end - at]);
            }
        }
    }
}
