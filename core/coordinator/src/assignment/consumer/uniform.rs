//! `uniform` where all members subscribe to the same topics: the numbers of partitions differ by at most one, and
//! beyond that as few partitions as possible move.
//!
//! If the partitions do not divide evenly, the members that already have the most keep one more, which moves fewer
//! than giving that one to the first members.

use super::{Owners, Partitions, Spec};

pub(super) fn assign(spec: &Spec) -> Vec<Partitions> {
    let members = spec.candidates.len();
    let topics = spec.subscriptions.first().map_or(&[][..], Vec::as_slice);
    let total: usize = topics.iter().map(|topic| spec.partitions_of(*topic).max(0) as usize).sum();
    if members == 0 || total == 0 {
        return vec![Partitions::new(); members];
    }
    let (mut owners, mut loads) = Owners::kept(spec);
    let quotas = quotas(&loads, total);
    // From the end of each topic, so that a member keeps its first partitions.
    for slots in owners.0.values_mut().rev() {
        for slot in slots.iter_mut().rev() {
            if let Some(owner) = *slot
                && loads[owner as usize] > quotas[owner as usize]
            {
                loads[owner as usize] -= 1;
                *slot = None;
            }
        }
    }
    let mut unfilled = (0..members).filter(|at| loads[*at] < quotas[*at]).peekable();
    let mut missing = unfilled.peek().map_or(0, |at| quotas[*at] - loads[*at]);
    for slot in owners.0.values_mut().flatten().filter(|slot| slot.is_none()) {
        let Some(at) = unfilled.peek() else { break };
        *slot = Some(*at as u32);
        missing -= 1;
        if missing == 0 {
            unfilled.next();
            missing = unfilled.peek().map_or(0, |at| quotas[*at] - loads[*at]);
        }
    }
    owners.targets(members)
}

/// How many partitions each member is to have.
fn quotas(loads: &[usize], total: usize) -> Vec<usize> {
    let (least, extra) = (total / loads.len(), total % loads.len());
    let mut by_load: Vec<usize> = (0..loads.len()).collect();
    by_load.sort_by_key(|at| std::cmp::Reverse(loads[*at]));
    let mut quotas = vec![least; loads.len()];
    by_load.iter().take(extra).for_each(|at| quotas[*at] += 1);
    quotas
}
