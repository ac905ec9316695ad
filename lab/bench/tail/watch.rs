//! What the threads of some servers and the device below did, moment by moment: which thread stood in which system
//! call for how long, what the device was asked for, and how long a small synced write of another program took.
//!
//! `watch DIRECTORY DEVICE SAMPLE_US PROBE_MS COMMS PID …`
//!
//! Needs nothing of the servers, so that both makes are seen alike: every SAMPLE_US each thread is looked at (its
//! `schedstat`; where it has run since, its `stat`), and of one that waits uninterruptibly (D: for the device, or for a
//! lock of the file system) its `syscall` and, once seen twice in the same call, its kernel `stack` (both for root). A
//! call differs from the next by its arguments; what lies below two samples is not seen. How long a thread was runnable
//! without a processor is the scheduler's own count (`schedstat`), every 20 ms, as is how long it ran. COMMS: prefixes
//! of thread names, separated by commas; empty: all. The probe writes 4 KiB, O_DIRECT and O_DSYNC, into a file of its
//! own in DIRECTORY, every PROBE_MS whatever became of the write before. DEVICE: `/sys/dev/block/MAJOR:MINOR/stat`.
//!
//! Lines of JSON, times µs of CLOCK_MONOTONIC, until the end of standard input:
//! - `["call", pid, thread, from, to, number, descriptor's path, arguments, [kernel functions]]`
//! - `["cpu", at, pid, thread, waited_us, ran_us]`, since the line before
//! - `["device", at, writes, bytes, write_us, flushes, flush_us, discards, discard_us, reads, read_bytes, read_us]`
//! - `["probe", due, us]`
//! - at last `["used", cpu_us, samples, late, dropped]`, of this program
//!
//! Memory: a call for each thread that waits. Compiled by rustc alone (programs.py); moments.py reads it.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_char, c_int, c_long, c_void};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Lines that wait for the writer; beyond them lines are dropped, and `used` tells how many.
const LINES: usize = 65_536;
const SELDOM_US: u64 = 20_000;
/// How often new threads are looked for.
const THREADS_US: u64 = 500_000;
/// Shorter waits for a processor are left out, and shorter runs.
const WAITED_US: u64 = 1000;
const RAN_US: u64 = 5000;
const PROBE_BYTES: usize = 4096;
const PROBE_PLACES: u64 = 256;
const FRAMES: usize = 8;

const O_WRONLY: c_int = 0o1;
const O_CREAT: c_int = 0o100;
const O_DSYNC: c_int = 0o10000;
#[cfg(target_arch = "x86_64")]
const O_DIRECT: c_int = 0o40000;
#[cfg(not(target_arch = "x86_64"))]
const O_DIRECT: c_int = 0o200000;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

#[repr(C, align(4096))]
struct Page([u8; PROBE_BYTES]);

unsafe extern "C" {
    fn clock_gettime(clock: c_int, told: *mut Timespec) -> c_int;
    fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int;
    fn pwrite(file: c_int, from: *const c_void, bytes: usize, offset: c_long) -> isize;
}

/// µs of a clock: 1 is CLOCK_MONOTONIC, 2 this process's CPU.
fn clock_us(clock: c_int) -> u64 {
    let mut told = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: a live pointer; both clocks are there on every Linux.
    unsafe { clock_gettime(clock, &raw mut told) };
    told.seconds as u64 * 1_000_000 + told.nanoseconds as u64 / 1000
}

fn now_us() -> u64 {
    clock_us(1)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace(['\\', '"', '\n'], "_"))
}

/// A file of /proc that is read again and again.
struct Again {
    file: File,
    text: Vec<u8>,
}

impl Again {
    fn open(path: &str) -> Option<Self> {
        File::open(path).ok().map(|file| Self { file, text: vec![0; 1024] })
    }

    fn read(&mut self) -> Option<&str> {
        let bytes = self.file.read_at(&mut self.text, 0).ok()?;
        std::str::from_utf8(&self.text[..bytes]).ok()
    }
}

