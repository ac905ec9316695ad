//! Hostile requests against a running node that may hold one gigabyte, while a good client writes and reads.
//!
//! | file | answers |
//! |---|---|
//! | `node.rs` | the process, its limit, what it held at most |
//! | `make.rs`, `records.rs` | bodies of every API and version, out of the schema |
//! | `attack.rs` | connections: sound, changed, half-sent, unread |
//! | `good.rs`, `talk.rs` | the client that must be served meanwhile |
//!
//! Fails where the node ends, logs a bug, loses an acknowledged record or leaves the good client unserved for
//! [`UNSERVED_MAX`]. Each connection is made by the seed and its number; what the last ones sent is kept in
//! `target/fuzz/found/requests`.
//!
//! `barnabas-fuzz-requests [--seconds N] [--seed N] [--binary PATH] [--memory BYTES] [--again FILE…]`; `--again` sends
//! kept files alone.

mod attack;
mod good;
mod make;
mod node;
mod random;
mod records;
mod talk;

use attack::Attack;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::{ApiVersionsRequest, CreateTopicsRequest};
use good::{Served, Shared};
use node::Node;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use talk::Talk;

const ATTACKERS: usize = 12;
/// The report names what was sent when the node grew so much at once.
const GROWN_BYTES: u64 = 24 << 20;
/// The good client may be slower, but not for ever.
const UNSERVED_MAX: Duration = Duration::from_secs(30);

struct Options {
    seconds: u64,
    seed: u64,
    binary: PathBuf,
    memory_bytes: u64,
    again: Vec<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        seconds: 20,
        seed: 1,
        binary: "target/release/barnabas".into(),
        memory_bytes: 1 << 30,
        again: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word}: {value} is no number"));
        match word.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--binary" => options.binary = value.into(),
            "--memory" => options.memory_bytes = number()?,
            "--again" => {
                options.again = std::iter::once(value).chain(words.by_ref()).map(Into::into).collect()
            }
            other => return Err(format!("{other} is not known")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("requests: FINDING: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let work = root.join("target/fuzz/requests").join(std::process::id().to_string());
    let _ = std::fs::remove_dir_all(&work);
    let mut node = Node::start(&options.binary, &work, options.memory_bytes)?;
    let (served, topic_ids) = set_up(node.address())?;
    if !options.again.is_empty() {
        return again(&mut node, &options.again);
    }
    let requests = make::requests(&root.join("core/messages/schema"))?;
    let is_known = |(key, ..): &(i16, i16, i16)| requests.iter().any(|request| request.key == *key);
    let attack = Attack {
        seed: options.seed,
        address: node.address(),
        served: served.into_iter().filter(is_known).collect(),
        requests,
        batches: records::Batches::new(),
        topic_ids,
        stop: AtomicBool::new(false),
        next: AtomicU64::new(0),
        frames: AtomicU64::new(0),
        sent: Mutex::default(),
    };
    let shared = Shared::default();
    let (outcome, served, read) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| good::write(attack.address, &shared));
        let reader = scope.spawn(|| good::read(attack.address, &shared));
        let attackers: Vec<_> = (0..ATTACKERS).map(|_| scope.spawn(|| attack.run())).collect();
        let outcome = watch(&mut node, options, &attack);
        attack.stop.store(true, Ordering::Relaxed);
        attackers.into_iter().for_each(|thread| drop(thread.join()));
        // The good client is to be served when the attack is over, too.
        std::thread::sleep(Duration::from_millis(500));
        shared.stop.store(true, Ordering::Relaxed);
        (outcome, writer.join(), reader.join())
    });
    let told = |error: String| {
        let kept = keep(&root, &attack);
        format!("{error}\nseed={} last connections: {kept}\n{}", options.seed, node.last_lines())
    };
    let result = outcome.and_then(|()| judge(&node, served.ok(), read.ok()));
    let (mut served, read) = result.map_err(told)?;
    let peak = node.peak_bytes() >> 20;
    let (p50, p99) = (served.percentile(50), served.percentile(99));
    node.stop()?;
    let _ = std::fs::remove_dir_all(&work);
    Ok(format!(
        "requests: {} frames on {} connections in {} s, seed {}; the node lives, at most {peak} of {} MiB ({}); good client: {} records, \
         {} errors, p50 {p50:.1} ms, p99 {p99:.1} ms, longest gap {:.1} s, {read} read",
        attack.frames.load(Ordering::Relaxed),
        attack.next.load(Ordering::Relaxed),
        options.seconds,
        options.seed,
        options.memory_bytes >> 20,
        node.limited_by(),
        served.latencies_us.len(),
        served.errors,
        served.longest_gap.as_secs_f64(),
    ))
}

