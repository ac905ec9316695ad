//! What a request changes in the cluster and what came of it, for the audit log: one [`Subject`] for each resource.
//!
//! Every API that changes metadata, deletes records or moves what groups have committed is here; a test holds the list
//! against the APIs that are served. Requests that only validate are none. Of records, fetches and heartbeats nothing
//! is noted.
//!
//! Always true:
//! 1. no subject holds a secret: salted passwords, HMACs and values of sensitive configurations are left out
//! 2. a request has at most [`SUBJECTS_MAX`] subjects, and a text at most [`TEXT_BYTES_MAX`] bytes
//!
//! | file | answers |
//! |---|---|
//! | `audited/events.rs` | what an event is, and which are wanted |
//! | `audited/line.rs` | which text is an event |
//! | `audited/topic.rs` | which records of a topic the lines are |
//! | `audited/gathered.rs` | which events are one line with a count |
//!
//! Not here: the queue, the thread and the files (shell/broker/src/node/audit.rs).

pub mod events;
pub mod gathered;
pub mod line;
mod outcomes;
mod subjects;
pub mod topic;

use std::collections::BTreeMap;

use barnabas_base::ErrorCode;
use barnabas_metadata::Image;
use barnabas_wire::messages::{RequestBody, ResponseBody};

/// Larger requests are cut: the last subject says how many are left out.
pub const SUBJECTS_MAX: usize = 10_000;
/// Of one resource. Its last edit says how many more there were.
const EDITS_MAX: usize = 1000;
/// Longer names and values are cut.
pub const TEXT_BYTES_MAX: usize = 1024;

const ACL: &str = "ACL";
const QUOTA: &str = "QUOTA";
const SCRAM: &str = "SCRAM_CREDENTIAL";
/// The edit of a topic that the request names by its id.
const ID: &str = "id";

/// One resource that a request is to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// As ACLs name it: `CREATE`, `ALTER_CONFIGS`.
    pub operation: &'static str,
    /// As ACLs name it, and `ACL`, `QUOTA`, `SCRAM_CREDENTIAL`, `FEATURE`, `VOTER`, `BROKER`.
    pub resource_type: &'static str,
    pub name: String,
    pub edits: Vec<Edit>,
}

/// One setting of a resource, before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub name: String,
    /// `None`: it was not set, or is not known.
    pub from: Option<String>,
    /// `None`: it is removed.
    pub to: Option<String>,
}

/// What a request asks for, before it is carried out.
#[derive(Debug)]
pub struct Asked {
    subjects: Vec<Subject>,
    left_out: usize,
}

/// What an answer says: of each resource by name, or by its place, or of all of them.
#[derive(Debug, Default)]
struct Outcomes {
    whole: i16,
    by_name: BTreeMap<(&'static str, String), i16>,
    by_place: Vec<i16>,
    /// What only the answer names, such as the ACLs that a filter deleted.
    found: Vec<(Subject, i16)>,
}

impl Asked {
    /// `None`: the request changes nothing.
    pub fn of(body: &RequestBody, image: &Image) -> Option<Self> {
        let mut subjects = subjects::of(body, image)?;
        let left_out = subjects.len().saturating_sub(SUBJECTS_MAX);
        subjects.truncate(SUBJECTS_MAX);
        subjects.iter_mut().for_each(Subject::cut);
        Some(Self { subjects, left_out })
    }

    /// What became of each resource. `None`: the request was not answered.
    pub fn settle(self, answer: Option<&ResponseBody>) -> Vec<(Subject, ErrorCode)> {
        let outcomes = answer.map(outcomes::of);
        let code = |place: usize, subject: &Subject| {
            let Some(outcomes) = &outcomes else { return ErrorCode::NetworkException };
            let of = |name: &String| outcomes.by_name.get(&(subject.resource_type, name.clone()));
            let id = subject.edits.first().filter(|edit| edit.name == ID).and_then(|edit| edit.from.as_ref());
            let named = of(&subject.name).or_else(|| id.and_then(of));
            let code = named.or_else(|| outcomes.by_place.get(place)).copied().unwrap_or(outcomes.whole);
            ErrorCode::from_code(code)
        };
        let mut settled: Vec<_> = self
            .subjects
            .into_iter()
            .enumerate()
            .map(|(place, subject)| (code(place, &subject), subject))
            .collect();
        let found = outcomes.map(|outcomes| outcomes.found).unwrap_or_default();
        if !found.is_empty() {
            // The answer names more than the filters do, and says of each what became of it.
            settled.clear();
            let found = found.into_iter().take(SUBJECTS_MAX);
            settled.extend(found.map(|(mut subject, code)| {
                subject.cut();
                (ErrorCode::from_code(code), subject)
            }));
        }
        if let (true, Some((code, last))) = (self.left_out > 0, settled.last().cloned()) {
            let name = format!("{} more resources of the request are left out", self.left_out);
            settled.push((code, Subject { name, edits: Vec::new(), ..last }));
        }
        settled.into_iter().map(|(code, subject)| (subject, code)).collect()
    }
}

impl Subject {
    fn new(operation: &'static str, resource_type: &'static str, name: impl Into<String>) -> Self {
        Self { operation, resource_type, name: name.into(), edits: Vec::new() }
    }

    fn with(mut self, edits: impl IntoIterator<Item = Edit>) -> Self {
        self.edits = edits.into_iter().collect();
        self
    }

    fn cut(&mut self) {
        let left_out = self.edits.len().saturating_sub(EDITS_MAX);
        if left_out > 0 {
            self.edits.truncate(EDITS_MAX);
            self.edits.push(Edit { name: format!("{left_out} more"), from: None, to: None });
        }
        cut(&mut self.name);
        for edit in &mut self.edits {
            cut(&mut edit.name);
            edit.from.iter_mut().for_each(cut);
            edit.to.iter_mut().for_each(cut);
        }
    }
}

impl Edit {
    fn to(name: impl Into<String>, to: impl ToString) -> Self {
        Self { name: name.into(), from: None, to: Some(to.to_string()) }
    }
}

fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
}

/// Which broker a resource name means; the empty one means all of them.
fn config_type(code: i8) -> &'static str {
    barnabas_metadata::ResourceType::from_code(code).map_or("UNKNOWN", |kind| kind.name())
}

/// `user=alice client-id=*`, as the tools name entities.
fn entity<'a>(parts: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let parts: Vec<String> =
        parts.map(|(kind, name)| format!("{kind}={}", name.unwrap_or("<default>"))).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests;