/// A system call in which a thread was seen waiting.
struct Call {
    words: String,
    from: u64,
    to: u64,
    samples: u32,
    path: String,
    stack: Vec<String>,
}

struct Thread {
    pid: u32,
    id: u32,
    name: String,
    stat: Again,
    schedule: Again,
    /// What the scheduler has counted by the last sample, and by the last `seldom`: ns that it ran, ns that it waited,
    /// times that it was given a processor.
    counted: [u64; 3],
    told: [u64; 3],
    was_waiting: bool,
    call: Option<Call>,
}

impl Thread {
    fn open(pid: u32, id: u32) -> Option<Self> {
        let at = format!("/proc/{pid}/task/{id}");
        let name = std::fs::read_to_string(format!("{at}/comm")).ok()?.trim().to_owned();
        let (stat, schedule) = (Again::open(&format!("{at}/stat"))?, Again::open(&format!("{at}/schedstat"))?);
        let mut thread = Self { pid, id, name, stat, schedule, counted: [0; 3], told: [0; 3], was_waiting: true, call: None };
        thread.told = thread.count()?;
        Some(thread)
    }

    /// What the scheduler counts now; `None`: the thread is gone.
    fn count(&mut self) -> Option<[u64; 3]> {
        let mut words = self.schedule.read()?.split_whitespace().map(|word| word.parse().unwrap_or(0));
        Some([words.next()?, words.next()?, words.next()?])
    }

    /// µs that it ran, and that it was runnable without running, since the last time, as of the last sample.
    fn scheduled(&mut self) -> (u64, u64) {
        let since = |at: usize| self.counted[at].saturating_sub(self.told[at]) / 1000;
        let found = (since(0), since(1));
        self.told = self.counted;
        found
    }

    /// Whether it waits uninterruptibly; `None`: it is gone.
    fn is_waiting(&mut self) -> Option<bool> {
        let text = self.stat.read()?;
        Some(text.rsplit_once(") ")?.1.starts_with('D'))
    }

    /// Looks at it once; the line of a call that has ended. `None`: the thread is gone. One that has not run since the
    /// last sample is in no other call than then, and waits only if it waited then: most threads cost one read.
    fn sample(&mut self, now: u64) -> Option<Option<String>> {
        let counted = self.count()?;
        let has_run = std::mem::replace(&mut self.counted, counted) != counted;
        if !has_run && !self.was_waiting {
            return Some(None);
        }
        self.was_waiting = self.is_waiting()?;
        if !self.was_waiting {
            return Some(self.call.take().and_then(|call| call.line(self.pid, &self.name)));
        }
        if !has_run && self.call.is_some() {
            self.seen_again(now);
            return Some(None);
        }
        let at = format!("/proc/{}/task/{}", self.pid, self.id);
        let text = std::fs::read_to_string(format!("{at}/syscall")).unwrap_or_default();
        // The number and six arguments (-1: outside of a call, a page fault), or `running`; behind them stack pointer
        // and program counter.
        let words = text.split_whitespace().take(7).collect::<Vec<_>>().join(" ");
        if words.is_empty() || words.starts_with("running") {
            // It went on in between.
            return Some(self.call.take().and_then(|call| call.line(self.pid, &self.name)));
        }
        if self.call.as_ref().is_some_and(|call| call.words == words) {
            self.seen_again(now);
            return Some(None);
        }
        let descriptor = words.split(' ').nth(1).and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()).unwrap_or(u64::MAX);
        let path = std::fs::read_link(format!("/proc/{}/fd/{descriptor}", self.pid)).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let before = self.call.replace(Call { words, from: now, to: now, samples: 1, path, stack: Vec::new() });
        Some(before.and_then(|call| call.line(self.pid, &self.name)))
    }

    fn seen_again(&mut self, now: u64) {
        let at = format!("/proc/{}/task/{}", self.pid, self.id);
        if let Some(call) = &mut self.call {
            (call.to, call.samples) = (now, call.samples + 1);
            if call.stack.is_empty() {
                call.stack = frames(&at);
            }
        }
    }
}

