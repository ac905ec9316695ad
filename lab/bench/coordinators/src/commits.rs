//! How many commits a second do a thousand groups get that each commit one offset at a time?
//!
//! Each group has a connection of its own and keeps so many commits under way: one, as a consumer that waits for each
//! of them (`commitSync`), or several, as one that does not (`commitAsync`). Unit: commits that were answered between
//! two moments.
//!
//! On a machine that the broker shares, what the client costs is taken from the broker. So the client is as cheap as it
//! can be made: requests are written once and their numbers filled in, answers are compared with the first one, which
//! was decoded, and all that may go is sent in one system call. What is left are those calls, a few microseconds for
//! each commit, the same with either broker.

use crate::ask::{Wrong, commit_of, coordinator, is_passing, open, percentile_ms};
use barnabas_wire::messages::{RequestBody, RequestHeader, ResponseBody};
use barnabas_wire::{ApiKey, decode_response, frame_request};
use bytes::Bytes;
use rustix::event::epoll;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const THREADS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(60);
/// Newer versions name topics by their ids.
const VERSION: i16 = 9;
/// Where a request has its number, and an answer.
const REQUEST_NUMBER_AT: usize = 8;
const ANSWER_NUMBER_AT: usize = 4;
/// Stands in a request where the offset is to stand.
const MARK: i64 = 0x1122_3344_5566_7788;

pub fn run(
    bootstrap: &str,
    topic: &str,
    groups: usize,
    under_way: usize,
    (warm_up, seconds): (f64, f64),
) -> Result<Value, Wrong> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { coordinator(&mut open(bootstrap).await?, "g-0").await })?;
    let all_are_ready = Arc::new(Barrier::new(THREADS));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (bootstrap, topic, ready) =
                (bootstrap.to_owned(), topic.to_owned(), Arc::clone(&all_are_ready));
            let names: Vec<String> =
                (thread..groups).step_by(THREADS).map(|number| format!("g-{number}")).collect();
            std::thread::spawn(move || {
                let opened: Result<Vec<_>, Wrong> =
                    names.iter().map(|name| Group::open(&bootstrap, name, &topic, under_way)).collect();
                // Whoever cannot begin lets the others begin: they end by themselves.
                ready.wait();
                Part::new(opened?, warm_up, seconds)?.run()
            })
        })
        .collect();
    let mut all = Vec::new();
    for thread in threads {
        all.append(&mut thread.join().map_err(|_| "a thread of the client ended")??);
    }
    all.sort_unstable();
    Ok(json!({
        "commits": all.len(), "commits_per_s": all.len() as f64 / seconds, "under_way": under_way,
        "p50_ms": percentile_ms(&all, 0.5), "p99_ms": percentile_ms(&all, 0.99), "p999_ms": percentile_ms(&all, 0.999),
    }))
}

/// A group, its connection, and its commits under way.
struct Group {
    name: String,
    socket: TcpStream,
    /// A commit, but for its number and its offset.
    request: Vec<u8>,
    offset_at: usize,
    /// An answer that says that all is well, but for its number.
    answer: Vec<u8>,
    /// What has come of the next answer.
    partial: Vec<u8>,
    /// When commits were sent that are not answered, by their numbers.
    sent: Vec<Instant>,
    next: i32,
    answered: i32,
}

impl Group {
    /// The group with its first commit made: its coordinator is there.
    fn open(bootstrap: &str, name: &str, topic: &str, under_way: usize) -> Result<Self, Wrong> {
        let socket = TcpStream::connect(bootstrap)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let header = RequestHeader {
            request_api_key: ApiKey::OffsetCommit.number(),
            request_api_version: VERSION,
            client_id: Some("coordinators".into()),
            ..Default::default()
        };
        let body: RequestBody = commit_of(name, topic, std::iter::once((0, MARK))).into();
        let request = frame_request(&header, &body)?.segments.concat();
        let offset_at = request.windows(8).position(|bytes| bytes == MARK.to_be_bytes());
        let mut group = Self {
            name: name.to_owned(),
            socket,
            request,
            offset_at: offset_at.ok_or("a request without its offset")?,
            answer: Vec::new(),
            partial: Vec::new(),
            sent: vec![Instant::now(); under_way],
            next: 0,
            answered: 0,
        };
        group.first()?;
        group.socket.set_nonblocking(true)?;
        Ok(group)
    }

