//! A5, wrong offset: a sender was told another offset than the one where its record is read, or one that cannot be.

use crate::facts::{Facts, NONE, State, shown};
use crate::rules::{Findings, Rule};

pub const RULE: Rule =
    Rule { id: "A5", anomaly: "wrong offset returned", unit: "offsets told and read", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    for (value, send) in facts.sends() {
        if send.state != State::Ok {
            continue;
        }
        if send.offset < 0 {
            found.find(&[value], || format!("{} was acknowledged without an offset", shown(value)));
        }
        if send.read_part == NONE {
            continue;
        }
        found.judge();
        if (send.read_part, send.read_at) != (send.part, send.offset) {
            found.find(&[value], || {
                format!(
                    "{} was acknowledged at {}/{} and is read at {}/{}",
                    shown(value),
                    facts.part_name(send.part),
                    send.offset,
                    facts.part_name(send.read_part),
                    send.read_at
                )
            });
        }
    }
}
