//! Decides where a partition is stored, or may be created, from what was found in the log directories and
//! what the metadata log says.
//!
//! An offline directory may hold records that exist nowhere else, so a partition is created only where that cannot lose
//! records:
//!
//! | found in an online directory | the metadata log says | then |
//! |---|---|---|
//! | yes | this directory, another online one, or none | open it there; report the directory if it differs |
//! | yes | an offline directory of this node | report the directory first, and wait for the metadata log |
//! | a deleted topic's, of the same name | anything | wait until that one is closed, then quarantine it |
//! | an unknown topic's, no other replica in sync, records in the checkpoints | anything | offline |
//! | an unknown topic's, otherwise | anything | quarantine |
//! | in two | one of the two | open it there; quarantine the other copy ([`keep_of_two`]) |
//! | in two | neither | offline: which of the two has the newer records is unknown |
//! | no, but its checkpoints name it | anything | offline: its files are missing |
//! | no | an online directory | create it there: nothing was ever written |
//! | no | another directory than an empty partition was moved to | wait for the metadata log |
//! | no | an offline directory of this node | offline: it is stored there |
//! | no | an unknown directory | offline until the metadata log names another |
//! | no | none (UNASSIGNED, MIGRATING); created while this process ran | create it where it was placed |
//! | no | none, and a directory is offline | offline: it may be stored there |
//! | no | none, and all directories are online | place it ([`choose`](super::choose)) and create it |
//!
//! Always true: no record is acknowledged in a second directory while the metadata log names a first one that may come
//! back, so of two copies the one that the metadata log names is complete.
//!
//! Neighbours: shell/broker/src/upkeep/placement/locate.rs, which reads the directories and acts on the decision.
//!
//! Source: KIP-858; Kafka `LogManager.getOrCreateLog`, which is stricter: while any directory is offline it
//! refuses every partition that is not marked new, and the start fails if a partition exists twice.

use barnabas_base::{DirectoryId, Offset, TopicId};

/// A topic id that differs in no more bits is not another topic's.
const DAMAGED_BITS_MAX: u32 = 16;

/// A directory of this node, by its place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Here {
    pub directory: usize,
    pub is_online: bool,
    /// Online, and it holds partitions.
    pub is_usable: bool,
}

/// What the metadata log says of where the partition lies on this broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assigned {
    /// UNASSIGNED or MIGRATING, or the partition is not known.
    Nowhere,
    Here(Here),
    /// A directory that is none of this node's.
    Elsewhere,
}

/// What is known of a partition that is to be opened.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    /// The online directory that holds it.
    pub found: Option<usize>,
    /// No directory holds it, but the checkpoints of one say that it had records there.
    pub has_vanished: bool,
    pub assigned: Assigned,
    /// Where this process has placed it, unless the metadata log is known to have said so.
    pub placed: Option<Here>,
    /// A directory that holds partitions is offline.
    pub some_offline: bool,
}

/// Where the partition lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Located {
    Found(usize),
    /// It begins there.
    New(usize),
    /// It begins where it is placed now.
    Unplaced,
    /// The metadata log gets a record that it is there. Until then the partition is offline.
    FoundElsewhere(usize),
    /// It lies, or may lie, in a directory that is offline, or waits for the metadata log.
    Offline,
    /// As [`Located::Offline`], because the metadata log names no directory and one is offline.
    MayBeOffline,
    /// Its files are gone. It must not begin without them.
    Vanished,
}

/// Decides where a partition lies: the table above.
pub fn locate(sight: &Sight) -> Located {
    let assigned = match sight.assigned {
        Assigned::Here(here) => Some(here),
        Assigned::Nowhere | Assigned::Elsewhere => None,
    };
    if let Some(found) = sight.found {
        return match assigned.is_some_and(|here| !here.is_online) {
            true => Located::FoundElsewhere(found),
            false => Located::Found(found),
        };
    }
    if sight.has_vanished {
        return Located::Vanished;
    }
    let begins_at = |here: Here| if here.is_usable { Located::New(here.directory) } else { Located::Offline };
    match (sight.assigned, sight.placed) {
        (Assigned::Elsewhere, _) => Located::Offline,
        (Assigned::Here(here), Some(placed)) if placed.directory != here.directory => Located::Offline,
        (Assigned::Here(here), _) => begins_at(here),
        (Assigned::Nowhere, Some(placed)) => begins_at(placed),
        (Assigned::Nowhere, None) if sight.some_offline => Located::MayBeOffline,
        (Assigned::Nowhere, None) => Located::Unplaced,
    }
}

/// Which of two copies is the partition's: 0 or 1. `None`: unknown, as the metadata log names neither.
pub fn keep_of_two(copies: [DirectoryId; 2], assigned: Option<DirectoryId>) -> Option<usize> {
    copies.iter().position(|copy| assigned == Some(*copy))
}

/// What the topic id in a partition's directory says of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    This,
    /// The id differs in a few bits. Ids are random, two topics' differ in about 61: this one is damaged.
    ThisDamaged,
    /// A topic that exists under another name: files were exchanged.
    Another,
    /// A topic that does not exist.
    Gone,
}

impl Owner {
    /// `exists`: a topic with the id that was found is in the image.
    pub fn of(found: TopicId, topic: TopicId, exists: impl FnOnce() -> bool) -> Self {
        let bits: u32 = found.0.iter().zip(topic.0).map(|(one, other)| (one ^ other).count_ones()).sum();
        match bits {
            0 => Self::This,
            1..=DAMAGED_BITS_MAX => Self::ThisDamaged,
            _ if exists() => Self::Another,
            _ => Self::Gone,
        }
    }
}

