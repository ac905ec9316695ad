//! How many partitions does one node carry, and what does each of them cost?
//!
//! Runs the release binary as it comes, at the limits that Linux has out of the box (20,000 descriptors, 65,530 maps),
//! on this machine's disk; our own client asks, Apache's tools where they are named. Held fixed: one node, one copy of
//! each partition, synced acknowledgements. Left out on purpose: throughput with many partitions (lab/bench) and other
//! systems; what is said of Kafka was measured on another day and stands in the names of the rows. The bounds are those
//! of the rows.
//!
//! `--quick` is a tenth of it, as an ordinary test: it fails for what is wrong, not for what took long on a busy
//! machine. The last lines are the table, one line to quote, and the counts.

mod asks;
mod node;
mod pulse;
mod stories;
mod table;

use node::Failure;
use std::path::PathBuf;
use std::time::Duration;
use stories::crowd::{Bars, Shape};
use stories::{Run, apache, crowd, one_topic, written};

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).cloned()
    };
    let binary = value("--binary").unwrap_or_else(|| "target/release/barnabas".to_owned());
    let only = value("--only");
    let quick = words.iter().any(|word| word == "--quick");
    let root = value("--dir").map_or_else(std::env::temp_dir, PathBuf::from);
    let root = root.join(format!("barnabas-density-{}", std::process::id()));
    let mut run = Run { binary: std::fs::canonicalize(binary)?, root, table: table::Table::default(), quick };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    run.table.note("processors; load of the machine at the beginning", machine());
    let told = runtime.block_on(tell_all(&mut run, only.as_deref()));
    run.table.note("load of the machine at the end, this run included", machine());
    std::fs::remove_dir_all(&run.root).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    run.table.print();
    told?;
    println!("\ndensity: {}", run.table.line());
    let missed = run.table.missed(false);
    if !missed.is_empty() {
        println!("missed: {}", missed.join("; "));
    }
    let failed = run.table.missed(quick).len();
    println!("{} passed, {failed} failed, 0 skipped", run.table.met());
    if failed > 0 {
        std::process::exit(1);
    }
    Ok(())
}

/// Processors, and the mean number of threads that wanted one over the last minute: others' work makes every figure
/// worse.
fn machine() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    format!("{}; {load}", std::thread::available_parallelism().map_or(0, usize::from))
}

async fn tell_all(run: &mut Run, only: Option<&str>) -> Result<(), Failure> {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let second = Duration::from_secs;
    let stall = Duration::from_millis(500);
    let million = Bars { create: second(60), resident_mib: 1000, restart: second(5), stall };
    let tenth = Bars { create: second(12), resident_mib: 400, restart: second(2), stall };
    let twice = Bars { create: second(114), resident_mib: 1900, restart: second(10), stall };
    if wanted("written") {
        written::tell(run).await?;
    }
    if wanted("one-topic") {
        one_topic::tell(run).await?;
    }
    let shape =
        |topics, partitions, topics_at_once| Shape { topics, partitions, topics_at_once, directories: 1 };
    let over_three = |topics| Shape { directories: 3, ..shape(topics, 1000, 100) };
    let crowds: &[(&str, Shape, Bars)] = if run.quick {
        &[
            ("crowd-topics", shape(100_000, 1, 1000), tenth),
            ("crowd-partitions", shape(100, 1000, 100), tenth),
            ("crowd-dirs", over_three(100), tenth),
        ]
    } else {
        &[
            ("crowd-topics", shape(1_000_000, 1, 1000), million),
            ("crowd-mixed", shape(1000, 1000, 100), million),
            ("crowd-dirs", over_three(1000), million),
            ("crowd-partitions", shape(10, 100_000, 1), million),
            ("crowd-twice", shape(19, 100_000, 1), twice),
        ]
    };
    for &(name, shape, bars) in crowds {
        if wanted(name) {
            crowd::tell(run, shape, bars).await?;
        }
    }
    if wanted("apache") {
        apache::tell(run).await?;
    }
    Ok(())
}
