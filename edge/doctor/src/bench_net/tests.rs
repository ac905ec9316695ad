//! The arithmetic, and what a listener does with peers that do not keep to the protocol. No time is asserted.

use super::wire::{FRAME_BYTES_MAX, Hello, Job, MAGIC};
use super::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

/// A listener that serves until the tests end, and the lines that it says.
fn listener() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = NetListener::bind("127.0.0.1:0").expect("a port");
    let (address, said) = (listener.address().expect("bound"), Arc::new(Mutex::new(Vec::new())));
    let lines: Arc<Mutex<Vec<String>>> = said.clone();
    std::thread::spawn(move || {
        listener.serve(move |line| lines.lock().expect("a lock").push(line.to_owned()));
    });
    (address, said)
}

fn hello(job: Job, run: u64) -> [u8; 24] {
    Hello { job, seconds: 1, run }.encode()
}

/// What comes back for `bytes` until the listener closes the connection.
fn answer(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.write_all(bytes).expect("sends");
    let mut answer = Vec::new();
    // A reset ends it as well: the listener has closed with bytes unread.
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn bench(address: SocketAddr, connections: usize) -> Result<NetBench, NetError> {
    bench_net(&address.to_string(), 0, connections, 7)
}

#[test]
fn percentiles_are_those_of_the_sorted_times() {
    assert_eq!(RoundTrips::of(Vec::new()), None);
    let times = (1..=1000).rev().map(Duration::from_micros).collect();
    let us = Duration::from_micros;
    assert_eq!(
        RoundTrips::of(times),
        Some(RoundTrips { count: 1000, p50: us(501), p99: us(991), p999: us(1000), max: us(1000) })
    );
}

#[test]
fn loopback_run_measures_every_part() {
    let (address, said) = listener();
    let bench = bench(address, 3).expect("a measurement");
    let parts: Vec<_> = bench.flows.iter().map(|flow| (flow.toward, flow.connections)).collect();
    let wanted = [(Toward::There, 1), (Toward::There, 3), (Toward::Here, 1), (Toward::Here, 3)];
    assert_eq!(parts, wanted);
    assert!(bench.flows.iter().all(|flow| flow.mib_s > 0.0 && flow.rounds.count > 0));
    assert!(bench.rounds.count > 0 && bench.mtu.is_some_and(|mtu| mtu >= 1280), "{bench:?}");
    assert_eq!(bench.text().lines().count(), 12, "{}", bench.text());
    let json = bench.json();
    assert_eq!(
        (json["flows"].as_array().map(Vec::len), &json["flows"][3]["toward"]),
        (Some(4), &"back".into())
    );
    assert_eq!(*said.lock().expect("a lock"), ["run from 127.0.0.1"]);
}

#[test]
fn hostile_peer_ends_its_connection_and_the_listener_stays() {
    let (address, said) = listener();
    let of_hello = |status: u8| [&MAGIC[..], &[0, 1, status, 0]].concat();
    assert_eq!(answer(address, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), b"", "another protocol");
    let mut other_version = hello(Job::Echo, 1);
    other_version[9] = 2;
    assert_eq!(answer(address, &other_version), of_hello(2));
    for (place, byte) in [(10, 9), (12, 0xff)] {
        let mut wrong = hello(Job::Echo, 1);
        wrong[place] = byte;
        assert_eq!(answer(address, &wrong), of_hello(3), "byte {place}");
    }
    for (job, length) in [(Job::Echo, u32::MAX), (Job::Take, FRAME_BYTES_MAX as u32 + 1), (Job::Send, 1)] {
        let bytes = [&hello(job, 1)[..], &length.to_be_bytes(), b"x"].concat();
        assert_eq!(answer(address, &bytes), of_hello(0), "{job:?}");
    }
    bench(address, 1).expect("it still measures");
    let said = said.lock().expect("a lock").join("\n");
    for why in [
        "is no bench-net",
        "speaks version 2",
        "job 9",
        "4294967295 bytes",
        "1048577 bytes",
        "frame of 1 bytes",
    ] {
        assert!(said.contains(why), "{why}: {said}");
    }
}

#[test]
fn silent_peer_is_closed_and_does_not_keep_the_listener() {
    let (address, said) = listener();
    let mut silent: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).expect("connects")).collect();
    bench(address, 1).expect("the silent ones are no run");
    for stream in &mut silent {
        assert_eq!(stream.read(&mut [0; 1]).expect("closed in order"), 0);
    }
    // What the thread says comes after its connection's end.
    let ended = || said.lock().expect("a lock").iter().filter(|line| line.contains(" ended: ")).count();
    while ended() < 4 {
        std::thread::yield_now();
    }
}

