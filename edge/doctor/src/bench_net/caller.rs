//! `bench-net --to`: measures against a listener. Round trips on a quiet path, then flows in each direction with one
//! connection and with several, and round trips beside each flow.

use super::kernel::{Segments, path_mtu, segment_bytes};
use super::listener::chunk;
use super::wire::{GRACE, Hello, Job, NetError, Report, Wire};
use super::{ROUNDS_HEAD, ROUNDS_MAX, RoundTrips};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const CONNECT: Duration = Duration::from_secs(5);
/// Of an echo: about what a small ack and its headers have.
const ECHO_BYTES: usize = 64;
/// Between two echoes beside a flow: they show its queues and do not load the path.
const BESIDE: Duration = Duration::from_millis(2);
const MIB: f64 = 1_048_576.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toward {
    There,
    Here,
}

/// What connections of one direction carried at the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    pub toward: Toward,
    pub connections: usize,
    pub mib_s: f64,
    /// Beside it.
    pub rounds: RoundTrips,
    /// Of the sending machine, meanwhile.
    pub segments: Segments,
}

/// What a path can do.
#[derive(Debug, Clone, PartialEq)]
pub struct NetBench {
    pub address: String,
    pub is_v4: bool,
    /// In bytes, after the flows.
    pub mtu: Option<u32>,
    /// Nothing else under way.
    pub rounds: RoundTrips,
    pub flows: Vec<Flow>,
}

/// Measures for `seconds` in each of its parts: one of round trips, two of each direction. `run` is a random number.
///
/// # Errors
/// No listener of `bench-net` is at `address`, it is busy, or the connection breaks.
pub fn bench_net(address: &str, seconds: u16, connections: usize, run: u64) -> Result<NetBench, NetError> {
    let caller = Caller { address, seconds, run };
    let mut control = caller.open(Job::Echo, seconds * 5)?;
    let ends = Instant::now() + caller.each();
    let rounds = rounds(&mut control, Duration::ZERO, || Instant::now() >= ends)?;
    let mut flows = Vec::new();
    for toward in [Toward::There, Toward::Here] {
        flows.push(caller.flow(&mut control, toward, 1)?);
        if connections > 1 {
            flows.push(caller.flow(&mut control, toward, connections)?);
        }
    }
    let mtu = path_mtu(control.stream());
    let is_v4 = control.stream().peer_addr()?.is_ipv4();
    control.write_frame(&mut [0; 4])?;
    Ok(NetBench { address: address.to_owned(), is_v4, mtu, rounds, flows })
}

struct Caller<'a> {
    address: &'a str,
    seconds: u16,
    run: u64,
}

impl Caller<'_> {
    fn each(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds))
    }

    /// `seconds`: how long the job takes; the connection's opening and end have some more.
    fn open(&self, job: Job, seconds: u16) -> Result<Wire, NetError> {
        // What five parts take beside their seconds.
        let seconds = if job == Job::Echo { seconds + 30 } else { seconds };
        let lasts = Duration::from_secs(u64::from(seconds)) + GRACE;
        let mut wire = Wire::new(connect(self.address)?, lasts)?;
        wire.write(&Hello { job, seconds, run: self.run }.encode())?;
        wire.read_answer()?;
        Ok(wire)
    }

    fn flow(&self, control: &mut Wire, toward: Toward, connections: usize) -> Result<Flow, NetError> {
        let job = if toward == Toward::There { Job::Take } else { Job::Send };
        let opened: Result<Vec<Wire>, NetError> =
            (0..connections).map(|_| self.open(job, self.seconds)).collect();
        let (before, begun, each) = (Segments::now(), Instant::now(), self.each());
        let ended = AtomicBool::new(false);
        let (reports, beside, took) = std::thread::scope(|scope| {
            let flows: Vec<_> = opened?
                .into_iter()
                .map(|wire| scope.spawn(move || if job == Job::Take { send(wire, each) } else { take(wire) }))
                .collect();
            let ended = &ended;
            let beside = scope.spawn(move || rounds(control, BESIDE, || ended.load(Ordering::Relaxed)));
            let reports: Vec<_> = flows.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            let took = begun.elapsed();
            ended.store(true, Ordering::Relaxed);
            let reports: Result<Vec<Report>, NetError> =
                reports.into_iter().map(|report| report.expect("a flow does not panic")).collect();
            Ok::<_, NetError>((reports?, beside.join().expect("round trips do not panic")?, took))
        })?;
        let bytes: u64 = reports.iter().map(|report| report.bytes).sum();
        let here = Segments::now().zip(before).map(|(now, before)| now.since(before)).unwrap_or_default();
        let there = |figure: fn(&Report) -> u64| reports.iter().map(figure).max().unwrap_or(0);
        let segments = match toward {
            Toward::There => here,
            Toward::Here => {
                Segments { sent: there(|report| report.segments), again: there(|report| report.again) }
            }
        };
        let mib_s = bytes as f64 / took.as_secs_f64().max(1e-6) / MIB;
        Ok(Flow { toward, connections, mib_s, rounds: beside, segments })
    }
}

