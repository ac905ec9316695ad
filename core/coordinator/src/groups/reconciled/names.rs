//! Topics that members of a group subscribe to by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{Set, Text};

/// Subscribed names with how many members name each.
#[derive(Debug, Default)]
pub(crate) struct Names {
    counts: BTreeMap<Text, usize>,
    /// Members that subscribe to the same share one list.
    lists: Set<Arc<Vec<Text>>>,
}

impl Names {
    pub fn counts(&self) -> &BTreeMap<Text, usize> {
        &self.counts
    }

    /// A member that subscribed to `old` subscribes to `new`; `None`: it is not there.
    pub fn change(&mut self, old: Option<&Arc<Vec<Text>>>, new: Option<&Arc<Vec<Text>>>) {
        if let (Some(old), Some(new)) = (old, new)
            && Arc::ptr_eq(old, new)
        {
            return;
        }
        old.into_iter().flat_map(|names| names.iter()).for_each(|name| tally(&mut self.counts, name, false));
        new.into_iter().flat_map(|names| names.iter()).for_each(|name| tally(&mut self.counts, name, true));
    }

    /// A list that another member has already, or this one. Ten thousand members with a thousand names each would
    /// otherwise hold ten million names.
    pub fn shared(&mut self, names: Arc<Vec<Text>>) -> Arc<Vec<Text>> {
        if let Some(known) = self.lists.get(&names) {
            return Arc::clone(known);
        }
        if self.lists.len().is_power_of_two() {
            self.lists.retain(|list| Arc::strong_count(list) > 1);
        }
        self.lists.insert(Arc::clone(&names));
        names
    }

    #[cfg(test)]
    pub fn plant(&mut self, name: &str) {
        self.counts.insert(name.into(), 1);
    }
}

/// Replaces a member's names, sorted and each once, unless they are the same.
pub(crate) fn set_names(held: &mut Arc<Vec<Text>>, names: impl Iterator<Item = Text>) {
    let mut names: Vec<Text> = names.collect();
    names.sort();
    names.dedup();
    if **held != names {
        *held = Arc::new(names);
    }
}

pub(crate) fn tally(counts: &mut BTreeMap<Text, usize>, what: &Text, here: bool) {
    if here {
        *counts.entry(what.clone()).or_default() += 1;
    } else if let Some(count) = counts.get_mut(what) {
        *count -= 1;
        if *count == 0 {
            counts.remove(what);
        }
    }
}
