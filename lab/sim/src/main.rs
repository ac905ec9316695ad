//! `barnabas-sim [SEEDS] [FIRST]`: runs that many days from seed FIRST on, each a second time where it is divisible by ten, and prints one
//! JSON line.

use std::process::ExitCode;

use barnabas_sim::World;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let (seeds, first) = match (words.next(), words.next()) {
        (None, _) => (1000, 0),
        (Some(Ok(seeds)), None) => (seeds, 0),
        (Some(Ok(seeds)), Some(Ok(first))) => (seeds, first),
        _ => {
            eprintln!("usage: barnabas-sim [SEEDS] [FIRST]");
            return ExitCode::from(2);
        }
    };
    let (mut acked, mut faults, mut cuts, mut changes, mut ms, mut replayed) = (0, 0, 0, 0, 0, 0);
    for seed in first..first + seeds {
        let day = match World::new(seed).run() {
            Ok(day) => day,
            Err(why) => {
                eprintln!("seed {seed}: {why}");
                return ExitCode::FAILURE;
            }
        };
        if seed % 10 == 0 {
            replayed += 1;
            if World::new(seed).run() != Ok(day) {
                eprintln!("seed {seed}: the second day was another one");
                return ExitCode::FAILURE;
            }
        }
        acked += day.acked;
        faults += day.faults;
        cuts += day.cuts;
        changes += day.metadata_changes;
        ms += day.simulated_ms;
    }
    println!(
        "{{\"seeds\":{seeds},\"simulated_hours\":{:.2},\"acked\":{acked},\"faults\":{faults},\"metadata_changes\":{changes},\
         \"cuts\":{cuts},\"replayed\":{replayed}}}",
        ms as f64 / 3_600_000.0
    );
    ExitCode::SUCCESS
}
