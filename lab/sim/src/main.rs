//! `barnabas-sim [transactions | shares | CLIMATE] [SEEDS] [FIRST]`: runs that many days from seed FIRST on, each a
//! second time where it is divisible by ten, and prints one JSON line: what went wrong, how often each invariant was
//! asked, how many traces were equal. Days of transactions have each `transaction.version` in turn, the newest most
//! often; days of shares are of one share partition alone. With a climate (mixed, damage, stale-metadata, retention,
//! elections, compaction, directories, written, waiting, aside, rot) all days have that; else each has its seed's,
//! which is one of the first five. A day on which an invariant does not hold is named, and the others go on.
//!
//! `barnabas-sim planted [NAME]`: hunts each planted mistake for a thousand days at most, and prints which day noticed
//! it, and how.
//!
//! `barnabas-sim tell SEED [CLIMATE | shares | transactions [VERSION]]`: prints all that happens on one day, of that
//! climate, or of transactions with that `transaction.version`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use barnabas_sim::hunt::{self, Noticed};
use barnabas_sim::{
    Checks, Climate, Day, Faults, Mistake, ShareDay, ShareMistake, ShareWorld, TransactionVersion, World,
};

const USAGE: &str = "usage: barnabas-sim [transactions | shares | CLIMATE] [SEEDS] [FIRST] | planted [NAME] | \
                     tell SEED [CLIMATE | shares | transactions [VERSION]]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().ok();
    match words[..] {
        ["planted"] => planted(),
        ["planted", name] => hunt_one(name),
        ["tell", seed] => number(seed).map_or_else(usage, |seed| tell(World::new(seed))),
        ["tell", seed, "transactions"] => number(seed).map_or_else(usage, |seed| tell(of_transactions(seed))),
        ["tell", seed, "shares"] => number(seed).map_or_else(usage, |seed| {
            println!("{:?}", ShareWorld::new(seed).told_of().run());
            ExitCode::SUCCESS
        }),
        ["tell", seed, climate] => match (number(seed), Climate::named(climate)) {
            (Some(seed), Some(climate)) => tell(World::in_climate(seed, climate)),
            _ => usage(),
        },
        ["tell", seed, "transactions", version] => match (number(seed), version.parse()) {
            (Some(seed), Ok(version)) => tell(World::of_transactions(seed, TransactionVersion(version))),
            _ => usage(),
        },
        ["transactions", ref rest @ ..] => days(of_transactions, rest),
        ["shares", ref rest @ ..] => share_days(rest),
        ref words => match words.split_first().and_then(|(word, rest)| Some((Climate::named(word)?, rest))) {
            Some((climate, rest)) => days(|seed| World::in_climate(seed, climate), rest),
            None => days(World::new, words),
        },
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn of_transactions(seed: u64) -> World {
    World::of_transactions(seed, TransactionVersion([2, 2, 1, 0][(seed % 4) as usize]))
}

fn tell(world: World) -> ExitCode {
    match world.told_of().run() {
        Ok(day) => {
            println!("{day:?}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// What days came to, together.
#[derive(Default)]
struct Sum {
    days: u64,
    replayed: u64,
    failed: u64,
    faults: Faults,
    checks: Checks,
    acked: usize,
    committed: usize,
    aborted: usize,
    cuts: usize,
    repairs: usize,
    compactions: usize,
    changes: usize,
    ms: u64,
}

impl Sum {
    fn add(&mut self, day: &Day) {
        self.days += 1;
        self.faults.add(&day.faults);
        self.checks.add(&day.checks);
        self.acked += day.acked;
        self.committed += day.committed;
        self.aborted += day.aborted;
        self.cuts += day.cuts;
        self.repairs += day.repairs;
        self.compactions += day.compactions;
        self.changes += day.metadata_changes;
        self.ms += day.simulated_ms;
    }

    fn print(&self) {
        println!(
            "{{\"seeds\":{},\"failed\":{},\"simulated_hours\":{:.2},\"acked\":{},\"committed\":{},\
             \"aborted\":{},\"faults\":{},\"faults_by_kind\":{},\"invariants_asked\":{},\
             \"metadata_changes\":{},\"cuts\":{},\"repairs\":{},\"compactions\":{},\"equal_on_replay\":{}}}",
            self.days,
            self.failed,
            self.ms as f64 / 3_600_000.0,
            self.acked,
            self.committed,
            self.aborted,
            self.faults.total(),
            self.faults.json(),
            self.checks.json(),
            self.changes,
            self.cuts,
            self.repairs,
            self.compactions,
            self.replayed,
        );
    }
}

/// How many days, from which seed on.
fn numbers(words: &[&str]) -> Option<(u64, u64)> {
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    match numbers.as_deref() {
        Some([]) => Some((1000, 0)),
        Some(&[count]) => Some((count, 0)),
        Some(&[count, first]) => Some((count, first)),
        _ => None,
    }
}

fn days(world: impl Fn(u64) -> World + Sync, words: &[&str]) -> ExitCode {
    let Some((count, first)) = numbers(words) else { return usage() };
    let (next, sum) = (AtomicU64::new(first), Mutex::new(Sum::default()));
    in_threads(|| {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return;
            }
            let run = || catch_unwind(AssertUnwindSafe(|| world(seed).run()));
            let day = run().unwrap_or_else(|_| Err("an assertion".to_owned()));
            let is_replayed = seed.is_multiple_of(10) && day.is_ok();
            let differs = is_replayed && !matches!(run(), Ok(again) if again == day);
            let mut sum = sum.lock().expect("invariant: no thread panics while it holds it");
            sum.replayed += u64::from(is_replayed && !differs);
            match day {
                Ok(_) if differs => {
                    sum.failed += 1;
                    eprintln!("seed {seed}: the second day was another one");
                }
                Ok(day) => sum.add(&day),
                Err(why) => {
                    sum.failed += 1;
                    eprintln!("seed {seed}: {why}");
                }
            }
        }
    });
    let sum = sum.into_inner().expect("likewise");
    sum.print();
    if sum.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Days of one share-partition, in one thread.
fn share_days(words: &[&str]) -> ExitCode {
    let Some((count, first)) = numbers(words) else { return usage() };
    let (mut failed, mut replayed) = (0, 0);
    let mut sum = ShareDay::default();
    for seed in first..first + count {
        let run = || catch_unwind(AssertUnwindSafe(|| ShareWorld::new(seed).run()));
        match run().unwrap_or_else(|_| Err("an assertion".to_owned())) {
            Ok(day) if seed.is_multiple_of(10) && !matches!(run(), Ok(Ok(again)) if again == day) => {
                failed += 1;
                eprintln!("seed {seed}: the second day was another one");
            }
            Ok(day) => {
                replayed += u64::from(seed.is_multiple_of(10));
                sum.add(&day);
            }
            Err(why) => {
                failed += 1;
                eprintln!("seed {seed}: {why}");
            }
        }
    }
    println!(
        "{{\"seeds\":{count},\"failed\":{failed},\"delivered\":{},\"settled\":{},\"leaders\":{},\"moves\":{},\
         \"dead_letters\":{},\"equal_on_replay\":{replayed}}}",
        sum.delivered, sum.settled, sum.leaders, sum.moves, sum.letters
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn in_threads(work: impl Fn() + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(&work);
        }
    });
}

type Hunt = Box<dyn Fn() -> Noticed + Send>;

fn hunts() -> Vec<(String, Hunt)> {
    let mut hunts: Vec<(String, Hunt)> = Vec::new();
    for mistake in Mistake::ALL {
        hunts.push((format!("{mistake:?}"), Box::new(move || hunt::among_brokers(mistake))));
    }
    for mistake in Mistake::OF_TRANSACTIONS {
        hunts.push((format!("{mistake:?}:transactions"), Box::new(move || hunt::in_transactions(mistake))));
    }
    for mistake in Mistake::OF_COMPACTION {
        hunts.push((format!("{mistake:?}:compaction"), Box::new(move || hunt::in_compaction(mistake))));
    }
    for mistake in ShareMistake::ALL {
        hunts.push((format!("{mistake:?}:shares"), Box::new(move || hunt::in_shares(mistake))));
    }
    #[cfg(planted)]
    for mistake in ["brokers", "transactions", "compaction", "directories", "rot"]
        .into_iter()
        .flat_map(barnabas_base::planted::noticed_by)
    {
        let name = format!("{}:{}", mistake.name, mistake.noticed_by);
        hunts.push((name, Box::new(move || hunt::of_core(mistake))));
    }
    hunts
}

/// Each in a process of its own: some are noticed by an assertion of the core's, which ends a process that was built
/// for release.
fn planted() -> ExitCode {
    let left = Mutex::new(hunts());
    let count = left.lock().map_or(0, |left| left.len());
    let missed = Mutex::new(Vec::new());
    let Ok(me) = std::env::current_exe() else { return ExitCode::FAILURE };
    in_threads(|| {
        loop {
            let next = left.lock().expect("invariant: no thread panics while it holds it").pop();
            let Some((name, _)) = next else { return };
            let hunted = std::process::Command::new(&me).args(["planted", &name]).status();
            if !hunted.is_ok_and(|status| status.success()) {
                missed.lock().expect("likewise").push(name);
            }
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

fn hunt_one(wanted: &str) -> ExitCode {
    let Some((name, hunt)) = hunts().into_iter().find(|(name, _)| name == wanted) else { return usage() };
    let told = name.clone();
    std::panic::set_hook(Box::new(move |panic| {
        println!("{told}: seed {}: {}", hunt::seed(), panic.to_string().replace('\n', " "));
        std::process::exit(0);
    }));
    match hunt() {
        Some((seed, why)) => {
            println!("{name}: seed {seed}: {why}");
            ExitCode::SUCCESS
        }
        None => ExitCode::FAILURE,
    }
}
