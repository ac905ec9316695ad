//! A18, metadata: a topic, a setting or an ACL whose making was acknowledged is gone in the end, or one is there that
//! was taken away.

use crate::facts::Facts;
use crate::rules::{Findings, Rule};

pub const RULE: Rule =
    Rule { id: "A18", anomaly: "metadata lost", unit: "things set", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    for ((kind, name), register) in &facts.registers {
        let Some(told) = register.told.as_ref().filter(|_| !register.possible.is_empty()) else { continue };
        found.judge();
        if !register.possible.contains(told) {
            found.find(&[], || {
                let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
                let possible: Vec<String> = register.possible.iter().map(word).collect();
                format!("{kind} {name} is {}, it was made {}", word(told), possible.join(" or "))
            });
        }
    }
}