fn watch(node: &mut Node, options: &Options, attack: &Attack) -> Result<(), String> {
    let began = Instant::now();
    let mut before = node.resident_bytes();
    let mut grown = VecDeque::new();
    while began.elapsed() < Duration::from_secs(options.seconds) {
        if let Some(status) = node.ended()? {
            let grown: Vec<String> = grown.into();
            return Err(format!("the node ended: {status}\nit grew:\n{}", grown.join("\n")));
        }
        let resident = node.resident_bytes();
        if resident > before + GROWN_BYTES {
            let at = began.elapsed().as_secs_f64();
            let newest = attack.newest(6).join("; ");
            grown.push_back(format!("{at:.1} s: {} to {} MiB: {newest}", before >> 20, resident >> 20));
            if grown.len() > 16 {
                grown.pop_front();
            }
        }
        before = resident;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn judge(
    node: &Node,
    served: Option<Served>,
    read: Option<Result<u64, String>>,
) -> Result<(Served, u64), String> {
    let (Some(served), Some(read)) = (served, read) else {
        return Err("the good client panicked".to_owned());
    };
    if let Some(line) = node.complaint() {
        return Err(format!("the node logged: {line}"));
    }
    let read = read?;
    if served.longest_gap > UNSERVED_MAX {
        let first = served.first_error.unwrap_or_default();
        return Err(format!("the good client was not served for {:?} ({first})", served.longest_gap));
    }
    Ok((served, read))
}

type Apis = Vec<(i16, i16, i16)>;

/// Makes the topics, and asks what is served.
fn set_up(address: SocketAddr) -> Result<(Apis, Vec<[u8; 16]>), String> {
    let mut talk = Talk::connect(address).map_err(|error| error.to_string())?;
    let mut call = |body: barnabas_wire::RequestBody, version| {
        talk.call(body, version).map_err(|error| error.to_string())
    };
    let ResponseBody::ApiVersions(versions) = call(ApiVersionsRequest::default().into(), 0)? else {
        return Err("another answer".to_owned());
    };
    let row = |row: &barnabas_wire::messages::api_versions_response::ApiVersion| {
        (row.api_key, row.min_version, row.max_version)
    };
    let apis = versions.api_keys.iter().map(row).collect();
    let names = make::TOPICS.iter().copied().chain([good::TOPIC]);
    let topic = |name: &str| CreatableTopic {
        name: name.into(),
        num_partitions: 2,
        replication_factor: 1,
        ..Default::default()
    };
    let request =
        CreateTopicsRequest { topics: names.map(topic).collect(), timeout_ms: 30_000, ..Default::default() };
    let ResponseBody::CreateTopics(made) = call(request.into(), 7)? else {
        return Err("another answer".to_owned());
    };
    if let Some(bad) = made.topics.iter().find(|topic| topic.error_code != 0) {
        return Err(format!("topic {} was not made: error {}", bad.name.as_str(), bad.error_code));
    }
    let attacked = made.topics.iter().filter(|topic| topic.name.as_str() != good::TOPIC);
    Ok((apis, attacked.map(|topic| topic.topic_id.0).collect()))
}

/// Keeps what the last connections sent. Returns where.
fn keep(root: &Path, attack: &Attack) -> String {
    let folder = root.join("target/fuzz/found/requests");
    let _ = std::fs::create_dir_all(&folder);
    let Ok(sent) = attack.sent.lock() else { return String::new() };
    let mut told = Vec::new();
    for (at, frame) in sent.iter().enumerate() {
        let path = folder.join(format!("{}-{}-{at}", attack.seed, frame.number));
        let _ = std::fs::write(&path, &frame.bytes);
        told.push(format!("{} ({}, {} bytes)", frame.number, frame.what, frame.bytes.len()));
    }
    format!("{} in {}", told.join("; "), folder.display())
}

/// Sends kept frames: each once, on a connection of its own; and then as often as the node takes it, on a few that do
/// not read.
fn again(node: &mut Node, files: &[PathBuf]) -> Result<String, String> {
    for path in files {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let connect = || TcpStream::connect(node.address()).map_err(|error| error.to_string());
        let mut stream = connect()?;
        let patience = Some(Duration::from_secs(5));
        let _ = stream.set_read_timeout(patience);
        let _ = stream.write_all(&bytes);
        let answer = stream.read(&mut [0; 4096]);
        let once = node.peak_bytes() >> 20;
        let flood = || -> Result<(), String> {
            let mut streams = [connect()?, connect()?, connect()?, connect()?];
            for stream in &mut streams {
                let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
                let _ = (0..300).try_for_each(|_| stream.write_all(&bytes));
            }
            std::thread::sleep(Duration::from_secs(1));
            Ok(())
        };
        let flooded = flood();
        let many = node.peak_bytes() >> 20;
        println!("{}: {answer:?}; at most {once} MiB for one, {many} for many; {flooded:?}", path.display());
        if let Some(status) = node.ended()? {
            return Err(format!("{}: the node ended: {status}\n{}", path.display(), node.last_lines()));
        }
    }
    Ok(format!(
        "requests: {} kept frames, the node lives, at most {} MiB",
        files.len(),
        node.peak_bytes() >> 20
    ))
}
