//! A quorum in one thread: 1–7 voters, spare controllers and brokers, a network that loses, delays, reorders, doubles
//! and cuts, disks that lose what is not synced, crashes in the middle of effects, hanging nodes, voters that come and
//! go.
//!
//! A run has two phases: things break and everything must stay safe; then nothing breaks any more and everything must
//! get well. After every step every file in `invariants` is asked. The same seed gives the same trace.
//!
//! `QUORUM_SEEDS=10000 cargo test -p barnabas-quorum --lib sim` runs more seeds (from `QUORUM_FIRST` on),
//! `QUORUM_SEED=n` one, `QUORUM_THREADS=4` several at once, and `QUORUM_TRACE=1 … -- --nocapture` prints every effect.

mod cluster;
mod counts;
mod disk;
mod invariants;
mod node;
mod plan;
mod rng;
mod wire;

use std::sync::atomic::{AtomicU64, Ordering};

use cluster::Cluster;
use counts::Counts;
use plan::Plan;
use rng::Rng;

/// A mistake of the shell: what the state machine asks for is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskMistake {
    /// Votes are not written to the state file.
    ForgetsVotes,
    /// Nothing is written to the state file.
    ForgetsState,
    /// What is written counts as synced.
    SyncsNothing,
}

/// What went wrong.
#[derive(Debug)]
struct Failure {
    what: String,
    at: u64,
    steps: u64,
}

fn run(seed: u64, mistake: Option<DiskMistake>) -> (Result<(), Failure>, u64, Counts) {
    let mut cluster = Cluster::new(seed, mistake);
    let outcome = cluster.run();
    (outcome, cluster.hash, cluster.counts)
}

#[allow(clippy::disallowed_methods, reason = "a test's size")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn every_seed_is_safe_and_gets_well() {
    let one = number("QUORUM_SEED");
    let first = one.or(number("QUORUM_FIRST")).unwrap_or(0);
    let seeds = if one.is_some() { 1 } else { number("QUORUM_SEEDS").unwrap_or(60) };
    let next = AtomicU64::new(first);
    let work = || {
        let (mut total, mut broken) = (Counts::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                return (total, broken);
            }
            match std::panic::catch_unwind(|| run(seed, None)) {
                Ok((Ok(()), _, counts)) => total.add(&counts),
                Ok((Err(Failure { what, at, steps }), ..)) => {
                    println!("seed {seed}, {at} ms, step {steps}: {what}");
                    broken.push(seed);
                }
                Err(_) => broken.push(seed),
            }
        }
    };
    let threads = number("QUORUM_THREADS").unwrap_or(1);
    let results: Vec<(Counts, Vec<u64>)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (mut total, mut broken) = (Counts::default(), Vec::new());
    for (counts, seeds) in results {
        total.add(&counts);
        broken.extend(seeds);
    }
    println!("{seeds} seeds: {total:?}");
    assert!(broken.is_empty(), "seeds that break: {broken:?}");
}

/// In a quorum of two who led last was not asked for its vote any more, though it was back, and could not win with its
/// shorter log.
#[test]
fn a_leader_that_was_gone_is_asked_for_its_vote_when_it_is_back() {
    for seed in [2471, 3883, 5078] {
        let outcome = run(seed, None).0;
        assert!(outcome.is_ok(), "seed {seed}: {}", outcome.unwrap_err().what);
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..10 {
        let (first, second) = (run(seed, None), run(seed, None));
        assert_eq!((first.1, first.2), (second.1, second.2), "seed {seed}");
    }
    assert_ne!(run(1, None).1, run(2, None).1);
}

#[test]
fn a_dead_leader_is_replaced_soon() {
    let gaps = |is_heard: bool| {
        let gap = |seed: u64| {
            let mut cluster = Cluster::with(Plan::quiet(3), Rng::new(seed), None);
            cluster.kill_leader(is_heard).unwrap()
        };
        let mut gaps: Vec<u64> = (0..30).map(gap).collect();
        gaps.sort_unstable();
        (gaps[15], gaps[29])
    };
    let (heard, silent) = (gaps(true), gaps(false));
    println!(
        "nothing is committed for: its connections break: {heard:?} ms (p50, longest of 30); silent: {silent:?} ms"
    );
    assert!(heard.0 <= 250 && heard.1 <= 3_000, "{heard:?}");
    assert!(silent.1 <= 8_000, "{silent:?}");
}

/// One follower notices late that the leader is gone. The other one may be the only one that can win, and has used up
/// its tries by then. Neither waits for the fetch timeout.
#[test]
fn a_leaders_death_that_a_follower_sees_late_needs_no_timeout() {
    for seed in number("QUORUM_SEED").map_or(0..300, |seed| seed..seed + 1) {
        let plan = Plan { notices_within_ms: 3_000, timeouts_ms: (1_000, 600_000), ..Plan::quiet(3) };
        let gap = Cluster::with(plan, Rng::new(seed), None).kill_leader(true).unwrap();
        assert!(gap <= 8_000, "seed {seed}: nothing is committed for {gap} ms");
    }
}

/// The first seed that shows a mistake, and how.
fn hunt(mut run: impl FnMut(u64) -> Option<String>) -> Option<(u64, String)> {
    (0..1_000).find_map(|seed| run(seed).map(|what| (seed, what)))
}

/// A run with a mistake may also end in one of the state machine's own assertions.
fn caught(seed: u64, mistake: Option<DiskMistake>) -> Option<String> {
    let outcome = std::panic::catch_unwind(|| run(seed, mistake).0);
    match outcome {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure.what.lines().next().unwrap_or_default().to_owned()),
        Err(_) => Some("an assertion of its own".to_owned()),
    }
}

#[test]
fn every_mistake_of_a_disk_is_caught() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for mistake in [DiskMistake::ForgetsVotes, DiskMistake::ForgetsState, DiskMistake::SyncsNothing] {
        match hunt(|seed| caught(seed, Some(mistake))) {
            Some((seed, what)) => println!("{mistake:?}: seed {seed}: {what}"),
            None => missed.push(mistake),
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not caught within 1,000 seeds: {missed:?}");
}

#[cfg(planted)]
#[test]
fn planted_mistakes_of_a_member_are_caught() {
    barnabas_base::planted::hunt("quorum", |seed| run(seed, None).0.map_err(|failure| failure.what));
}
