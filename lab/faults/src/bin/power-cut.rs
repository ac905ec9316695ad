//! Is what was acknowledged there after the power went, once and in order, without anybody's help?
//!
//! A node with three log directories on a file system of its own (ext4, then XFS) is loaded by idempotent producers of
//! ours (five requests in flight, small and large batches), producers with `acks=1`, one of librdkafka's, committed
//! offsets, and topics that are made and deleted; segments are small and retention runs, so that files are made,
//! renamed and removed all the time. At a random moment the file system loses its power (see `mount`), with or without
//! its own journal written out, the process dies with it, a little before or a little after; it is mounted again, the
//! node is started again, and the judge reads everything back while the producers wait; then they go on where they
//! were. So often as asked.
//!
//! Prints for each file system: cycles, acknowledged records, lost, doubled, starts; and ends in one line to quote.

use barnabas_faults::broker::{Broker, Setup};
use barnabas_faults::chance::Chance;
use barnabas_faults::cut::judge::{Judge, Verdict};
use barnabas_faults::cut::librdkafka::Librdkafka;
use barnabas_faults::cut::upkeep::{Cut, Offsets, Topics};
use barnabas_faults::cut::writer::{Shared, Writer};
use barnabas_faults::cut::{Acked, LIBRDKAFKA_TOPIC, LoadTopic, PLAIN_WRITERS, TOPICS};
use barnabas_faults::kafka::Connection;
use barnabas_faults::mount::{Kind, Mount};
use barnabas_faults::{Trouble, trouble};
use barnabas_harness::binary;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

const IMAGE_BYTES: u64 = 3 << 30;
const IDEMPOTENT: u32 = 4;
const PLAIN: u32 = 2;
/// A cycle's load slows down after this much.
const CYCLE_BYTES: i64 = 24 << 20;
/// What was read is deleted after so many cycles.
const TRIM_EVERY: u64 = 12;
const LOAD_MS: std::ops::Range<u64> = 20..400;

#[derive(Debug)]
struct Options {
    cycles: u64,
    kinds: Vec<Kind>,
    place: PathBuf,
    binary: PathBuf,
    seed: u64,
    librdkafka: Option<PathBuf>,
    /// `acks=1` promises no more than the page cache.
    one_is_written: bool,
    overrides: Vec<(String, String)>,
}

fn options() -> Result<Options, Trouble> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mut options = Options {
        cycles: 200,
        kinds: vec![Kind::Ext4, Kind::Xfs],
        place: std::env::temp_dir().join(format!("barnabas-cut-{}", std::process::id())),
        binary: PathBuf::new(),
        seed: since.map_or(1, |since| since.as_nanos() as u64),
        librdkafka: None,
        one_is_written: false,
        overrides: Vec::new(),
    };
    let mut named = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| Trouble(format!("{word} needs a value")));
        let number = |text: String| text.parse::<u64>().map_err(|_| Trouble(format!("{text} is no number")));
        match word.as_str() {
            "--cycles" => options.cycles = number(value()?)?,
            "--seed" => options.seed = number(value()?)?,
            "--place" => options.place = value()?.into(),
            "--binary" => named = Some(value()?),
            "--librdkafka" => options.librdkafka = Some(value()?.into()),
            "--acks1-written" => options.one_is_written = true,
            "--override" => match value()?.split_once('=') {
                Some((key, value)) => options.overrides.push((key.to_owned(), value.to_owned())),
                None => return trouble("--override needs KEY=VALUE"),
            },
            "--only" => {
                let name = value()?;
                options.kinds.retain(|kind| kind.name() == name);
            }
            _ => return trouble(format!("{word}: not known")),
        }
    }
    options.binary = binary(named.as_deref())?;
    Ok(options)
}