impl Call {
    /// Nothing of what was seen once: it may have lasted no time.
    fn line(&self, pid: u32, name: &str) -> Option<String> {
        let stack: Vec<String> = self.stack.iter().map(|frame| quoted(frame)).collect();
        let number = self.words.split(' ').next().and_then(|word| word.parse::<i64>().ok()).unwrap_or(-1);
        (self.samples > 1).then(|| {
            format!("[\"call\", {pid}, {}, {}, {}, {number}, {}, {}, [{}]]", quoted(name), self.from, self.to, quoted(&self.path), quoted(&self.words), stack.join(", "))
        })
    }
}

/// The kernel functions in which it waits, the innermost first; none for who is not root.
fn frames(at: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("{at}/stack")).unwrap_or_default();
    text.lines().filter_map(|line| line.split("] ").nth(1)?.split('+').next().map(str::to_owned)).take(FRAMES).collect()
}

struct Device {
    file: Again,
    before: [u64; 17],
}

impl Device {
    fn numbers(&mut self) -> [u64; 17] {
        let mut found = [0; 17];
        let text = self.file.read().unwrap_or("");
        found.iter_mut().zip(text.split_whitespace()).for_each(|(place, word)| *place = word.parse().unwrap_or(0));
        found
    }

    /// What came since the last time; nothing where nothing did.
    fn line(&mut self, now: u64) -> Option<String> {
        let found = self.numbers();
        let since = |at: usize| found[at].saturating_sub(self.before[at]);
        let line = format!(
            "[\"device\", {now}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}]",
            since(4), since(6) * 512, since(7) * 1000, since(15), since(16) * 1000, since(11), since(14) * 1000, since(0), since(2) * 512, since(3) * 1000
        );
        let any = since(4) + since(15) + since(11) + since(0) > 0;
        self.before = found;
        any.then_some(line)
    }
}

struct Watch {
    pids: Vec<u32>,
    comms: Vec<String>,
    threads: Vec<Thread>,
    device: Option<Device>,
    lines: SyncSender<String>,
    dropped: u64,
}

impl Watch {
    fn say(&mut self, line: String) {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(line) {
            self.dropped += 1;
        }
    }

    /// Threads that have come since.
    fn look(&mut self) {
        let known: HashSet<(u32, u32)> = self.threads.iter().map(|thread| (thread.pid, thread.id)).collect();
        for &pid in &self.pids {
            let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
            let ids = tasks.flatten().filter_map(|task| task.file_name().to_string_lossy().parse::<u32>().ok());
            let fresh: Vec<Thread> = ids.filter(|id| !known.contains(&(pid, *id))).filter_map(|id| Thread::open(pid, id)).collect();
            let is_wanted = |thread: &Thread| self.comms.is_empty() || self.comms.iter().any(|comm| thread.name.starts_with(comm.as_str()));
            self.threads.extend(fresh.into_iter().filter(is_wanted));
        }
    }

    fn sample(&mut self, now: u64) {
        let mut lines = Vec::new();
        self.threads.retain_mut(|thread| match thread.sample(now) {
            Some(line) => {
                lines.extend(line);
                true
            }
            None => {
                lines.extend(thread.call.take().and_then(|call| call.line(thread.pid, &thread.name)));
                false
            }
        });
        lines.into_iter().for_each(|line| self.say(line));
    }

    fn seldom(&mut self, now: u64) {
        let mut found: HashMap<(u32, String), (u64, u64)> = HashMap::new();
        for thread in &mut self.threads {
            let (ran, waited) = thread.scheduled();
            if waited >= WAITED_US || ran >= RAN_US {
                // Of several threads of one name, the one that waited longest, and the one that ran longest.
                let most = found.entry((thread.pid, thread.name.clone())).or_default();
                *most = (most.0.max(waited), most.1.max(ran));
            }
        }
        for ((pid, name), (waited, ran)) in found {
            self.say(format!("[\"cpu\", {now}, {pid}, {}, {waited}, {ran}]", quoted(&name)));
        }
        if let Some(line) = self.device.as_mut().and_then(|device| device.line(now)) {
            self.say(line);
        }
    }

