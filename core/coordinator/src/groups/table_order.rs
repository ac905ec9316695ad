//! The order in which Kafka shows the entries of its hash tables, which clients and Apache's own tests see: by slot.
//!
//! Entries of one slot Kafka shows in the order in which they came, newest first. Here it is the one with the last name
//! first.
//!
//! # Source
//! Kafka 4.3 `BaseHashTable.findSlot`, `SnapshottableHashTable.HistoricalIterator`.

use barnabas_base::java_hash;

/// Puts entries of a table with `entries` of them, some of which may be left out, in Kafka's order.
pub(crate) fn arrange<T>(shown: &mut [T], entries: usize, name: impl Fn(&T) -> &str) {
    let mut slots: u64 = 2;
    while entries as u64 * 3 > slots * 4 {
        slots *= 2;
    }
    let shift = 64 - slots.trailing_zeros();
    let slot = |each: &T| {
        i64::from(java_hash(name(each))).wrapping_mul(-7_046_029_254_386_353_131).cast_unsigned() >> shift
    };
    // Names may be long: each is hashed once.
    let mut order: Vec<(u64, usize)> = shown.iter().map(&slot).zip(0..).collect();
    order.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| name(&shown[b.1]).cmp(name(&shown[a.1]))));
    let mut places = vec![0; shown.len()];
    order.iter().zip(0..).for_each(|(&(_, from), to)| places[from] = to);
    for at in 0..shown.len() {
        while places[at] != at {
            let to = places[at];
            shown.swap(at, to);
            places.swap(at, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // As Apache's node listed them: `ListGroupsRequestTest`, `ConsumerGroupDescribeRequestTest` of 4.3.1.
    #[test]
    fn entries_of_a_table_come_in_kafkas_order() {
        let mut shown = vec!["grp-1", "grp-4"];
        arrange(&mut shown, 6, |name| name);
        assert_eq!(shown, ["grp-4", "grp-1"]);
        let mut shown = vec!["member-1", "member-2"];
        arrange(&mut shown, 2, |name| name);
        assert_eq!(shown, ["member-2", "member-1"]);
    }

    #[test]
    fn every_entry_stays_and_all_orders_end_the_same() {
        let mut shown: Vec<String> = (0..200).map(|number| format!("group-{number}")).collect();
        let mut backwards: Vec<String> = shown.iter().rev().cloned().collect();
        arrange(&mut shown, 200, |name| name);
        arrange(&mut backwards, 200, |name| name);
        assert_eq!(shown, backwards);
        let names: std::collections::BTreeSet<&String> = shown.iter().collect();
        assert_eq!(names.len(), 200);
    }
}
