//! A13, non-monotonic send: of two acknowledged records of one producer in one partition, the one sent later has the
//! lower offset. Inside one call and from call to call; only between acknowledged ones, for a record that timed out at
//! its sender may come in late.

use crate::facts::{Facts, State, shown};
use crate::rules::{Findings, Rule};
use std::collections::HashMap;

pub const RULE: Rule =
    Rule { id: "A13", anomaly: "non-monotonic send", unit: "acknowledged records", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    let mut last: HashMap<(u64, u32), (u64, i64)> = HashMap::new();
    for (value, send) in facts.sends().filter(|(_, send)| send.state == State::Ok && send.offset >= 0) {
        found.judge();
        if let Some((before, offset)) = last.insert((value >> 32, send.part), (value, send.offset))
            && offset >= send.offset
        {
            found.find(&[before, value], || {
                let part = facts.part_name(send.part);
                format!(
                    "{} went to {part}/{offset}, {} after it to {}",
                    shown(before),
                    shown(value),
                    send.offset
                )
            });
        }
    }
}