fn connect(address: &str) -> Result<TcpStream, NetError> {
    let mut last = std::io::Error::new(ErrorKind::NotFound, "the name has no address");
    for candidate in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&candidate, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

/// Round trips until `ended`, one at least.
fn rounds(wire: &mut Wire, pause: Duration, ended: impl Fn() -> bool) -> Result<RoundTrips, NetError> {
    let (mut times, mut buffer, mut frame) = (Vec::new(), Vec::new(), [0x5a; 4 + ECHO_BYTES]);
    while times.len() < ROUNDS_MAX && (times.is_empty() || !ended()) {
        let begun = Instant::now();
        wire.write_frame(&mut frame)?;
        match wire.read_frame(&mut buffer)? {
            ECHO_BYTES => times.push(begun.elapsed()),
            other => return Err(NetError::Unexpected(other)),
        }
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
    Ok(RoundTrips::of(times).expect("one at least"))
}

/// The report counts what arrived.
fn send(mut wire: Wire, each: Duration) -> Result<Report, NetError> {
    let (begun, mut frame) = (Instant::now(), chunk());
    loop {
        wire.write_frame(&mut frame)?;
        if begun.elapsed() >= each {
            break;
        }
    }
    wire.write_frame(&mut [0; 4])?;
    wire.read_report(&mut Vec::new())
}

fn take(mut wire: Wire) -> Result<Report, NetError> {
    wire.write_frame(&mut [0; 4])?;
    let (mut taken, mut buffer) = (0, Vec::new());
    loop {
        match wire.read_frame(&mut buffer)? {
            0 => break,
            bytes => taken += bytes as u64,
        }
    }
    Ok(Report { bytes: taken, ..wire.read_report(&mut buffer)? })
}

impl Flow {
    fn name(&self) -> String {
        let toward = if self.toward == Toward::There { "there" } else { "back" };
        let plural = if self.connections == 1 { "" } else { "s" };
        format!("{toward}, {} connection{plural}", self.connections)
    }
}

impl NetBench {
    /// The largest rate of a direction.
    pub fn mib_s(&self, toward: Toward) -> f64 {
        self.flows.iter().filter(|flow| flow.toward == toward).map(|flow| flow.mib_s).fold(0.0, f64::max)
    }

    /// The tables.
    pub fn text(&self) -> String {
        let mut lines = vec![ROUNDS_HEAD.to_owned(), self.rounds.row("quiet")];
        lines.extend(self.flows.iter().map(|flow| flow.rounds.row(&format!("beside {}", flow.name()))));
        lines.push("flow                            MiB/s   segments  sent again".to_owned());
        for flow in &self.flows {
            let Segments { sent, again } = flow.segments;
            lines.push(format!("{:<28} {:>8.1} {sent:>10} {again:>11}", flow.name(), flow.mib_s));
        }
        if let Some(mtu) = self.mtu {
            let segment = segment_bytes(mtu, self.is_v4);
            lines.push(format!("path MTU {mtu} bytes, {segment} of them records and Kafka's headers"));
        }
        lines.join("\n")
    }

    pub fn json(&self) -> Value {
        let flow = |flow: &Flow| {
            json!({
                "toward": if flow.toward == Toward::There { "there" } else { "back" },
                "connections": flow.connections,
                "mibPerSecond": flow.mib_s,
                "roundTrips": flow.rounds.json(),
                "segments": flow.segments.sent,
                "segmentsSentAgain": flow.segments.again,
            })
        };
        json!({
            "to": self.address,
            "pathMtu": self.mtu,
            "roundTrips": self.rounds.json(),
            "flows": self.flows.iter().map(flow).collect::<Vec<_>>(),
        })
    }
}

impl RoundTrips {
    pub(super) fn json(&self) -> Value {
        let seconds = [self.p50, self.p99, self.p999, self.max].map(|time| time.as_secs_f64());
        json!({
            "count": self.count,
            "p50Seconds": seconds[0],
            "p99Seconds": seconds[1],
            "p999Seconds": seconds[2],
            "maxSeconds": seconds[3],
        })
    }
}
