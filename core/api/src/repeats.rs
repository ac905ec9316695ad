//! Entries that stand more than once in a request.
//!
//! Kafka reads many requests into maps and sets, where an entry that is named again has no effect of its own. [`once`]
//! and [`last_wins`] are those two cases. Other requests are answered entry by entry: [`Places`] asks about each of
//! them once and remembers where the outcome belongs.

use std::hash::Hash;

use barnabas_base::{Map, Set};

/// Leaves of equal entries the first.
pub(crate) fn once<T: Eq + Hash + Clone>(entries: &mut Vec<T>) {
    if entries.len() > 1 {
        let mut seen = Set::default();
        entries.retain(|entry| seen.insert(entry.clone()));
    }
}

/// Leaves of entries with the same key the last, in the place of the first (Java's `LinkedHashMap.put`).
pub(crate) fn last_wins<K: Eq + Hash, T>(entries: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    if entries.len() < 2 {
        return entries;
    }
    let mut places: Map<K, usize> = Map::default();
    let mut kept: Vec<T> = Vec::with_capacity(entries.len());
    for entry in entries {
        let place = *places.entry(key(&entry)).or_insert(kept.len());
        if place < kept.len() {
            kept[place] = entry;
        } else {
            kept.push(entry);
        }
    }
    kept
}

/// Where in an answer each of several outcomes belongs.
#[derive(Debug)]
pub(crate) struct Places<K, P> {
    numbers: Map<K, usize>,
    places: Vec<Vec<P>>,
}

impl<K, P> Default for Places<K, P> {
    fn default() -> Self {
        Self { numbers: Map::default(), places: Vec::new() }
    }
}

impl<K: Eq + Hash, P> Places<K, P> {
    /// Notes that the outcome for `key` belongs to `place`. Returns the number under which it is to be asked for, if
    /// that is new.
    pub fn note(&mut self, key: K, place: P) -> Option<usize> {
        let next = self.places.len();
        let number = *self.numbers.entry(key).or_insert(next);
        if number < next {
            self.places[number].push(place);
            return None;
        }
        self.places.push(vec![place]);
        Some(number)
    }

    /// Where the outcome with that number belongs.
    pub fn of(&self, number: usize) -> &[P] {
        &self.places[number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_entries_are_left_once() {
        let mut entries = vec![3, 1, 3, 3, 2, 1];
        once(&mut entries);
        assert_eq!(entries, [3, 1, 2]);
    }

    #[test]
    fn last_entry_of_a_key_stands_in_the_place_of_the_first() {
        let entries = vec![("a", 1), ("b", 2), ("a", 3), ("c", 4), ("a", 5)];
        assert_eq!(last_wins(entries, |entry| entry.0), [("a", 5), ("b", 2), ("c", 4)]);
    }

    #[test]
    fn one_key_is_asked_for_once_and_has_all_its_places() {
        let mut places = Places::default();
        assert_eq!([places.note("a", 0), places.note("b", 1), places.note("a", 2)], [Some(0), Some(1), None]);
        assert_eq!(places.of(0), [0, 2]);
        assert_eq!(places.of(1), [1]);
    }
}
