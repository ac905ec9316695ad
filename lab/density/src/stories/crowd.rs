//! A million partitions, or nearly two, on one node at stock limits: made, described, restarted, deleted.
//!
//! What is measured: the time until the last partition has a leader in Metadata; what the process takes, at rest and at
//! its highest; the longest wait of small producers meanwhile; the time from the start of the program to the first
//! Metadata answer, and to a record written and read back.

use super::{Run, timed};
use crate::asks::{self, Known, Many};
use crate::node::{DESCRIPTORS, Failure, MAPS, Node};
use crate::pulse::Pulse;
use crate::table::{seconds, thousands};
use barnabas_client::Connection;
use std::time::{Duration, Instant};

/// How the partitions are dealt out.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub topics: usize,
    pub partitions: i32,
    /// In one CreateTopics request.
    pub topics_at_once: usize,
    /// Log directories of the node.
    pub directories: usize,
}

impl Shape {
    fn total(self) -> usize {
        self.topics * self.partitions as usize
    }

    fn words(self) -> String {
        let total = thousands(self.total() as u64);
        let (topics, partitions) = (thousands(self.topics as u64), thousands(self.partitions as u64));
        let several = match self.directories {
            1 => String::new(),
            count => format!(" over {count} log directories"),
        };
        format!("{total} partitions: {topics} × {partitions}{several}")
    }
}

/// What a shape may cost.
#[derive(Debug, Clone, Copy)]
pub struct Bars {
    pub create: Duration,
    pub resident_mib: u64,
    pub restart: Duration,
    /// The longest that a small producer may wait.
    pub stall: Duration,
}

/// # Errors
/// A refusal, or a node that does not start.
pub async fn tell(run: &mut Run, shape: Shape, bars: Bars) -> Result<(), Failure> {
    run.table.heading(&shape.words());
    let mut node =
        Node::start(&run.binary, &run.root, &format!("crowd-{}", shape.topics), shape.directories)?;
    let mut connection = asks::connect(&node.address(), Duration::from_secs(10)).await?;
    let pulse = Pulse::start(&node.address(), "pulse").await?;
    node.take_peaks();
    let (known, made) = timed(create(&mut connection, shape)).await?;
    let (sum, looked) = timed(count_led(&mut connection, &known)).await?;
    run.table.is("all of them have a leader in Metadata", thousands(sum as u64), sum == shape.total());
    run.table.within("created", made, bars.create);
    run.table.note("then every topic's Metadata asked for by name", seconds(looked));
    run.table.within("longest wait of a small producer meanwhile", pulse.longest()?, bars.stall);
    let peaks = node.take_peaks();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let rest = node.usage();
    run.table.at_most("resident after creation", rest.resident_mib, bars.resident_mib, "MB");
    run.table.at_most("resident, highest during creation", peaks.resident_mib, bars.resident_mib, "MB");
    describe(run, &mut connection, &node, &pulse, shape, bars).await?;
    pulse.stop();
    // The metadata log and the small producers' partitions are there.
    let directories = node.directories().saturating_sub(9);
    run.table.is("directories on disk for those never written", format!("{directories}"), directories == 0);
    let sample = sample(&known);
    let restarted = restart(run, &mut node, &sample, bars).await?;
    remove(run, &mut node, &known, shape, bars).await?;
    run.no_complaints(&node);
    run.table.say(format!(
        "{} created in {}, {} MB resident, serving {} after a start",
        shape.words(),
        seconds(made),
        rest.resident_mib,
        seconds(restarted)
    ));
    Ok(())
}

async fn create(c: &mut Connection, shape: Shape) -> Result<Vec<Known>, Failure> {
    let names: Vec<String> = (0..shape.topics).map(|number| format!("crowd-{number:07}")).collect();
    let mut known = Vec::with_capacity(names.len());
    for names in names.chunks(shape.topics_at_once) {
        let ids = asks::create(c, names, shape.partitions).await?;
        known.extend(names.iter().zip(ids).map(|(name, id)| (name.clone(), id, shape.partitions)));
    }
    Ok(known)
}

async fn count_led(c: &mut Connection, known: &[Known]) -> Result<usize, Failure> {
    let at_once = (20_000 / known.first().map_or(1, |topic| topic.2)).max(1);
    let mut sum = 0;
    for topics in known.chunks(at_once as usize) {
        let names: Vec<String> = topics.iter().map(|topic| topic.0.clone()).collect();
        sum += asks::led(&asks::metadata(c, Some(&names)).await?);
    }
    Ok(sum)
}

