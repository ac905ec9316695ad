//! What the log says of unclean elections: which partitions, who leads them now. At INFO, and one line a second at most.
//!
//! Not at WARN: after all replicas of a partition were gone, whoever led it last and comes back first is elected so, as a rule without
//! any loss (KIP-966). The first is said at once; what follows within a second waits, and is said in one line with its number when
//! the second is over. Without a clock of its own. Bounded: [`NAMED_MAX`] names are kept, the rest is counted.
//!
//! Before: publisher.rs, which finds them in each step from image to image. Asked for by quorum_worker.rs, at each of its turns.

use barnabas_base::{BrokerId, TopicPartition};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines are so far apart.
pub const APART: Duration = Duration::from_secs(1);
/// Partitions that a line names.
const NAMED_MAX: usize = 10;

/// One partition's leader that was neither in sync nor eligible.
#[derive(Debug)]
pub struct Elected {
    pub partition: TopicPartition,
    pub leader: BrokerId,
    pub led_last: bool,
}

/// Those that were not said yet. One lock, held for a few names.
#[derive(Debug, Default)]
pub struct UncleanElections(Mutex<Unsaid>);

#[derive(Debug, Default)]
struct Unsaid {
    count: u64,
    named: Vec<Elected>,
    said: Option<Instant>,
}

impl UncleanElections {
    pub fn happened(&self, elected: Elected) {
        let mut unsaid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        unsaid.count += 1;
        if unsaid.named.len() < NAMED_MAX {
            unsaid.named.push(elected);
        }
    }

    /// Whether there is something to be said, now or later.
    pub fn are_unsaid(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count > 0
    }

    /// The line that is due, if one is.
    pub fn due(&self, now: Instant) -> Option<String> {
        let mut unsaid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_early = unsaid.said.is_some_and(|said| now.saturating_duration_since(said) < APART);
        if unsaid.count == 0 || is_early {
            return None;
        }
        let Unsaid { count, named, .. } = std::mem::take(&mut *unsaid);
        unsaid.said = Some(now);
        Some(words(count, &named))
    }
}

fn words(count: u64, named: &[Elected]) -> String {
    let name = |of: &Elected| {
        let who = if of.led_last { ", who led it last" } else { "" };
        format!("{} (now led by {}{who})", of.partition, of.leader)
    };
    let names: Vec<String> = named.iter().map(name).collect();
    let more = count - named.len() as u64;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "unclean election of {}{more}: this leader was neither in sync nor eligible, and what others had acknowledged and it has not is lost",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, Text};

    fn elected(partition: i32, leader: i32, led_last: bool) -> Elected {
        let partition = TopicPartition::new(Text::from("t"), PartitionIndex(partition));
        Elected { partition, leader: BrokerId(leader), led_last }
    }

    #[test]
    fn the_first_is_said_at_once_and_what_follows_in_one_line_a_second() {
        let (elections, start) = (UncleanElections::default(), Instant::now());
        let due = |at_ms: u64| elections.due(start + Duration::from_millis(at_ms));
        assert_eq!(due(0), None);
        elections.happened(elected(0, 2, false));
        assert!(elections.are_unsaid());
        let end = "this leader was neither in sync nor eligible, and what others had acknowledged and it has not is lost";
        assert_eq!(due(10), Some(format!("unclean election of t-0 (now led by 2): {end}")));
        assert!(!elections.are_unsaid());
        (1..=1_000).for_each(|partition| elections.happened(elected(partition, 3, partition == 1)));
        assert_eq!(due(1_009), None, "not yet");
        let said = due(1_010).expect("a second is over");
        assert!(
            said.starts_with("unclean election of t-1 (now led by 3, who led it last), t-2 (now led by 3),"),
            "{said}"
        );
        assert!(said.ends_with(&format!("t-10 (now led by 3) and 990 more: {end}")), "{said}");
        assert_eq!(due(9_000), None, "all is said");
    }
}