/// What is quoted of one file system.
#[derive(Debug, Default)]
struct Report {
    cycles: u64,
    verdict: Verdict,
    commits: u64,
    topics: u64,
    late: Duration,
    /// Topic changes that were answered while a cut was being made.
    uncounted: u64,
    longest_cut: Duration,
    starts: Vec<Duration>,
    /// Starts that found the end of a log torn.
    torn: u64,
}

/// A file system's whole story.
struct Story<'a> {
    options: &'a Options,
    chance: Chance,
    librdkafka: Option<Librdkafka>,
    broker: Broker,
    /// After those who have files there: it goes last.
    mount: Mount,
    writers: Vec<Writer>,
    offsets: Offsets,
    topics: Topics,
    judge: Judge,
    load: Vec<LoadTopic>,
    report: Report,
    /// The newest cut.
    cut: Cut,
}

impl<'a> Story<'a> {
    fn begin(options: &'a Options, kind: Kind) -> Result<Self, Trouble> {
        let mount = Mount::make(kind, &options.place, IMAGE_BYTES)?;
        let log_dirs: Vec<_> = ["a", "b", "c"].iter().map(|name| mount.point().join(name)).collect();
        log_dirs.iter().try_for_each(std::fs::create_dir_all)?;
        let own = [
            ("log.retention.check.interval.ms", "50"),
            ("log.segment.delete.delay.ms", "20"),
            ("num.partitions", "1"),
        ];
        let own = own.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let overrides = own.chain(options.overrides.iter().cloned()).collect();
        let place = options.place.join(format!("{}-node", kind.name()));
        let setup = Setup { binary: options.binary.clone(), place, log_dirs, overrides, user: None };
        let mut broker = Broker::new(setup)?;
        broker.format()?;
        broker.start()?;
        let chance = Chance::new(options.seed).branch(kind as u64);
        let writers = (0..IDEMPOTENT).chain(PLAIN_WRITERS..PLAIN_WRITERS + PLAIN);
        let writers = writers.map(|number| Writer::new(number, chance.branch(number.into()))).collect();
        let mut load = TOPICS.to_vec();
        if options.librdkafka.is_some() {
            load.push(LIBRDKAFKA_TOPIC);
        }
        let mut connection = Connection::open(broker.port)?;
        connection.find_coordinator("g0")?;
        for topic in &load {
            connection.create_topic(topic.name, topic.partitions, topic.configs)?;
        }
        let start = |interpreter: &PathBuf| Librdkafka::start(interpreter, broker.port);
        let librdkafka = options.librdkafka.as_ref().map(start).transpose()?;
        Ok(Self {
            options,
            chance,
            mount,
            broker,
            writers,
            offsets: Offsets::default(),
            topics: Topics::default(),
            librdkafka,
            judge: Judge::default(),
            load,
            report: Report::default(),
            cut: Cut { begun: Instant::now(), done: Instant::now() },
        })
    }

    fn run(&mut self) -> Result<(), Trouble> {
        let begun = Instant::now();
        while self.report.cycles < self.options.cycles && self.judge.verdict.is_clean_so_far(self.options) {
            self.load_and_cut()?;
            let took = self.broker.start()?;
            self.report.starts.push(took);
            self.read_back()?;
            self.report.torn += u64::from(self.broker.process.log().contains(" unsynced bytes from "));
            self.report.cycles += 1;
            if self.report.cycles.is_multiple_of(TRIM_EVERY) {
                self.judge.trim(&mut Connection::open(self.broker.port)?, &self.load)?;
            }
            if self.report.cycles.is_multiple_of(25) {
                let (cycles, acked) = (self.report.cycles, self.judge.verdict.acked);
                println!("  {cycles} cycles, {acked} acknowledged, {:.0} s", begun.elapsed().as_secs_f64());
            }
        }
        self.end()
    }

