//! Which log directory a new partition goes to: the one whose device would take longest to fill up.
//!
//! Kafka counts partitions (`LogManager.nextLogDirs`): a directory full of idle ones gets nothing, and one with three
//! that write all day gets the next three too. Here a device is judged by `free bytes ÷ expected load`, its time to
//! fill:
//!
//! - free bytes: of the file system, as it says itself;
//! - expected load, in bytes per second: what was written there lately, and for each partition placed there since that
//!   was measured (the new one included) as much as an average partition of this node writes; and one byte for each
//!   partition there is, so that counting decides where nothing is written.
//!
//! Devices that are equally free are thus kept equally busy, and a device that is nearly full gets little. Directories
//! on the same file system are one device: they share its room and add up their load, and within it the one with the
//! fewest partitions is taken. What is equal goes to the one that stands first in `log.dirs`. Nothing is drawn: the
//! same figures give the same answer.
//!
//! Not here: which directories may be chosen at all (online, not cordoned), and the figures, which are the shell's to
//! gather.

pub mod locate;

/// A directory that may be chosen, with the figures of its own partitions and of the file system that it lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Directories with the same number share a device.
    pub device: u64,
    /// Of the device.
    pub free_bytes: u64,
    /// Partitions that lie here, the idle ones too.
    pub partitions: u64,
    /// Bytes per second written here lately.
    pub written_per_s: u64,
    /// Partitions placed here so lately that what they write is not in `written_per_s`.
    pub unmeasured: u64,
}

/// The place in `candidates` of the directory that a new partition goes to; `None` where there is none.
pub fn choose(candidates: &[Candidate]) -> Option<usize> {
    let average = average_load(candidates);
    // The longest time to fill first; a device stands where its first directory stands.
    let mut best: Option<(u64, u128, u128)> = None;
    for (at, candidate) in candidates.iter().enumerate() {
        let device = candidate.device;
        if candidates[..at].iter().any(|earlier| earlier.device == device) {
            continue;
        }
        let load = expected_load(candidates, device, average);
        let free = u128::from(candidate.free_bytes);
        // free / load > best free / best load, without dividing.
        let is_better = best.is_none_or(|(_, best_free, best_load)| {
            free.saturating_mul(best_load) > best_free.saturating_mul(load)
        });
        if is_better {
            best = Some((device, free, load));
        }
    }
    let (device, ..) = best?;
    let of_device = candidates.iter().enumerate().filter(|(_, candidate)| candidate.device == device);
    of_device.min_by_key(|(at, candidate)| (candidate.partitions, *at)).map(|(at, _)| at)
}

/// What a partition of this node writes on average, in bytes per second.
fn average_load(candidates: &[Candidate]) -> u128 {
    let written: u128 = candidates.iter().map(|candidate| u128::from(candidate.written_per_s)).sum();
    let measured: u128 =
        candidates.iter().map(|each| u128::from(each.partitions.saturating_sub(each.unmeasured))).sum();
    written / measured.max(1)
}

/// What the device will have to write with one more partition; never 0.
fn expected_load(candidates: &[Candidate], device: u64, average: u128) -> u128 {
    let mut load = average + 1;
    for candidate in candidates.iter().filter(|candidate| candidate.device == device) {
        let unmeasured = u128::from(candidate.unmeasured).saturating_mul(average);
        load = load
            .saturating_add(u128::from(candidate.written_per_s))
            .saturating_add(unmeasured)
            .saturating_add(u128::from(candidate.partitions));
    }
    load
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIB: u64 = 1 << 40;

    fn idle(device: u64, free_bytes: u64, partitions: u64) -> Candidate {
        Candidate { device, free_bytes, partitions, written_per_s: 0, unmeasured: 0 }
    }

    /// Places `count` partitions one after the other; returns how many each directory got.
    fn fill(mut candidates: Vec<Candidate>, count: usize) -> Vec<u64> {
        let before: Vec<u64> = candidates.iter().map(|each| each.partitions).collect();
        for _ in 0..count {
            let at = choose(&candidates).expect("a directory");
            candidates[at].partitions += 1;
            candidates[at].unmeasured += 1;
        }
        candidates.iter().zip(before).map(|(after, before)| after.partitions - before).collect()
    }

    #[test]
    fn nothing_to_choose_from() {
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn equal_directories_get_partitions_in_turn() {
        assert_eq!(fill(vec![idle(1, TIB, 0), idle(2, TIB, 0), idle(3, TIB, 0)], 9), [3, 3, 3]);
        assert_eq!(choose(&[idle(1, TIB, 0), idle(2, TIB, 0)]), Some(0), "the first in log.dirs");
    }

    #[test]
    fn an_empty_directory_catches_up_with_the_others() {
        assert_eq!(fill(vec![idle(1, TIB, 10), idle(2, TIB, 10), idle(3, TIB, 0)], 12), [1, 1, 10]);
    }

    #[test]
    fn more_room_gets_more_partitions() {
        let shares = fill(vec![idle(1, TIB, 0), idle(2, 3 * TIB, 0)], 400);
        assert_eq!(shares, [100, 300]);
    }

    #[test]
    fn a_full_device_gets_nothing_while_another_has_room() {
        assert_eq!(fill(vec![idle(1, 0, 0), idle(2, TIB, 50)], 20), [0, 20]);
        assert_eq!(
            fill(vec![idle(1, 0, 0), idle(2, 0, 0)], 2).iter().sum::<u64>(),
            2,
            "somewhere it must go"
        );
    }

    #[test]
    fn a_busy_device_gets_the_next_partitions_last() {
        // Ten partitions each; those of the first write 50 MB/s, those of the second nothing.
        let busy = Candidate { written_per_s: 50_000_000, ..idle(1, TIB, 10) };
        let quiet = idle(2, TIB, 10);
        let shares = fill(vec![busy, quiet], 30);
        assert!(shares[1] > shares[0], "{shares:?}");
        assert_eq!(fill(vec![busy, quiet], 19), [0, 19]);
    }

    #[test]
    fn directories_on_one_file_system_count_as_one_device() {
        // Two directories share the first disk: together they get what the second disk gets.
        let shares = fill(vec![idle(1, TIB, 0), idle(1, TIB, 0), idle(2, TIB, 0)], 40);
        assert_eq!(shares, [10, 10, 20]);
        // And all on one file system: counting, as in Kafka.
        assert_eq!(fill(vec![idle(1, TIB, 4), idle(1, TIB, 0), idle(1, TIB, 2)], 6), [0, 4, 2]);
    }

    #[test]
    fn the_largest_figures_do_not_overflow() {
        let huge = Candidate {
            device: 1,
            free_bytes: u64::MAX,
            partitions: u64::MAX,
            written_per_s: u64::MAX,
            unmeasured: u64::MAX,
        };
        assert!(choose(&[huge, Candidate { device: 2, ..huge }]).is_some());
    }
}
