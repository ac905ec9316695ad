//! Kills a node with −9 again and again while a fleet of producers writes, and looks after each start whether what was
//! acknowledged is there: once, in order, at offsets without a gap.
//!
//! | file | answers |
//! |---|---|
//! | `node.rs` | the process: started, serving after so long, killed, what it logged |
//! | `ledger.rs` | what was sent and what was acknowledged |
//! | `fleet.rs` | the writers: acks=all and acks=1, small and large batches, compacted keys, a log under retention |
//! | `churn.rs` | who commits offsets, makes and deletes topics, deletes records |
//! | `outside.rs` | a librdkafka producer, in a process of its own |
//! | `judge.rs` | what is there, beside what must be |
//!
//! What it does not show: loss of power. kill −9 takes the process and leaves the page cache (lab/faults/cut cuts
//! power).

mod churn;
mod fleet;
mod judge;
mod ledger;
mod node;
mod outside;
mod random;

use judge::{Judge, Scope};
use ledger::Ledger;
use node::Node;
use random::Random;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// From exec to serving; the story fails where the median is above.
const SERVING_BAR: Duration = Duration::from_secs(1);
/// So many kills come at once after the start, without a look at what is there.
const UNJUDGED_EVERY: usize = 5;
/// Until librdkafka has sent its first record.
const OUTSIDE_PATIENCE: Duration = Duration::from_secs(10);
/// Everything is read again, from the beginning, after so many.
const WHOLE_EVERY: usize = 100;

struct Options {
    kills: usize,
    seed: u64,
    binary: PathBuf,
    keep: bool,
    /// Cuts the end of a segment once, which must be found.
    plant: bool,
    outside: Option<Vec<String>>,
    overrides: Vec<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        kills: 500,
        seed: 0,
        binary: "target/release/barnabas".into(),
        keep: false,
        plant: false,
        outside: None,
        overrides: Vec::new(),
    };
    options.seed = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |since| since.as_nanos() as u64);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("'{text}' is no number"));
        match word.as_str() {
            "--kills" => options.kills = number(value()?)? as usize,
            "--quick" => options.kills = 20,
            "--seed" => options.seed = number(value()?)?,
            "--binary" => options.binary = value()?.into(),
            "--override" => options.overrides.push(value()?),
            "--keep" => options.keep = true,
            "--plant" => options.plant = true,
            "--librdkafka" => {
                options.outside = Some(value()?.split_whitespace().map(str::to_owned).collect());
            }
            other => return Err(format!("{other} is not known")),
        }
    }
    Ok(options)
}

