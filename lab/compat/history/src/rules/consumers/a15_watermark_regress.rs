//! A15, watermark regress: the high watermark, the last stable offset or the log start, as ListOffsets tells one client
//! after the other time, moves back within one leader epoch or into a later one.

use crate::facts::Facts;
use crate::rules::{Findings, Rule};

pub const RULE: Rule =
    Rule { id: "A15", anomaly: "watermark regress", unit: "offsets told", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    found.judged = facts.offsets_told;
    for regress in &facts.regresses {
        found.find(&[], || {
            let (part, client) = (facts.part_name(regress.part), facts.client_name(regress.client));
            let (from, to) = (regress.from, regress.to);
            format!(
                "{part}: {} was told as {} in epoch {}, then as {} in epoch {} ({client})",
                regress.what, from.1, from.0, to.1, to.0
            )
        });
    }
}
