//! `barnabas-sim [transactions] [SEEDS] [FIRST]`: runs that many days from seed FIRST on, each a second time where it is divisible by ten,
//! and prints one JSON line. Days of transactions have each `transaction.version` in turn, the newest most often.

use std::process::ExitCode;

use barnabas_sim::{TransactionVersion, World};

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let of_transactions = words.first().is_some_and(|word| word == "transactions");
    if of_transactions {
        words.remove(0);
    }
    let world = |seed: u64| {
        if of_transactions {
            World::of_transactions(seed, TransactionVersion([2, 2, 1, 0][(seed % 4) as usize]))
        } else {
            World::new(seed)
        }
    };
    let mut words = words.iter().map(|word| word.parse::<u64>());
    let (seeds, first) = match (words.next(), words.next()) {
        (None, _) => (1000, 0),
        (Some(Ok(seeds)), None) => (seeds, 0),
        (Some(Ok(seeds)), Some(Ok(first))) => (seeds, first),
        _ => {
            eprintln!("usage: barnabas-sim [transactions] [SEEDS] [FIRST]");
            return ExitCode::from(2);
        }
    };
    let (mut committed, mut aborted) = (0, 0);
    let (mut acked, mut faults, mut cuts, mut changes, mut ms, mut replayed) = (0, 0, 0, 0, 0, 0);
    for seed in first..first + seeds {
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
        acked += day.acked;
        committed += day.committed;
        aborted += day.aborted;
        faults += day.faults;
        cuts += day.cuts;
        changes += day.metadata_changes;
        ms += day.simulated_ms;
    }
    println!(
        "{{\"seeds\":{seeds},\"simulated_hours\":{:.2},\"acked\":{acked},\"committed\":{committed},\
         \"aborted\":{aborted},\"faults\":{faults},\"metadata_changes\":{changes},\
         \"cuts\":{cuts},\"replayed\":{replayed}}}",
        ms as f64 / 3_600_000.0
    );
    ExitCode::SUCCESS
}
