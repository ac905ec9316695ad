//! A topic of 100,000 partitions in one CreateTopics, and a topic of 1,000 that becomes one of 101,000 in one
//! CreatePartitions (`kafka-topics --alter`): every partition can be used at once.

use super::{Run, timed};
use crate::asks::{self, Known, Many};
use crate::node::Failure;
use crate::pulse::Pulse;
use crate::table::{seconds, thousands};
use std::time::Duration;

const LANES: usize = 8;

/// # Errors
/// A refusal, or a node that does not start.
pub async fn tell(run: &mut Run) -> Result<(), Failure> {
    let count: i32 = if run.quick { 10_000 } else { 100_000 };
    let words = thousands(count as u64);
    run.table.heading(&format!("a topic of {words} partitions in one request"));
    let node = run.node("one-topic")?;
    let mut c = asks::connect(&node.address(), Duration::from_secs(10)).await?;
    let pulse = Pulse::start(&node.address(), "pulse").await?;
    let name = "large".to_owned();
    let create = async {
        let ids = asks::create(&mut c, std::slice::from_ref(&name), count).await?;
        let answer = asks::metadata(&mut c, Some(std::slice::from_ref(&name))).await?;
        Ok((ids, asks::led(&answer)))
    };
    let ((ids, led), took) = timed(create).await?;
    run.table.within("created, and all leaders in a Metadata answer", took, Duration::from_secs(3));
    run.table.is("leaders", thousands(led as u64), led == count as usize);
    run.table.within(
        "longest wait of a small producer meanwhile",
        pulse.longest()?,
        Duration::from_millis(500),
    );
    let id = ids.first().copied().ok_or("no topic")?;
    run.table.say(format!("a topic of {words} partitions in {}", seconds(took)));
    let mut many = Many::open(&node.address(), LANES).await?;
    use_sampled(run, &mut many, &(name.clone(), id, count)).await?;
    use_all(run, &mut many, &(name, id, count)).await?;
    run.table.note("longest wait of a small producer meanwhile", seconds(pulse.longest()?));
    let peaks = node.take_peaks();
    run.table.at_most("descriptors, highest", peaks.descriptors, crate::node::DESCRIPTORS, "");
    run.table.note("resident, highest", format!("{} MB", thousands(peaks.resident_mib)));
    pulse.stop();
    enlarge(run, count).await?;
    run.no_complaints(&node);
    Ok(())
}

async fn use_sampled(run: &mut Run, many: &mut Many, topic: &Known) -> Result<(), Failure> {
    let batch = asks::one_record()?;
    let c = many.one()?;
    let mut read = 0;
    let samples = 100;
    for sample in 0..samples {
        let index = topic.2 / samples * sample;
        let named = (topic.0.as_str(), topic.1);
        asks::produce(c, named, index..index + 1, &batch).await?;
        read += asks::fetch(c, named, index..index + 1, 0).await?;
    }
    run.table.is("100 sampled partitions written and read back", format!("{read}"), read == 100);
    Ok(())
}

async fn use_all(run: &mut Run, many: &mut Many, topic: &Known) -> Result<(), Failure> {
    let topics = std::slice::from_ref(topic);
    let (written, took) = timed(many.produce_all(topics)).await?;
    let words = format!("{} in {}", thousands(written as u64), seconds(took));
    run.table.is("a record written to every partition", words, written == topic.2 as usize);
    let (read, took) = timed(many.fetch_all(topics, 0)).await?;
    let words = format!("{} in {}", thousands(read as u64), seconds(took));
    run.table.is("a record read from every partition", words, read == topic.2 as usize);
    Ok(())
}

async fn enlarge(run: &mut Run, more: i32) -> Result<(), Failure> {
    let node = run.node("enlarge")?;
    let mut c = asks::connect(&node.address(), Duration::from_secs(10)).await?;
    let name = "growing".to_owned();
    let ids = asks::create(&mut c, std::slice::from_ref(&name), 1000).await?;
    let id = ids.first().copied().ok_or("no topic")?;
    let count = 1000 + more;
    let (_, took) = timed(asks::enlarge(&mut c, &name, count)).await?;
    run.table.within(
        &format!("1,000 → {} partitions in one request", thousands(count as u64)),
        took,
        Duration::from_secs(3),
    );
    let answer = asks::metadata(&mut c, Some(std::slice::from_ref(&name))).await?;
    let led = asks::led(&answer);
    run.table.is("leaders", thousands(led as u64), led == count as usize);
    let batch = asks::one_record()?;
    let named = (name.as_str(), id);
    let mut read = 0;
    for index in (0..count).step_by(count as usize / 100).chain([count - 1]) {
        asks::produce(&mut c, named, index..index + 1, &batch).await?;
        read += asks::fetch(&mut c, named, index..index + 1, 0).await?;
    }
    run.table.is(
        "sampled partitions written and read back, old, new and last",
        format!("{read}"),
        read >= 100,
    );
    let (_, took) = timed(asks::delete(&mut c, std::slice::from_ref(&name))).await?;
    run.table.note("deleted", seconds(took));
    run.no_complaints(&node);
    Ok(())
}
