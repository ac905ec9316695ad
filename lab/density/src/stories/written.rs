//! 20,000 partitions, each of which is written: where Apache Kafka runs out of files.
//!
//! Usable is taken twice: when all leaders are in a Metadata answer, and when a record written to each with `acks=all`
//! has been acknowledged. Then the node is killed, and the time until it serves is taken.
//!
//! That start makes five files for each partition. ext4 passes over inodes that were freed in the last minutes, one by
//! one (`recently_deleted`): soon after many files were removed, an earlier run's say, four fifths of the time go
//! there.

use super::{Run, timed};
use crate::asks::{self, Known, Many};
use crate::node::{DESCRIPTORS, Failure, MAPS, Node};
use crate::table::{seconds, thousands};
use std::time::{Duration, Instant};

const LANES: usize = 8;

/// # Errors
/// A refusal, or a node that does not start.
pub async fn tell(run: &mut Run) -> Result<(), Failure> {
    let partitions: i32 = if run.quick { 4000 } else { 20_000 };
    let words = thousands(partitions as u64);
    run.table.heading(&format!("{words} partitions, all of them written"));
    let mut node = run.node("written")?;
    let mut c = asks::connect(&node.address(), Duration::from_secs(10)).await?;
    let mut many = Many::open(&node.address(), LANES).await?;
    let name = "written".to_owned();
    node.take_peaks();
    let begun = Instant::now();
    let ids = asks::create(&mut c, std::slice::from_ref(&name), partitions).await?;
    let answer = asks::metadata(&mut c, Some(std::slice::from_ref(&name))).await?;
    let led = begun.elapsed();
    run.table.is("leaders", thousands(asks::led(&answer) as u64), asks::led(&answer) == partitions as usize);
    run.table.within(
        "created, and all leaders in a Metadata answer (Kafka: 90 s)",
        led,
        Duration::from_secs(2),
    );
    let id = ids.first().copied().ok_or("no topic")?;
    let topics = [(name, id, partitions)];
    let written = many.produce_all(&topics).await?;
    let usable = begun.elapsed();
    run.table.is("a record in each", thousands(written as u64), written == partitions as usize);
    run.table.within("created, and a record in each acknowledged, acks=all", usable, Duration::from_secs(2));
    let (again, took) = timed(many.produce_all(&topics)).await?;
    run.table.is(
        "a second record in each",
        format!("{} in {}", thousands(again as u64), seconds(took)),
        again == written,
    );
    let peaks = node.take_peaks();
    run.table.at_most("descriptors, highest", peaks.descriptors, DESCRIPTORS, "");
    run.table.at_most("maps, highest", peaks.maps, MAPS, "");
    run.table.note("resident, highest", format!("{} MB", thousands(peaks.resident_mib)));
    let rest = node.usage();
    run.table.note("descriptors after it", thousands(rest.descriptors));
    drop((c, many));
    let serving = restart(run, &mut node, &topics[0]).await?;
    run.table.say(format!(
        "{words} partitions created and a record in each in {}, serving {} after kill −9",
        seconds(usable),
        seconds(serving)
    ));
    run.no_complaints(&node);
    Ok(())
}

/// kill −9, and a clean stop, each until a record can be read. Returns the first.
async fn restart(run: &mut Run, node: &mut Node, topic: &Known) -> Result<Duration, Failure> {
    node.kill()?;
    let begun = Instant::now();
    node.run()?;
    let mut many = Many::open_within(&node.address(), LANES, Duration::from_secs(120)).await?;
    let one = [(topic.0.clone(), topic.1, 1)];
    many.produce_all(&one).await?;
    let read = many.fetch_all(&one, 2).await?;
    let serving = begun.elapsed();
    run.table.within(
        "kill −9, then a record written and read back (Kafka: 53 s)",
        serving,
        Duration::from_secs(1),
    );
    run.table.is("it is the third record of its partition", format!("{read}"), read == 1);
    let (read, took) = timed(many.fetch_all(std::slice::from_ref(topic), 1)).await?;
    let told = format!("{} in {}", thousands(read as u64), seconds(took));
    run.table.is("then the second record read from every partition", told, read == topic.2 as usize);
    run.table.note("descriptors after it", thousands(node.usage().descriptors));
    let stopped = node.stop()?;
    run.table.note("clean stop", seconds(stopped));
    let begun = Instant::now();
    node.run()?;
    let mut many = Many::open_within(&node.address(), 1, Duration::from_secs(120)).await?;
    many.fetch_all(&one, 0).await?;
    run.table.within("clean stop, then a record read", begun.elapsed(), Duration::from_secs(1));
    Ok(serving)
}
