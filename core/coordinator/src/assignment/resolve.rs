//! A group's expressions against every topic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::Text;
use barnabas_metadata::Image;

use crate::framework::pattern;

/// Names that a group's expressions match, all together; where several match the same, it is held once. Kafka has no
/// such bound.
const NAMES_MAX: usize = 1_000_000;

/// The topics that an expression matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub topics: Arc<BTreeSet<Text>>,
    /// The metadata offset that was looked at.
    pub version: i64,
    pub timestamp: i64,
}

/// Which topics the client may describe whose heartbeat had the expressions resolved. This crate knows no authorizer.
#[derive(Clone)]
pub struct Describable(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl Describable {
    pub fn new(may_describe: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(may_describe))
    }
}

impl std::fmt::Debug for Describable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Describable")
    }
}

/// What is to be resolved, as it was at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Resolving {
    pub group: Text,
    pub patterns: Vec<Text>,
    pub image: Image,
    /// `None`: all topics.
    pub describable: Option<Describable>,
}

impl PartialEq for Resolving {
    fn eq(&self, other: &Self) -> bool {
        self.group == other.group && self.patterns == other.patterns
    }
}

/// What each expression matched, and the metadata offset that was looked at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Topics {
    pub version: i64,
    pub by_pattern: BTreeMap<Text, Arc<BTreeSet<Text>>>,
}

impl Resolving {
    pub fn run(self) -> Topics {
        self.run_within(NAMES_MAX)
    }

    /// An expression for whose names there is no room stays unresolved: who subscribes by it gets nothing of it.
    pub fn run_within(mut self, names_max: usize) -> Topics {
        let mut by_pattern = BTreeMap::new();
        let mut sets: Vec<Arc<BTreeSet<Text>>> = Vec::new();
        let mut names_left = names_max;
        for wanted in std::mem::take(&mut self.patterns) {
            let matched = self.matched(&wanted);
            if let Some(known) = sets.iter().find(|known| ***known == matched) {
                by_pattern.insert(wanted, Arc::clone(known));
            } else if let Some(left) = names_left.checked_sub(matched.len()) {
                names_left = left;
                let matched = Arc::new(matched);
                sets.push(Arc::clone(&matched));
                by_pattern.insert(wanted, matched);
            }
        }
        Topics { version: self.image.provenance.end.get() - 1, by_pattern }
    }

    /// The names that an expression matches, of topics that the client may describe.
    ///
    /// # Source
    /// Kafka 4.4 `TopicRegexResolver.filterTopicDescribeAuthorizedTopics`.
    fn matched(&self, wanted: &str) -> BTreeSet<Text> {
        // One that was found sound when it came cannot have become otherwise, unless another build wrote it.
        let Ok(regex) = pattern::of_topics(wanted) else { return BTreeSet::new() };
        let may_describe =
            |name: &str| self.describable.as_ref().is_none_or(|describable| describable.0(name));
        let names = self.image.topics.iter().map(|topic| &topic.name);
        names.filter(|name| regex.is_match(name.as_bytes()) && may_describe(name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
