//! A16, replica divergence: two replicas hold other batches below the high watermark, or one holds fewer.

use crate::facts::{Batch, Facts};
use crate::rules::{Findings, Rule};

pub const RULE: Rule =
    Rule { id: "A16", anomaly: "replica divergence", unit: "batches compared", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    for (part, nodes) in &facts.replicas {
        if !facts.keeps_all(*part) {
            continue;
        }
        let end = facts.replicated_to.get(part).copied().unwrap_or(i64::MAX);
        let below = |batches: &[Batch]| -> Vec<Batch> {
            let mut kept: Vec<Batch> = batches.iter().copied().filter(|batch| batch.last < end).collect();
            kept.sort_by_key(|batch| batch.base);
            kept
        };
        let mut nodes = nodes.iter();
        let Some((first, batches)) = nodes.next() else { continue };
        let expected = below(batches);
        for (node, batches) in nodes {
            let batches = below(batches);
            found.judged += expected.len().max(batches.len()) as u64;
            let at = expected.iter().zip(&batches).position(|(one, other)| one != other);
            let at =
                at.or_else(|| (expected.len() != batches.len()).then(|| expected.len().min(batches.len())));
            if let Some(at) = at {
                let told = |batch: Option<&Batch>| {
                    batch.map_or_else(
                        || "nothing".into(),
                        |batch| {
                            format!(
                                "[{}, {}] crc {:08x} epoch {}",
                                batch.base, batch.last, batch.crc, batch.epoch
                            )
                        },
                    )
                };
                found.find(&[], || {
                    let name = facts.part_name(*part);
                    let (one, other) = (told(expected.get(at)), told(batches.get(at)));
                    format!(
                        "{name}: node {first} holds {one} where node {node} holds {other} (agreed end {end})"
                    )
                });
            }
        }
    }
}
