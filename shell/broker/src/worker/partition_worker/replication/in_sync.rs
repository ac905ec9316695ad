//! Says in the log who is in sync now: a line for each partition where a turn has few, one line for all of them where
//! it has many, as when a broker goes that followed thousands.

use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::BrokerId;
use std::fmt::Write;

/// So many partitions have a line of their own, or are named in the line of all.
const NAMED: usize = 4;

/// What this turn has heard from the controller.
#[derive(Debug, Default)]
pub struct InSync {
    named: Vec<(String, Vec<i32>)>,
    count: usize,
}

impl InSync {
    pub fn changed(&mut self, partition: &impl ToString, in_sync: &[BrokerId]) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push((partition.to_string(), in_sync.iter().map(|broker| broker.get()).collect()));
        }
    }

    /// The lines, and forgets.
    fn lines(&mut self) -> Vec<String> {
        let Self { named, count } = std::mem::take(self);
        if count <= NAMED {
            return named
                .into_iter()
                .map(|(name, of)| format!("in-sync replicas of {name}: {of:?}"))
                .collect();
        }
        let mut line = format!("in-sync replicas of {count} partitions:");
        for (name, of) in &named {
            let _ = write!(line, " {name} {of:?},");
        }
        let _ = write!(line, " and of {} more", count - named.len());
        vec![line]
    }
}

impl PartitionWorker {
    /// To be called at the end of a turn.
    pub fn tell_who_is_in_sync(&mut self) {
        if self.leading.in_sync.count > 0 {
            self.leading.in_sync.lines().iter().for_each(|line| tracing::info!("{line}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(partitions: usize) -> Vec<String> {
        let mut in_sync = InSync::default();
        (0..partitions).for_each(|at| in_sync.changed(&format!("t-{at}"), &[BrokerId(1), BrokerId(3)]));
        let lines = in_sync.lines();
        assert!(in_sync.lines().is_empty());
        lines
    }

    #[test]
    fn few_have_a_line_each_and_many_one_together() {
        assert_eq!(lines(2), ["in-sync replicas of t-0: [1, 3]", "in-sync replicas of t-1: [1, 3]"]);
        assert_eq!(lines(NAMED).len(), NAMED);
        let together = "in-sync replicas of 1000 partitions: t-0 [1, 3], t-1 [1, 3], t-2 [1, 3], t-3 [1, 3], and of 996 more";
        assert_eq!(lines(1000), [together]);
    }
}