    /// The load until a random moment; then the power goes, and the process with it.
    fn load_and_cut(&mut self) -> Result<(), Trouble> {
        let shared = Shared::default();
        shared.bytes_left.store(CYCLE_BYTES, Ordering::Relaxed);
        let port = self.broker.port;
        let load = Duration::from_millis(self.chance.within(LOAD_MS.start, LOAD_MS.end));
        let (flush, moment) = (self.chance.one_in(3), self.chance.within(0, 3));
        let last_breath = Duration::from_millis(self.chance.within(0, 25));
        let mut cut = self.cut;
        let armed = self.mount.arm()?;
        let broker = &mut self.broker;
        let (writers, offsets, topics) = (&mut self.writers, &mut self.offsets, &mut self.topics);
        std::thread::scope(|scope| {
            let shared = &shared;
            for writer in writers.iter_mut() {
                scope.spawn(move || writer.run(port, shared));
            }
            scope.spawn(move || offsets.run(port, shared));
            scope.spawn(move || topics.run(port, shared));
            std::thread::sleep(load);
            // The power takes the process with it: nothing is answered while the file system is being shut down. It may
            // say of a write that is under way that it is durable, and has just forgotten it.
            let done = match moment {
                0 => broker.process.kill().and_then(|()| armed.cut(flush)),
                1 => broker
                    .process
                    .pause(true)
                    .and_then(|()| armed.cut(flush))
                    .and_then(|()| broker.process.kill()),
                // The disk goes first.
                _ => broker.process.pause(false).and_then(|()| {
                    let begun = Instant::now();
                    armed.cut(flush)?;
                    cut = Cut { begun, done: Instant::now() };
                    shared.is_cut.store(true, Ordering::SeqCst);
                    broker.process.resume()?;
                    std::thread::sleep(last_breath);
                    broker.process.kill()
                }),
            };
            shared.stop.store(true, Ordering::Relaxed);
            done
        })?;
        self.cut = cut;
        self.report.longest_cut = self.report.longest_cut.max(cut.done.duration_since(cut.begun));
        let log = self.broker.process.log();
        if let Some(line) = log.lines().find(|line| line.contains("panicked")) {
            self.judge.verdict.wrong(line);
        }
        self.mount.unmount()?;
        self.mount.mount()
    }

    fn read_back(&mut self) -> Result<(), Trouble> {
        let mut acked: Vec<Acked> = Vec::new();
        for writer in &mut self.writers {
            writer.has_written |= !writer.acked.is_empty();
            acked.append(&mut writer.acked);
            writer.refused.drain(..).for_each(|refused| self.judge.verdict.wrong(refused));
        }
        if let Some(librdkafka) = &mut self.librdkafka {
            acked.append(&mut librdkafka.take());
            librdkafka.errors.drain(..).for_each(|error| self.judge.verdict.wrong(error));
        }
        let mut connection = Connection::open(self.broker.port)?;
        self.judge.read_back(&mut connection, &self.load, acked)?;
        let mut wrong = self.offsets.check(&mut connection)?;
        wrong.append(&mut self.topics.check(&mut connection, self.cut)?);
        wrong.into_iter().for_each(|wrong| self.judge.verdict.wrong(wrong));
        Ok(())
    }

    /// Everybody gets the answers they still wait for; a clean stop and a start; the last reading.
    fn end(&mut self) -> Result<(), Trouble> {
        if self.judge.verdict.is_clean_so_far(self.options) {
            for writer in self.writers.iter_mut().take(IDEMPOTENT as usize) {
                writer.settle(self.broker.port)?;
            }
            if self.writers.iter().any(|writer| !writer.has_written) {
                return trouble(
                    "a writer has never had anything acknowledged: the load is not what it should be",
                );
            }
            if let Some(librdkafka) = &mut self.librdkafka {
                let acked = librdkafka.finish(Duration::from_secs(60))?;
                self.writers[0].acked.extend(acked);
            }
            self.read_back()?;
            self.broker.stop()?;
            self.broker.start()?;
            self.read_back()?;
        }
        self.report.commits = self.offsets.commits;
        self.report.topics = self.topics.acked;
        self.report.late = self.topics.late;
        self.report.uncounted = self.topics.uncounted;
        self.report.verdict = std::mem::take(&mut self.judge.verdict);
        Ok(())
    }
}