    fn end(&mut self) {
        let lines: Vec<String> = self.threads.iter_mut().filter_map(|thread| thread.call.take().and_then(|call| call.line(thread.pid, &thread.name))).collect();
        lines.into_iter().for_each(|line| self.say(line));
    }
}

/// A synced write of 4 KiB every `every` µs; each is timed from when it was due.
fn probe(directory: &str, every: u64, lines: &SyncSender<String>, is_over: &AtomicBool) {
    let path = format!("{directory}/probe");
    // Its blocks are there, so that a write changes no metadata.
    std::fs::File::create(&path).and_then(|mut file| file.write_all(&vec![0; PROBE_BYTES * PROBE_PLACES as usize]).and_then(|()| file.sync_all())).expect("a file for the probe");
    let page = Page([b'p'; PROBE_BYTES]);
    let name = CString::new(path.clone()).expect("no NUL in a path");
    // SAFETY: a live path; the descriptor is used until the process ends.
    let file = unsafe { open(name.as_ptr(), O_WRONLY | O_CREAT | O_DIRECT | O_DSYNC, 0o600) };
    assert!(file >= 0, "{path}: no O_DIRECT here");
    let mut due = now_us();
    for place in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(Duration::from_micros(due.saturating_sub(now_us())));
        // SAFETY: the page lives, and is aligned as O_DIRECT asks.
        let wrote = unsafe { pwrite(file, (&raw const page).cast(), PROBE_BYTES, ((place % PROBE_PLACES) as usize * PROBE_BYTES) as c_long) };
        let took = if wrote == PROBE_BYTES as isize { (now_us() - due) as i64 } else { -1 };
        let _ = lines.try_send(format!("[\"probe\", {due}, {took}]"));
        due += every;
    }
    let _ = std::fs::remove_file(&path);
}

fn written(lines: &Receiver<String>) {
    let mut out = std::io::BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    for line in lines {
        if writeln!(out, "{line}").is_err() {
            return;
        }
    }
    let _ = out.flush();
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words[at].parse::<u64>().expect("a number");
    let (directory, every, probe_every) = (words[0].clone(), number(2), number(3) * 1000);
    let (lines, received) = sync_channel(LINES);
    let writer = std::thread::spawn(move || written(&received));
    let is_over: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let of_probe = lines.clone();
    let prober = std::thread::spawn(move || probe(&directory, probe_every, &of_probe, is_over));
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        is_over.store(true, Ordering::Relaxed);
    });
    let device = Again::open(&words[1]).map(|file| Device { file, before: [0; 17] });
    let comms = words[4].split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let mut watch = Watch { pids: words[5..].iter().map(|word| word.parse().expect("a pid")).collect(), comms, threads: Vec::new(), device, lines, dropped: 0 };
    if let Some(device) = &mut watch.device {
        device.before = device.numbers();
    }
    let (mut due, mut looked, mut seldom, mut samples, mut late) = (now_us(), 0, 0, 0u64, 0u64);
    while !is_over.load(Ordering::Relaxed) {
        let now = now_us();
        if now - looked >= THREADS_US {
            (looked, ()) = (now, watch.look());
        }
        watch.sample(now);
        if now - seldom >= SELDOM_US {
            (seldom, ()) = (now, watch.seldom(now));
        }
        (samples, due) = (samples + 1, due + every);
        // A sampler that had no processor says so: what it did not see it cannot tell.
        late += u64::from(now_us() > due + 2 * every);
        due = due.max(now_us().saturating_sub(every));
        std::thread::sleep(Duration::from_micros(due.saturating_sub(now_us())));
    }
    watch.end();
    let _ = prober.join();
    let dropped = watch.dropped;
    let _ = watch.lines.send(format!("[\"used\", {}, {samples}, {late}, {dropped}]", clock_us(2)));
    drop(watch);
    let _ = writer.join();
}