/// What becomes of a directory that belongs to a topic that does not exist, where the partition should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predecessor {
    /// Its topic was deleted: so is it.
    Deleted,
    /// It is put aside as a stray, and the partition begins.
    Stray,
    /// The partition had records here, which no other replica has: it must not begin without them.
    Foreign,
}

/// `is_only_copy`: no other broker is in sync. `reached`: how far the checkpoints say that the partition's records
/// went.
pub fn predecessor(is_deleted: bool, is_only_copy: bool, reached: Offset) -> Predecessor {
    match is_deleted {
        true => Predecessor::Deleted,
        false if is_only_copy && reached > Offset::ZERO => Predecessor::Foreign,
        false => Predecessor::Stray,
    }
}

#[cfg(test)]
mod tests {
    use barnabas_base::Uuid;

    use super::*;

    const NOTHING: Sight = Sight {
        found: None,
        has_vanished: false,
        assigned: Assigned::Nowhere,
        placed: None,
        some_offline: false,
    };

    fn online(directory: usize) -> Here {
        Here { directory, is_online: true, is_usable: true }
    }

    fn offline(directory: usize) -> Here {
        Here { directory, is_online: false, is_usable: false }
    }

    #[test]
    fn found_partition_lies_there_unless_an_offline_directory_is_named() {
        let found = Sight { found: Some(1), some_offline: true, ..NOTHING };
        for assigned in
            [Assigned::Nowhere, Assigned::Elsewhere, Assigned::Here(online(1)), Assigned::Here(online(0))]
        {
            assert_eq!(locate(&Sight { assigned, ..found }), Located::Found(1), "{assigned:?}");
        }
        let named = Sight { assigned: Assigned::Here(offline(0)), ..found };
        assert_eq!(locate(&named), Located::FoundElsewhere(1));
    }

    #[test]
    fn partition_whose_files_are_gone_does_not_begin() {
        for assigned in [Assigned::Nowhere, Assigned::Elsewhere, Assigned::Here(online(0))] {
            let sight = Sight { has_vanished: true, assigned, placed: Some(online(0)), ..NOTHING };
            assert_eq!(locate(&sight), Located::Vanished, "{assigned:?}");
        }
    }

    #[test]
    fn partition_that_was_never_written_begins_where_it_is_assigned() {
        let assigned = |here| Sight { assigned: Assigned::Here(here), some_offline: true, ..NOTHING };
        assert_eq!(locate(&assigned(online(2))), Located::New(2));
        assert_eq!(locate(&assigned(offline(2))), Located::Offline);
        let holds_none = Here { is_usable: false, ..online(2) };
        assert_eq!(locate(&assigned(holds_none)), Located::Offline);
        let elsewhere = Sight { assigned: Assigned::Elsewhere, placed: Some(online(1)), ..NOTHING };
        assert_eq!(locate(&elsewhere), Located::Offline);
    }

    #[test]
    fn moved_empty_partition_waits_for_the_metadata_log() {
        let moved = Sight { assigned: Assigned::Here(online(0)), placed: Some(online(1)), ..NOTHING };
        assert_eq!(locate(&moved), Located::Offline);
        assert_eq!(locate(&Sight { placed: Some(online(0)), ..moved }), Located::New(0));
    }

    #[test]
    fn unassigned_partition_begins_only_with_all_directories_online() {
        let placed = Sight { placed: Some(online(1)), some_offline: true, ..NOTHING };
        assert_eq!(locate(&placed), Located::New(1), "this process has placed it");
        assert_eq!(locate(&Sight { placed: Some(offline(1)), ..placed }), Located::Offline);
        assert_eq!(locate(&Sight { some_offline: true, ..NOTHING }), Located::MayBeOffline);
        assert_eq!(locate(&NOTHING), Located::Unplaced);
    }

    #[test]
    fn copy_that_the_metadata_log_names_is_kept() {
        let [one, two, three] = [1, 2, 3].map(|byte| Uuid([byte; 16]));
        assert_eq!(keep_of_two([one, two], Some(two)), Some(1));
        assert_eq!(keep_of_two([one, two], Some(one)), Some(0));
        assert_eq!(keep_of_two([one, two], Some(three)), None);
        assert_eq!(keep_of_two([one, two], None), None);
    }

    #[test]
    fn topic_id_that_differs_in_few_bits_is_damaged() {
        let topic = Uuid([0xAA; 16]);
        let mut damaged = topic;
        damaged.0[0] ^= 0xFF;
        damaged.0[1] ^= 0xFF;
        assert_eq!(Owner::of(topic, topic, || true), Owner::This);
        assert_eq!(Owner::of(damaged, topic, || true), Owner::ThisDamaged);
        damaged.0[2] ^= 1;
        assert_eq!(Owner::of(damaged, topic, || true), Owner::Another);
        assert_eq!(Owner::of(damaged, topic, || false), Owner::Gone);
    }

    #[test]
    fn only_copy_with_records_is_not_replaced() {
        assert_eq!(predecessor(true, true, Offset(5)), Predecessor::Deleted);
        assert_eq!(predecessor(false, true, Offset(5)), Predecessor::Foreign);
        assert_eq!(predecessor(false, false, Offset(5)), Predecessor::Stray);
        assert_eq!(predecessor(false, true, Offset(0)), Predecessor::Stray);
    }
}