fn main() -> std::process::ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("kill-loop: {problem}");
            return std::process::ExitCode::FAILURE;
        }
    };
    let directory = std::env::temp_dir().join(format!("barnabas-kill-loop-{}", std::process::id()));
    let outcome = story(&options, &directory);
    let ok = outcome.is_ok();
    match outcome {
        Ok(line) => println!("{line}\n1 passed, 0 failed, 0 skipped"),
        Err(problem) => {
            println!("FAILED (seed {}): {problem}\nkept: {}", options.seed, directory.display());
            println!("0 passed, 1 failed, 0 skipped");
        }
    }
    if ok && !options.keep {
        let _ = std::fs::remove_dir_all(&directory);
    }
    if ok { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// How long starts took.
#[derive(Debug, Default)]
struct Times {
    serving: Vec<Duration>,
    first_ack: Vec<Duration>,
}

fn story(options: &Options, directory: &std::path::Path) -> Result<String, String> {
    let mut random = Random::new(options.seed);
    let mut node = Node::new(&options.binary, directory, options.overrides.clone())?;
    node.start()?;
    println!("{} kills, seed {}, {}", options.kills, options.seed, directory.display());
    let ledger = Arc::new(Ledger::default());
    let mut judge = Judge::new(node.address());
    judge.make_topics()?;
    let mut threads = fleet::start(&node.address(), &ledger, &mut random);
    threads.extend(churn::start(&node.address(), &ledger, &mut random));
    let begun = Instant::now();
    let outside = match &options.outside {
        Some(command) => Some(outside::start(command, &node.address(), &ledger)?),
        None => None,
    };
    // Its producer id comes half a second after its start, however long a node lives.
    while outside.is_some() && ledger.acked_of(outside::PRODUCER) == 0 && begun.elapsed() < OUTSIDE_PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut times = kills(options, &mut node, &mut judge, &ledger, &mut random)?;
    judge.look(&ledger, Scope::Tail)?;
    ledger.stop();
    for thread in threads {
        thread.join().map_err(|_| "a thread of the fleet panicked".to_owned())?;
    }
    if let Some(outside) = outside {
        outside.finish()?;
    }
    ledger.first_problem()?;
    judge.look(&ledger, Scope::Whole)?;
    node.stop()?;
    node.start()?;
    judge.look(&ledger, Scope::End)?;
    node.stop()?;
    let (median, _) = summary(&mut times.serving);
    if median > SERVING_BAR {
        return Err(format!("serving {} ms after exec in the median", median.as_millis()));
    }
    Ok(last_line(options, &ledger, &judge, &mut times, begun.elapsed()))
}

fn kills(
    options: &Options,
    node: &mut Node,
    judge: &mut Judge,
    ledger: &Ledger,
    random: &mut Random,
) -> Result<Times, String> {
    let begun = Instant::now();
    let mut times = Times::default();
    for kill in 1..=options.kills {
        let plan = Duration::from_millis(50 + random.below(451));
        let exec = node.started();
        if kill % WHOLE_EVERY == 0 {
            judge.look(ledger, Scope::Whole)?;
        } else if kill % UNJUDGED_EVERY != 0 {
            judge.look(ledger, Scope::Tail)?;
        }
        std::thread::sleep(plan.saturating_sub(exec.elapsed()));
        ledger.first_problem()?;
        // The first life began before there was anybody to write.
        times.first_ack.extend(ledger.take_first_ack(exec).filter(|_| kill > 1));
        node.kill()?;
        if options.plant && kill == 10 {
            node.cut_a_segment(fleet::KEPT)?;
        }
        times.serving.push(node.start()?);
        // What the last life acknowledged may have been read only now.
        let _ = ledger.take_first_ack(node.started());
        if kill % 50 == 0 {
            let (acked, seconds) = (ledger.acked_total(), begun.elapsed().as_secs_f64());
            println!("  {kill:>4} kills, {acked} records acknowledged, {seconds:.0} s");
        }
    }
    Ok(times)
}

fn last_line(options: &Options, ledger: &Ledger, judge: &Judge, times: &mut Times, took: Duration) -> String {
    let (serving, serving_max) = summary(&mut times.serving);
    let (first_ack, first_ack_max) = summary(&mut times.first_ack);
    format!(
        "kill-loop: {} kills -9, {} records acknowledged ({} of them by librdkafka), {} looks: every one there{}, in order, no gap; \
         compaction left {} of {}; {} offset commits, {} topics made, {} deleted; exec to serving median {:.0} ms, max {:.0} ms; to the first acknowledged \
         batch median {:.0} ms, max {:.0} ms; {:.0} s",
        options.kills,
        ledger.acked_total(),
        ledger.acked_of(outside::PRODUCER),
        judge.looks(),
        judge.doubled_words(),
        judge.compacted(),
        ledger.acked_in(fleet::COMPACTED),
        ledger.commits(),
        ledger.topics_made(),
        ledger.topics_deleted(),
        ms(serving),
        ms(serving_max),
        ms(first_ack),
        ms(first_ack_max),
        took.as_secs_f64(),
    )
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn summary(times: &mut [Duration]) -> (Duration, Duration) {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    (median, times.last().copied().unwrap_or_default())
}
