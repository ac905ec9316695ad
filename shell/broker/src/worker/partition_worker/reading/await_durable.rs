//! Readers see what was acknowledged before they asked, with `acks=1` and `acks=0` too.
//!
//! Readers see only durable records. A producer that does not wait for an answer (`acks=0`) and then reads, or has
//! another client read, would find nothing before the journal's round is written. So a read (or a request for the
//! end offset) waits here until all records that were accepted before it are durable.
//!
//! Always true: a reader waits for one end, taken when it arrived, so that a steady producer cannot keep it waiting.

use crate::mailbox::{AskCommand, PartitionKey, Question, ReadCommand};
use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::Offset;

/// A command that waits, and how far each of its partitions must be durable.
#[derive(Debug)]
pub struct Patient {
    until: Vec<(PartitionKey, Offset)>,
    command: Postponed,
}

#[derive(Debug)]
enum Postponed {
    Read(ReadCommand),
    Ask(AskCommand),
}

impl PartitionWorker {
    pub fn read_when_durable(&mut self, command: ReadCommand) {
        // Followers are shown what is not durable here: it becomes so on all at the same time.
        let is_promised = command.follower.is_none();
        let until = self.promises(command.items.iter().map(|item| item.partition).filter(|_| is_promised));
        if until.is_empty() {
            self.read(command);
        } else {
            self.postpone(until, Postponed::Read(command));
        }
    }

    pub fn ask_when_durable(&mut self, command: AskCommand) {
        let about_ends = command.items.iter().filter(|item| matches!(item.question, Question::List { .. }));
        let until = self.promises(about_ends.map(|item| item.partition));
        if until.is_empty() {
            self.ask(command);
        } else {
            self.postpone(until, Postponed::Ask(command));
        }
    }

    /// Which of these partitions owe their readers something.
    fn promises(&self, keys: impl Iterator<Item = PartitionKey>) -> Vec<(PartitionKey, Offset)> {
        let owing = keys.filter_map(|key| {
            let replica = self.replicas.get(&key)?;
            replica.owed_to_readers().map(|end| (key, end))
        });
        owing.collect()
    }

    fn postpone(&mut self, until: Vec<(PartitionKey, Offset)>, command: Postponed) {
        self.patient.push(Patient { until, command });
    }

    /// Goes on with those whose partitions have kept their promises, failed, or gone.
    pub fn resume_readers(&mut self) {
        if self.patient.is_empty() {
            return;
        }
        let replicas = &self.replicas;
        let is_kept = |&(key, end): &(PartitionKey, Offset)| {
            replicas.get(&key).is_none_or(|replica| replica.has_kept(end))
        };
        let ready: Vec<Patient> =
            self.patient.extract_if(.., |patient| patient.until.iter().all(is_kept)).collect();
        for patient in ready {
            match patient.command {
                Postponed::Read(command) => self.read(command),
                Postponed::Ask(command) => self.ask(command),
            }
        }
    }
}
