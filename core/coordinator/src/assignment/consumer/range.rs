//! `range`: of each topic, each subscriber gets a stretch of neighbouring partitions, in the same order for every
//! topic, so that topics with equally many partitions lie side by side.
//!
//! Static members come first, by their instance id: they keep their stretch when they come back under another member
//! id.

use super::{Candidate, Partitions, Spec};

pub(super) fn assign(spec: &Spec) -> Vec<Partitions> {
    let mut targets = vec![Partitions::new(); spec.candidates.len()];
    let rank = |candidate: &Candidate| match &candidate.instance {
        Some(instance) => (0, instance.clone()),
        None => (1, candidate.id.clone()),
    };
    let mut places: Vec<usize> = (0..spec.candidates.len()).collect();
    places.sort_by_cached_key(|at| rank(&spec.candidates[*at]));
    let mut order = vec![0; places.len()];
    places.iter().enumerate().for_each(|(place, at)| order[*at] = place);
    for (topic, mut subscribers) in spec.subscribers() {
        subscribers.sort_by_key(|at| order[*at]);
        let (partitions, count) = (spec.partitions_of(topic), subscribers.len() as i32);
        let (least, extra) = (partitions / count, partitions % count);
        let mut next = 0;
        for (place, at) in subscribers.into_iter().enumerate() {
            let end = next + least + i32::from((place as i32) < extra);
            if next < end {
                targets[at].insert(topic, (next..end).collect());
            }
            next = end;
        }
    }
    targets
}
