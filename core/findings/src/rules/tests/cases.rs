//! A fault for each rule, and what is found.

mod clients;
mod cluster;
mod groups;
mod nodes;
mod reach;
mod topics;

use crate::facts::Facts;

pub struct Case {
    pub id: &'static str,
    pub plant: fn(&mut Facts),
    /// `subject: sentence`
    pub sentences: &'static [&'static str],
    pub commands: &'static [&'static str],
}

pub fn all() -> Vec<Case> {
    [cluster::CASES, topics::CASES, groups::CASES, clients::CASES, nodes::CASES, reach::CASES]
        .into_iter()
        .flatten()
        .map(|case| Case { ..*case })
        .collect()
}
