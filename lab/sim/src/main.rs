//! `barnabas-sim [transactions] [SEEDS] [FIRST]`: runs that many days from seed FIRST on, each a second time where it is divisible by ten,
//! and prints one JSON line: what went wrong, how often each invariant was asked, how many traces were equal. Days of transactions have each
//! `transaction.version` in turn, the newest most often.
//!
//! `barnabas-sim planted`: hunts each planted mistake for a thousand days at most, and prints which day noticed it, and how.

use std::process::ExitCode;
use std::sync::Mutex;

use barnabas_sim::hunt::{self, Noticed};
use barnabas_sim::{Checks, Faults, Mistake, ShareMistake, TransactionVersion, World};

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "planted") {
        return planted();
    }
    let of_transactions = words.first().is_some_and(|word| word == "transactions");
    if of_transactions {
        words.remove(0);
    }
    let mut words = words.iter().map(|word| word.parse::<u64>());
    let (seeds, first) = match (words.next(), words.next()) {
        (None, _) => (1000, 0),
        (Some(Ok(seeds)), None) => (seeds, 0),
        (Some(Ok(seeds)), Some(Ok(first))) => (seeds, first),
        _ => {
            eprintln!("usage: barnabas-sim [transactions] [SEEDS] [FIRST] | planted");
            return ExitCode::from(2);
        }
    };
    days(of_transactions, first..first + seeds)
}

fn days(of_transactions: bool, seeds: std::ops::Range<u64>) -> ExitCode {
    let world = |seed: u64| {
        if of_transactions {
            World::of_transactions(seed, TransactionVersion([2, 2, 1, 0][(seed % 4) as usize]))
        } else {
            World::new(seed)
        }
    };
    let count = seeds.end - seeds.start;
    let (mut faults, mut checks) = (Faults::default(), Checks::default());
    let (mut acked, mut committed, mut aborted, mut cuts, mut changes, mut ms, mut replayed) =
        (0, 0, 0, 0, 0, 0, 0);
    for seed in seeds {
        let day = match world(seed).run() {
            Ok(day) => day,
            Err(why) => {
                eprintln!("seed {seed}: {why}");
                return ExitCode::FAILURE;
            }
        };
        if seed % 10 == 0 {
            replayed += 1;
            if world(seed).run() != Ok(day) {
                eprintln!("seed {seed}: the second day was another one");
                return ExitCode::FAILURE;
            }
        }
        faults.add(&day.faults);
        checks.add(&day.checks);
        (acked, committed, aborted) = (acked + day.acked, committed + day.committed, aborted + day.aborted);
        (cuts, changes, ms) = (cuts + day.cuts, changes + day.metadata_changes, ms + day.simulated_ms);
    }
    println!(
        "{{\"seeds\":{count},\"simulated_hours\":{:.2},\"acked\":{acked},\"committed\":{committed},\
         \"aborted\":{aborted},\"faults\":{},\"faults_by_kind\":{},\"invariants_asked\":{},\
         \"metadata_changes\":{changes},\"cuts\":{cuts},\"equal_on_replay\":{replayed}}}",
        ms as f64 / 3_600_000.0,
        faults.total(),
        faults.json(),
        checks.json(),
    );
    ExitCode::SUCCESS
}

type Hunt = Box<dyn Fn() -> Noticed + Send>;

fn planted() -> ExitCode {
    let mut hunts: Vec<(String, Hunt)> = Vec::new();
    for mistake in Mistake::ALL {
        hunts.push((format!("{mistake:?}"), Box::new(move || hunt::among_brokers(mistake))));
    }
    for mistake in Mistake::OF_TRANSACTIONS {
        hunts.push((format!("{mistake:?} (transactions)"), Box::new(move || hunt::in_transactions(mistake))));
    }
    for mistake in ShareMistake::ALL {
        hunts.push((format!("{mistake:?} (share groups)"), Box::new(move || hunt::in_shares(mistake))));
    }
    let count = hunts.len();
    let (left, missed) = (Mutex::new(hunts), Mutex::new(Vec::new()));
    // Some are noticed by an assertion of the core's own, which is expected here.
    std::panic::set_hook(Box::new(|_| {}));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("nobody panics while holding it").pop();
                    let Some((name, hunt)) = next else { return };
                    match hunt() {
                        Some((seed, why)) => println!("{name}: seed {seed}: {why}"),
                        None => missed.lock().expect("likewise").push(name),
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().expect("likewise");
    println!("{} of {count} planted mistakes were noticed within a thousand days", count - missed.len());
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("not noticed: {missed:?}");
    ExitCode::FAILURE
}
