//! The same through Apache's own clients: `kafka-topics` and the Java admin client, as they come.
//!
//! Their class path is given in `KAFKA_CLASSPATH` (lab/density/run asks lab/compat for it); without it this is left
//! out.

use super::{Run, timed};
use crate::asks;
use crate::node::{Failure, Node};
use crate::table::{seconds, thousands};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const TOPIC_COMMAND: &str = "org.apache.kafka.tools.TopicCommand";

/// # Errors
/// A tool fails, or a node does not start.
pub async fn tell(run: &mut Run) -> Result<(), Failure> {
    let version = std::env::var("KAFKA_VERSION").unwrap_or_default();
    run.table.heading(&format!("through Apache's own tools, Kafka {version}"));
    let Ok(classpath) = std::env::var("KAFKA_CLASSPATH") else {
        run.table.note("left out", "no class path");
        return Ok(());
    };
    let node = run.node("apache")?;
    let large: usize = if run.quick { 20_000 } else { 100_000 };
    let count = large.to_string();
    let java = Java { classpath: &classpath, node: &node };
    let named = |words: &[&str]| {
        [TOPIC_COMMAND, "--topic", "tool"].iter().chain(words).map(|&word| word.to_owned()).collect()
    };
    let (_, took) = timed(java.run(named(&["--create", "--partitions", &count]))).await?;
    run.table.note(&format!("kafka-topics --create --partitions {}", thousands(large as u64)), seconds(took));
    let more = (large + 1000).to_string();
    let (_, took) = timed(java.run(named(&["--alter", "--partitions", &more]))).await?;
    run.table.note(&format!("kafka-topics --alter --partitions {more}"), seconds(took));
    let (text, took) = timed(java.run(named(&["--describe"]))).await?;
    let lines =
        text.lines().filter(|line| line.contains("Leader: 1\t") || line.contains("Leader: 0\t")).count();
    run.table.is(
        "kafka-topics --describe",
        format!("{} lines in {}", thousands(lines as u64), seconds(took)),
        lines == large + 1000,
    );
    admin(run, &java, large).await?;
    let (_, took) = timed(java.run(named(&["--delete"]))).await?;
    run.table.note("kafka-topics --delete", seconds(took));
    everything(run, &java).await?;
    run.no_complaints(&node);
    Ok(())
}

/// The Java admin client: create, enlarge, describe, log directories, delete (AdminStory.java).
async fn admin(run: &mut Run, java: &Java<'_>, large: usize) -> Result<(), Failure> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("apache/AdminStory.java");
    let words = [source.display().to_string(), java.node.address(), large.to_string()];
    let text = java.run(words.to_vec()).await?;
    for line in text.lines() {
        let Some((what, figure)) = line.split_once('|') else { continue };
        run.table.note(&format!("Java admin client: {}", what.trim()), figure.trim());
    }
    run.table.is("Java admin client: every answer as it must be", "", text.contains("all is well"));
    Ok(())
}

/// `--list` and `--describe` with a million partitions.
async fn everything(run: &mut Run, java: &Java<'_>) -> Result<(), Failure> {
    let (topics, partitions): (usize, i32) = if run.quick { (1000, 100) } else { (1000, 1000) };
    let mut c = asks::connect(&java.node.address(), Duration::from_secs(10)).await?;
    let names: Vec<String> = (0..topics).map(|number| format!("many-{number:04}")).collect();
    for names in names.chunks(100) {
        asks::create(&mut c, names, partitions).await?;
    }
    let (text, took) = timed(java.run(vec![TOPIC_COMMAND.to_owned(), "--list".to_owned()])).await?;
    run.table.is("kafka-topics --list", seconds(took), text.lines().count() >= topics);
    java.node.take_peaks();
    let (text, took) = timed(java.run(vec![TOPIC_COMMAND.to_owned(), "--describe".to_owned()])).await?;
    let lines = text.lines().filter(|line| line.contains("\tPartition: ")).count();
    let words = format!("{} lines in {}", thousands(lines as u64), seconds(took));
    run.table.is("kafka-topics --describe of everything", words, lines == topics * partitions as usize);
    let peaks = java.node.take_peaks();
    run.table.note(
        "the node's resident memory meanwhile, highest",
        format!("{} MB", thousands(peaks.resident_mib)),
    );
    Ok(())
}

#[derive(Debug)]
struct Java<'a> {
    classpath: &'a str,
    node: &'a Node,
}

impl Java<'_> {
    /// Runs a class or a source file; what it printed.
    async fn run(&self, words: Vec<String>) -> Result<String, Failure> {
        let mut command = std::process::Command::new("java");
        command.args(["-Xmx3g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", self.classpath]);
        command.args(&words);
        if words.first().is_some_and(|word| word == TOPIC_COMMAND) {
            command.args(["--bootstrap-server", &self.node.address()]);
        }
        let done = command.stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            let said: String = said.chars().take(600).collect();
            return Err(format!(
                "{}: {} {said}",
                words.join(" "),
                text.chars().take(300).collect::<String>()
            )
            .into());
        }
        Ok(text)
    }
}
