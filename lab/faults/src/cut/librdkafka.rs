//! An idempotent producer of librdkafka's, in a process of its own, that lives through every cut.
//!
//! It says what was acknowledged line by line: `a PARTITION OFFSET NUMBER`; `e TEXT` for an error that its application
//! would see. Asked to end it waits for what is under way and says `end`.

use super::{Acked, LIBRDKAFKA, LIBRDKAFKA_TOPIC};
use crate::kafka::Place;
use crate::records::Stamp;
use crate::{Trouble, trouble};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// Lines that may wait to be read here.
const LINES_MAX: usize = 1 << 20;

/// The running client.
#[derive(Debug)]
pub struct Librdkafka {
    child: Child,
    lines: Receiver<String>,
    pub errors: Vec<String>,
    ended: bool,
}

impl Librdkafka {
    /// `interpreter`: a Python that has confluent-kafka.
    pub fn start(interpreter: &Path, port: u16) -> Result<Self, Trouble> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("cut/librdkafka_writer.py");
        let mut child = Command::new(interpreter)
            .args(["-B", "-u"])
            .arg(script)
            .args([port.to_string(), LIBRDKAFKA_TOPIC.name.to_owned()])
            .args([LIBRDKAFKA_TOPIC.partitions.to_string(), LIBRDKAFKA.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().ok_or_else(|| Trouble("no output of librdkafka's".to_owned()))?;
        let (send, lines) = sync_channel(LINES_MAX);
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, lines, errors: Vec::new(), ended: false })
    }

    /// What was acknowledged since the last time.
    pub fn take(&mut self) -> Vec<Acked> {
        let mut acked = Vec::new();
        loop {
            match self.lines.try_recv() {
                Ok(line) => self.take_line(&line, &mut acked),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return acked,
            }
        }
    }

    fn take_line(&mut self, line: &str, acked: &mut Vec<Acked>) {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers: Vec<i64> = words[1..].iter().filter_map(|word| word.parse().ok()).collect();
        match (words[0], numbers.as_slice()) {
            ("a", &[partition, offset, number]) => acked.push(Acked {
                place: Place { topic: LIBRDKAFKA_TOPIC.name.to_owned(), partition: partition as i32 },
                base: offset,
                first: Stamp { writer: LIBRDKAFKA, number: number as u64 },
                count: 1,
                acks: -1,
            }),
            ("end", _) => self.ended = true,
            _ => self.errors.push(format!("librdkafka: {line}")),
        }
    }

    /// Lets it send what it has, and waits for its end. Returns the last acknowledgements.
    pub fn finish(&mut self, within: Duration) -> Result<Vec<Acked>, Trouble> {
        drop(self.child.stdin.take());
        let begun = Instant::now();
        let mut acked = Vec::new();
        while !self.ended {
            acked.extend(self.take());
            if begun.elapsed() > within {
                return trouble("librdkafka did not get its records acknowledged");
            }
            if self.child.try_wait()?.is_some() && !self.ended {
                std::thread::sleep(Duration::from_millis(100));
                acked.extend(self.take());
                return if self.ended { Ok(acked) } else { trouble("librdkafka's process ended early") };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        acked.extend(self.take());
        Ok(acked)
    }
}

impl Drop for Librdkafka {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            let _ = self.child.wait();
        }
    }
}
