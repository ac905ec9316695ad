//! What groups make a node hold in memory: by member, by group, and over all shards of the node.
//!
//! A group's weight is an estimate of the bytes behind its members, their subscriptions and assignments, and its
//! offsets. What a request brings is added as it is taken; the group is weighed again once a quarter has been added or
//! enough members have gone, and before anything is refused. So a weight is at most a quarter too high and costs what a
//! look at a quarter of the group costs.
//!
//! Nothing is refused that does not make a group heavier: members go on with what they said before, and offsets are
//! overwritten. Groups that are loaded from the log are taken as they are.
//!
//! Always true: [`Room::held`] is the sum of the weights.

use barnabas_base::{Map, Text};

use crate::framework::{Room, weight};
use crate::groups::Group;
use crate::offsets::Offsets;

/// What a group takes beside its members and offsets, a member beside what it said, and an offset: structures, keys in
/// maps.
const GROUP: usize = 512;
const MEMBER: usize = 512;
const OFFSET: usize = 192;

/// What may be added to a group, however light it is, before it is weighed again; and how many members may go.
const ADDED_MIN: usize = 256;
const GONE_MIN: usize = 16;

#[derive(Debug, Default)]
struct Weight {
    /// When it was weighed.
    exact: usize,
    members: usize,
    /// Since then.
    added: usize,
    gone: usize,
}

impl Weight {
    fn bytes(&self) -> usize {
        self.exact + self.added
    }

    fn is_stale(&self) -> bool {
        self.added > ADDED_MIN + self.exact / 4 || self.gone > GONE_MIN + self.members / 4
    }
}

/// The weights of one shard's groups.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    by_group: Map<Text, Weight>,
    pub room: Room,
}

impl Weights {
    pub fn of(&self, group: &str) -> usize {
        self.by_group.get(group).map_or(0, Weight::bytes)
    }

    /// Whether it was weighed after the last that was added or went.
    pub fn is_exact(&self, group: &str) -> bool {
        self.by_group.get(group).is_none_or(|weight| weight.added == 0 && weight.gone == 0)
    }

    /// A request brought so many bytes, or one came that takes members away. Gives whether the group is to be weighed
    /// again; one that has no weight always is, as the request may have been refused and left nothing.
    pub fn note(&mut self, group: &str, bytes: usize) -> bool {
        let Some(weight) = self.by_group.get_mut(group) else { return true };
        weight.added += bytes;
        weight.gone += usize::from(bytes == 0);
        self.room.add(bytes);
        weight.is_stale()
    }

    /// What a group weighs, and how many members it has; `None`: it is gone.
    pub fn set(&mut self, group: &str, weighed: Option<(usize, usize)>) {
        let before = self.of(group);
        match (weighed, self.by_group.get_mut(group)) {
            (None, _) => {
                self.by_group.remove(group);
            }
            (Some((exact, members)), Some(weight)) => {
                *weight = Weight { exact, members, ..Weight::default() }
            }
            (Some((exact, members)), None) => {
                let weight = Weight { exact, members, ..Weight::default() };
                self.by_group.insert(Text::from(group), weight);
            }
        }
        self.room.change(before, self.of(group));
    }

    /// Groups of which something is known.
    pub fn groups(&self) -> Vec<Text> {
        self.by_group.keys().cloned().collect()
    }
}

/// What a group weighs with its offsets, and how many members it has. `None`: there is nothing of it.
pub(super) fn weigh(id: &str, group: Option<&Group>, offsets: &Offsets) -> Option<(usize, usize)> {
    let offsets = offsets_of(id, offsets);
    let (members, count) = match group {
        None if offsets == 0 => return None,
        None => (0, 0),
        Some(group) => group.weight(),
    };
    // The id is held with the group and with its weight.
    Some((GROUP + 2 * id.len() + members + offsets + MEMBER * count, count))
}

fn offsets_of(id: &str, offsets: &Offsets) -> usize {
    let topics = offsets.of_group(id).into_iter().flatten();
    let committed: usize = topics
        .map(|(name, partitions)| {
            let notes = partitions
                .values()
                .filter_map(|slot| slot.latest()?.metadata.as_ref())
                .map(|note| note.len());
            weight::texts([name]) + OFFSET * partitions.len() + notes.sum::<usize>()
        })
        .sum();
    committed + offsets.bytes_in_transactions(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_bytes_are_the_sum_of_the_weights() {
        let mut weights = Weights::default();
        weights.set("g", Some((1_000, 1)));
        weights.set("h", Some((500, 1)));
        assert!(!weights.note("g", 100));
        assert!(weights.note("g", 1_000), "more than a quarter came");
        assert_eq!((weights.of("g"), weights.room.held()), (2_100, 2_600));
        weights.set("g", Some((1_400, 1)));
        assert_eq!(weights.room.held(), 1_900);
        weights.set("h", None);
        assert_eq!(weights.room.held(), 1_400);
    }

    #[test]
    fn group_that_is_not_there_takes_nothing() {
        let mut weights = Weights::default();
        for number in 0..100 {
            let group = number.to_string();
            assert!(weights.note(&group, 1), "it may be there only now");
            weights.set(&group, None);
        }
        assert_eq!((weights.groups(), weights.room.held()), (Vec::new(), 0));
    }

    #[test]
    fn group_is_weighed_again_when_members_have_gone() {
        let mut weights = Weights::default();
        weights.set("g", Some((1_000, 100)));
        let looks = (0..100).filter(|_| weights.note("g", 0)).count();
        assert_eq!(looks, 100 - (GONE_MIN + 25));
    }
}
