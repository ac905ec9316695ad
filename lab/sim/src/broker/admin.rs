//! What an operator asks of a broker.

use barnabas_partition::ReplicaKey;

use super::{Around, Broker, Event};

impl Broker {
    /// DeleteRecords of one partition: up to the high watermark, or less than that by some `parts` of eight.
    pub fn delete_records(&mut self, key: ReplicaKey, parts: i64, around: &mut Around<'_>) {
        let Some(process) = &mut self.process else { return };
        let Some(replica) = process.host.replica(key) else { return };
        if replica.truncation.is_some() || replica.partition.is_failed() {
            return;
        }
        let (start, high) = (replica.partition.log_start(), replica.partition.high_watermark());
        let upto = high.plus(-(high.get() - start.get()) * parts / 8);
        if let Some(start) = process.host.delete_records(key, upto, around.now) {
            around.events.push(Event::Deleted { key, start });
        }
        process.finish_turn(around);
    }

    /// AlterReplicaLogDirs of one of its replicas.
    pub fn move_to_directory(&mut self, which: u64, to: usize, around: &mut Around<'_>) {
        let Some(process) = &mut self.process else { return };
        let keys = process.keys();
        if keys.is_empty() {
            return;
        }
        let key = keys[(which % keys.len() as u64) as usize];
        process.host.begin_move(key, to, &mut around.time());
        process.finish_turn(around);
    }
}
