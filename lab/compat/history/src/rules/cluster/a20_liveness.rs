//! A20, liveness: long after all is healed, a last stable offset stands still, a group rebalances, a coordinator is
//! being loaded.
//!
//! How long is long is written in the history by whoever healed (`bounds`), who knows the timeouts that were set and
//! how slow the machine is; without it nothing is asked. What was seen before counts for nothing.

use crate::facts::{Bounds, Facts, Watched};
use crate::rules::{Findings, Rule};

pub const RULE: Rule =
    Rule { id: "A20", anomaly: "stuck for too long", unit: "waits", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    let Some(bounds) = &facts.bounds else { return };
    last_stable(facts, found, bounds);
    for (watched, seen) in &facts.watched {
        let (what, bound) = match watched {
            Watched::Group(name) => (format!("group {name}"), bounds.rebalance),
            Watched::Coordinator(name) => (format!("the coordinator of {name}"), bounds.loading),
        };
        let mut since: Option<u64> = None;
        for (time, state) in seen.iter().filter(|(time, _)| *time >= bounds.healed) {
            found.judge();
            let Some(state) = state else {
                since = None;
                continue;
            };
            let from = *since.get_or_insert(*time);
            if time - from > bound {
                found.find(&[], || format!("{what} is {state} from {from} ns to {time} ns"));
                break;
            }
        }
    }
}

/// Whatever was there when somebody looked is stable once every transaction of then must have ended.
fn last_stable(facts: &Facts, found: &mut Findings, bounds: &Bounds) {
    for (part, seen) in &facts.ends_seen {
        let after = || seen.iter().filter(|end| end.time >= bounds.healed);
        let mut due = after().filter(|end| !end.is_stable).peekable();
        let mut floor: Option<(u64, i64)> = None;
        for stable in after().filter(|end| end.is_stable) {
            while let Some(end) = due.next_if(|end| end.time.saturating_add(bounds.transaction) < stable.time)
            {
                if floor.is_none_or(|(_, offset)| offset < end.offset) {
                    floor = Some((end.time, end.offset));
                }
            }
            let Some((time, offset)) = floor else { continue };
            found.judge();
            if stable.offset < offset {
                found.find(&[], || {
                    format!(
                        "{}: {offset} was the end at {time} ns, at {} ns everything is stable up to {} only",
                        facts.part_name(*part),
                        stable.time,
                        stable.offset
                    )
                });
                break;
            }
        }
    }
}
