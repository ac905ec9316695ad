//! A producer that is not ours: librdkafka, idempotent, with several batches in flight, in a process of its own.
//!
//! It takes the address, the topic and the number of partitions, and writes to standard output `sent P N` before and
//! `acked P N` after record N of partition P, `failed …` when it gives up, until its standard input ends.

use crate::fleet::{self, OUTSIDE};
use crate::ledger::Ledger;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

/// What stands in its values.
pub const PRODUCER: u32 = 9;

#[derive(Debug)]
pub struct Outside {
    child: Child,
    reader: JoinHandle<()>,
}

pub fn start(command: &[String], address: &str, ledger: &Arc<Ledger>) -> Result<Outside, String> {
    let (program, words) = command.split_first().ok_or("--librdkafka wants a command")?;
    let child = Command::new(program)
        .args(words)
        .args([address, OUTSIDE, &fleet::partitions(OUTSIDE).to_string(), &PRODUCER.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| format!("the librdkafka producer does not start: {error}"))?;
    let out = child.stdout.take().ok_or("the librdkafka producer has no standard output")?;
    let ledger = ledger.clone();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            note(&line, &ledger);
        }
    });
    Ok(Outside { child, reader })
}

/// `sent P COUNT` and `acked P COUNT`: so many more.
fn note(line: &str, ledger: &Ledger) {
    let mut words = line.split(' ');
    let (verb, partition, count) = (words.next(), words.next(), words.next());
    let numbers = partition.and_then(|text| text.parse().ok()).zip(count.and_then(|text| text.parse().ok()));
    match (verb, numbers) {
        (Some("sent"), Some((partition, count))) => {
            ledger.sent((OUTSIDE, partition, PRODUCER), count);
        }
        (Some("acked"), Some((partition, count))) => ledger.acked((OUTSIDE, partition, PRODUCER), count),
        _ => ledger.problem(format!("librdkafka: {line}")),
    }
}

impl Outside {
    /// Lets it send what it holds and end.
    pub fn finish(mut self) -> Result<(), String> {
        drop(self.child.stdin.take());
        let status = self.child.wait().map_err(|error| error.to_string())?;
        self.reader.join().map_err(|_| "reading from librdkafka panicked".to_owned())?;
        if status.success() { Ok(()) } else { Err(format!("the librdkafka producer ended with {status}")) }
    }
}
