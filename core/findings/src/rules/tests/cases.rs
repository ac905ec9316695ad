//! A fault for each rule, and what is found.

mod clients;
mod cluster;
mod groups;
mod machine;
mod nodes;
mod pace;
mod reach;
mod topics;
mod traffic;

use crate::facts::Facts;

pub struct Case {
    pub id: &'static str,
    pub plant: fn(&mut Facts),
    /// `subject: sentence`
    pub sentences: &'static [&'static str],
    pub commands: &'static [&'static str],
}

pub fn all() -> Vec<Case> {
    let older = [cluster::CASES, topics::CASES, groups::CASES, clients::CASES, nodes::CASES, reach::CASES];
    older
        .into_iter()
        .chain([machine::CASES, traffic::CASES, pace::CASES])
        .flatten()
        .map(|case| Case { ..*case })
        .collect()
}