async fn describe(
    run: &mut Run,
    c: &mut Connection,
    node: &Node,
    pulse: &Pulse,
    shape: Shape,
    bars: Bars,
) -> Result<(), Failure> {
    // The small producers' topic is among them.
    let (topics, total) = (shape.topics + 1, shape.total() + 8);
    pulse.longest()?;
    let (answer, took) = timed(asks::metadata(c, None)).await?;
    run.table.is("Metadata of everything in one answer", seconds(took), asks::led(&answer) == total);
    drop(answer);
    run.table.within("longest wait of a small producer meanwhile", pulse.longest()?, bars.stall);
    let (found, took) = timed(asks::describe_in_pages(c)).await?;
    let words = format!("{} in {} pages", seconds(took), thousands(found.2 as u64));
    run.table.is("DescribeTopicPartitions of everything", words, (found.0, found.1) == (topics, total));
    run.table.within("longest wait of a small producer meanwhile", pulse.longest()?, bars.stall);
    let (found, took) = timed(asks::log_dirs(c)).await?;
    run.table.is("DescribeLogDirs of everything", seconds(took), found == total);
    run.table.within("longest wait of a small producer meanwhile", pulse.longest()?, bars.stall);
    let peaks = node.take_peaks();
    run.table.at_most("resident, highest while described", peaks.resident_mib, bars.resident_mib, "MB");
    run.table.at_most("descriptors, highest", peaks.descriptors, DESCRIPTORS, "");
    run.table.at_most("maps, highest", peaks.maps, MAPS, "");
    Ok(())
}

fn sample(known: &[Known]) -> Vec<Known> {
    let step = (known.len() / 10).max(1);
    known.iter().step_by(step).map(|(name, id, _)| (name.clone(), *id, 1)).collect()
}

/// Ends the node, starts it, and times it until it serves. The longer of a start after a clean stop and one after kill
/// −9.
async fn restart(run: &mut Run, node: &mut Node, sample: &[Known], bars: Bars) -> Result<Duration, Failure> {
    let stopped = node.stop()?;
    run.table.note("clean stop", seconds(stopped));
    let mut longest = Duration::ZERO;
    for how in ["a clean stop", "kill −9"] {
        if how == "kill −9" {
            node.kill()?;
        }
        node.take_peaks();
        let begun = Instant::now();
        node.run()?;
        let mut c = asks::connect(&node.address(), Duration::from_secs(120)).await?;
        let name = sample.first().ok_or("no topic")?.0.clone();
        let answer = asks::metadata(&mut c, Some(&[name])).await?;
        let answered = begun.elapsed();
        let mut many = Many::open(&node.address(), 1).await?;
        many.produce_all(sample).await?;
        let read = many.fetch_all(sample, if how == "kill −9" { 1 } else { 0 }).await?;
        let served = begun.elapsed();
        longest = longest.max(served);
        run.table.note(&format!("first Metadata after {how}"), seconds(answered));
        run.table.within(
            &format!("{} records written and read back after {how}", sample.len()),
            served,
            bars.restart,
        );
        let right = asks::led(&answer) > 0 && read == sample.len();
        run.table.is("they are there", thousands(read as u64), right);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (rest, peaks) = (node.usage(), node.take_peaks());
        run.table.at_most(
            &format!("resident after {how}, highest"),
            peaks.resident_mib,
            bars.resident_mib,
            "MB",
        );
        run.table
            .note(&format!("resident after {how}, at rest"), format!("{} MB", thousands(rest.resident_mib)));
    }
    Ok(longest)
}

async fn remove(
    run: &mut Run,
    node: &mut Node,
    known: &[Known],
    shape: Shape,
    bars: Bars,
) -> Result<(), Failure> {
    let mut c = asks::connect(&node.address(), Duration::from_secs(10)).await?;
    asks::delete(&mut c, &["pulse".to_owned()]).await?;
    let pulse = Pulse::start(&node.address(), "beat").await?;
    let names: Vec<String> = known.iter().map(|topic| topic.0.clone()).collect();
    let begun = Instant::now();
    for names in names.chunks(shape.topics_at_once) {
        asks::delete(&mut c, names).await?;
    }
    run.table.within("deleted", begun.elapsed(), bars.create);
    run.table.within("longest wait of a small producer meanwhile", pulse.longest()?, bars.stall);
    pulse.stop();
    let left = asks::metadata(&mut c, None).await?.topics.len();
    run.table.is("topics that are left", format!("{left}"), left == 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    run.table.note("resident after deletion", format!("{} MB", thousands(node.usage().resident_mib)));
    Ok(())
}