trait SoFar {
    fn is_clean_so_far(&self, options: &Options) -> bool;
}

impl SoFar for Verdict {
    fn is_clean_so_far(&self, options: &Options) -> bool {
        self.lost == 0
            && self.doubled == 0
            && self.wrong.is_empty()
            && (options.one_is_written || self.lost_one == 0)
    }
}

impl Report {
    fn line(&self, kind: Kind, options: &Options) -> String {
        let Verdict { acked, lost, lost_one, doubled, .. } = &self.verdict;
        let longest = self.starts.iter().max().copied().unwrap_or_default().as_millis();
        let one = if options.one_is_written { format!(" ({lost_one} of acks=1)") } else { String::new() };
        let lost = lost + if options.one_is_written { 0 } else { *lost_one };
        format!(
            "{}: {} cuts, {acked} acknowledged records, {lost} lost{one}, {doubled} doubled, longest start {longest} ms",
            kind.name(),
            self.cycles
        )
    }
}

fn story(options: &Options, kind: Kind) -> Result<Report, Trouble> {
    let mut story = Story::begin(options, kind)?;
    let done = story.run();
    if let Err(error) = done {
        let log = story.broker.process.log_path();
        let kept = std::env::temp_dir().join(format!("barnabas-cut-{}.log", kind.name()));
        std::fs::copy(log, &kept)?;
        return trouble(format!("after {} cycles: {error} (log: {})", story.report.cycles, kept.display()));
    }
    if !story.report.verdict.is_clean_so_far(options) {
        let kept = std::env::temp_dir().join(format!("barnabas-cut-{}.log", kind.name()));
        std::fs::copy(story.broker.process.log_path(), &kept)?;
        println!("  the node's log: {}", kept.display());
    }
    Ok(std::mem::take(&mut story.report))
}

fn run() -> Result<bool, Trouble> {
    let options = options()?;
    std::fs::create_dir_all(&options.place)?;
    println!("power cuts: {} cycles on each file system, seed {}", options.cycles, options.seed);
    let (mut lines, mut failed) = (Vec::new(), 0);
    for &kind in &options.kinds {
        let begun = Instant::now();
        println!("{}:", kind.name());
        match story(&options, kind) {
            Ok(report) => {
                let verdict = &report.verdict;
                verdict.wrong.iter().for_each(|wrong| println!("  WRONG {wrong}"));
                let mut starts = report.starts.clone();
                starts.sort();
                println!(
                    "  {} records read back, {} commits and {} topic changes acknowledged, median start {} ms, {} starts found a torn end, topics known {} ms after the first answer at the latest; {} topic changes were answered within a cut (the longest took {} µs) and count neither way; {:.0} s",
                    verdict.read,
                    report.commits,
                    report.topics,
                    starts.get(starts.len() / 2).copied().unwrap_or_default().as_millis(),
                    report.torn,
                    report.late.as_millis(),
                    report.uncounted,
                    report.longest_cut.as_micros(),
                    begun.elapsed().as_secs_f64()
                );
                println!("  {}", report.line(kind, &options));
                failed += usize::from(!verdict.is_clean_so_far(&options) || report.cycles < options.cycles);
                lines.push(report.line(kind, &options));
            }
            Err(error) => {
                println!("  FAILED {error}");
                lines.push(format!("{}: failed", kind.name()));
                failed += 1;
            }
        }
    }
    println!("power cut: {}", lines.join("; "));
    println!("{} passed, {failed} failed, 0 skipped", options.kinds.len() - failed);
    Ok(failed == 0)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("power cut: {error}");
            ExitCode::FAILURE
        }
    }
}