#[test]
fn second_run_is_refused_while_the_first_goes_on() {
    let (address, _) = listener();
    let mut first = TcpStream::connect(address).expect("connects");
    first.write_all(&hello(Job::Echo, 1)).expect("sends");
    first.read_exact(&mut [0; 12]).expect("welcome");
    let refused = bench(address, 1).expect_err("it is busy").to_string();
    assert_eq!(
        refused,
        "the listener is busy with another run, or has 17 connections: try again when it has ended"
    );
    first.write_all(&[0; 4]).expect("ends its run");
    assert_eq!(first.read(&mut [0; 1]).expect("closed"), 0);
}

#[test]
fn connections_beyond_the_bound_are_refused() {
    let (address, _) = listener();
    let mut welcome = Vec::new();
    for _ in 0..=CONNECTIONS_MAX {
        let mut stream = TcpStream::connect(address).expect("connects");
        stream.write_all(&hello(Job::Echo, 1)).expect("sends");
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("an answer");
        assert_eq!(status[10], 0);
        welcome.push(stream);
    }
    assert_eq!(answer(address, &hello(Job::Echo, 1))[10], 1, "busy");
}

#[test]
fn listener_that_is_none_is_an_error_of_the_caller() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("bound");
    let taken = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().expect("a connection");
        stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").expect("sends");
        let _ = stream.read(&mut [0; 64]);
    });
    assert!(matches!(bench(address, 1), Err(NetError::Magic)));
    taken.join().expect("it ends");
}

fn figures(p50_us: u64, one: f64, several: f64, again: u64) -> NetBench {
    let us = Duration::from_micros;
    let rounds = RoundTrips { count: 9, p50: us(p50_us), p99: us(400), p999: us(900), max: us(1000) };
    let flow = |toward, connections, mib_s| Flow {
        toward,
        connections,
        mib_s,
        rounds,
        segments: Segments { sent: 10_000, again },
    };
    let flows = vec![
        flow(Toward::There, 1, one),
        flow(Toward::There, 8, several),
        flow(Toward::Here, 8, several + 10.0),
    ];
    NetBench { address: "b:1".to_owned(), is_v4: true, mtu: Some(1500), rounds, flows }
}

#[test]
fn sentences_show_their_arithmetic() {
    let net = figures(200, 100.0, 1000.0, 60);
    let ms = Duration::from_millis;
    let disk = Disk { write: Duration::from_micros(800), write_p99: ms(30), mib_s: 400.0 };
    let lines = Meaning { net: &net, disk: Some(disk) }.sentences();
    let wanted = [
        "one round trip of 0.200 ms (0.400 ms in one of a hundred, 0.900 ms in one of a thousand)",
        "0.200 ms + 0.800 ms = 1.000 ms and more; a producer with one request in flight gets 1 / 1.000 ms = 1000 acks",
        "400 MiB/s of records at most between these two, limited by the disk, in synced rounds of 256 KiB (path 1000 MiB/s",
        "100 MiB/s × 0.200 ms = 20 KiB under way",
        "at 1448 bytes a segment, 1000 MiB/s are 724155 segments a second",
        "near the threshold of N2: 60 of 10000 segments were sent again, 0.60 %, threshold 1 %",
        "above the threshold of D1: p99 of a synced write is 30.00 ms, threshold 20 ms",
    ];
    for words in wanted {
        assert!(lines.iter().any(|line| line.contains(words)), "{words}: {lines:#?}");
    }
}

#[test]
fn quiet_path_without_a_disk_is_near_nothing() {
    let net = figures(200, 1000.0, 1000.0, 0);
    let lines = Meaning { net: &net, disk: None }.sentences();
    assert_eq!(lines.last().map(String::as_str), Some("no threshold of the doctor is near (N2)"));
    assert!(
        lines.iter().any(|line| line.contains("limited by the path (path 1000 MiB/s to the other side)"))
    );
    assert!(lines.iter().any(|line| line.contains("1000 / 2 = 500 MiB/s")));
    assert!(!lines.iter().any(|line| line.contains("KiB under way")), "{lines:#?}");
}

#[test]
fn brokers_table_names_the_nearest_the_farthest_and_the_silent() {
    let rounds = |us| {
        let time = Duration::from_micros(us);
        Ok(RoundTrips { count: 5, p50: time, p99: time, p999: time, max: time })
    };
    let broker = |node, rounds| BrokerRounds { node, address: format!("h{node}:1"), rounds };
    let brokers =
        [broker(1, rounds(500)), broker(2, rounds(2000)), broker(3, Err("it is silent".to_owned()))];
    let text = brokers_text(&brokers);
    for words in [
        "it is silent",
        "node 2 takes 2.000 ms (p50): a client with one request in flight gets 1 / 2.000 ms = 500 answers",
        "the nearest is node 1 with 0.500 ms: a consumer near it saves 1.500 ms a fetch",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(brokers[2].json()["error"], "it is silent");
}