    fn first(&mut self) -> Result<(), Wrong> {
        let begun = Instant::now();
        loop {
            self.send(1, begun)?;
            let mut length = [0; 4];
            self.socket.read_exact(&mut length)?;
            let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length))?];
            self.socket.read_exact(&mut frame)?;
            self.answered += 1;
            let (_, answer) = decode_response(Bytes::from(frame.clone()), ApiKey::OffsetCommit, VERSION)?;
            let ResponseBody::OffsetCommit(answer) = answer else { return Err("another answer".into()) };
            let mut codes =
                answer.topics.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code);
            match codes.next() {
                Some(0) => {
                    self.answer = [length.to_vec(), frame].concat();
                    return Ok(());
                }
                Some(code) if is_passing(code) && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                code => return Err(format!("a commit of {} is refused: {code:?}", self.name).into()),
            }
        }
    }

    /// So many more commits, in one piece.
    fn send(&mut self, count: usize, now: Instant) -> Result<(), Wrong> {
        let mut bytes = Vec::with_capacity(count * self.request.len());
        for _ in 0..count {
            let at = bytes.len();
            bytes.extend_from_slice(&self.request);
            bytes[at + REQUEST_NUMBER_AT..][..4].copy_from_slice(&self.next.to_be_bytes());
            bytes[at + self.offset_at..][..8].copy_from_slice(&i64::from(self.next).to_be_bytes());
            let place = self.next as usize % self.sent.len();
            self.sent[place] = now;
            self.next += 1;
        }
        // A few hundred bytes, where all before them were answered: a socket has room for these.
        let written = self.socket.write(&bytes)?;
        if written == bytes.len() { Ok(()) } else { Err("the socket took a part of a request".into()) }
    }

    /// Takes what has come. Calls `took` for each answer with when its commit was sent. How many there were.
    fn receive(&mut self, buffer: &mut [u8], mut took: impl FnMut(Instant)) -> Result<usize, Wrong> {
        let count = match self.socket.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(0),
            read => read?,
        };
        if count == 0 {
            return Err(format!("the broker closed the connection of {}", self.name).into());
        }
        let joined;
        let mut rest = &buffer[..count];
        if !self.partial.is_empty() {
            joined = [&self.partial, rest].concat();
            rest = &joined;
        }
        let mut answers = 0;
        while rest.len() >= self.answer.len() {
            let (one, more) = rest.split_at(self.answer.len());
            self.check(one)?;
            took(self.sent[self.answered as usize % self.sent.len()]);
            self.answered += 1;
            answers += 1;
            rest = more;
        }
        self.partial = rest.to_vec();
        Ok(answers)
    }

    fn check(&self, answer: &[u8]) -> Result<(), Wrong> {
        let body = ANSWER_NUMBER_AT + 4;
        let number = &answer[ANSWER_NUMBER_AT..body];
        if answer[..ANSWER_NUMBER_AT] == self.answer[..ANSWER_NUMBER_AT]
            && number == self.answered.to_be_bytes()
            && answer[body..] == self.answer[body..]
        {
            return Ok(());
        }
        Err(format!("commit {} of {} is answered with {answer:?}", self.answered, self.name).into())
    }
}

/// One thread's groups, all at once.
struct Part {
    groups: Vec<Group>,
    epoll: rustix::fd::OwnedFd,
    from: Instant,
    until: Instant,
    took_us: Vec<u32>,
}

impl Part {
    fn new(groups: Vec<Group>, warm_up: f64, seconds: f64) -> Result<Self, Wrong> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (place, group) in groups.iter().enumerate() {
            epoll::add(
                &epoll,
                &group.socket,
                epoll::EventData::new_u64(place as u64),
                epoll::EventFlags::IN,
            )?;
        }
        let from = Instant::now() + Duration::from_secs_f64(warm_up);
        let until = from + Duration::from_secs_f64(seconds);
        Ok(Self { groups, epoll, from, until, took_us: Vec::new() })
    }

    /// The latencies, µs, of what was answered between `from` and `until`.
    fn run(mut self) -> Result<Vec<u32>, Wrong> {
        for group in &mut self.groups {
            let under_way = group.sent.len();
            group.send(under_way, Instant::now())?;
        }
        let mut buffer = vec![0; 64 << 10];
        let mut events = Vec::with_capacity(256);
        let mut heard = Instant::now();
        loop {
            events.clear();
            let second = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&second))?;
            let now = Instant::now();
            if now >= self.until {
                return Ok(self.took_us);
            }
            if events.is_empty() && now.duration_since(heard) > PATIENCE {
                return Err("nothing is answered any more".into());
            }
            for event in &events {
                heard = now;
                self.turn(event.data.u64() as usize, &mut buffer)?;
            }
        }
    }

    fn turn(&mut self, place: usize, buffer: &mut [u8]) -> Result<(), Wrong> {
        let Self { groups, from, until, took_us, .. } = self;
        let group = groups.get_mut(place).ok_or("an event of nobody")?;
        let now = Instant::now();
        let counts = now >= *from && now < *until;
        let answers = group.receive(buffer, |sent| {
            if counts {
                took_us.push(u32::try_from((now - sent).as_micros()).unwrap_or(u32::MAX));
            }
        })?;
        if answers > 0 { group.send(answers, now) } else { Ok(()) }
    }
}
