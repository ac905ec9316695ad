//! What every tool does around its questions: it finds the topic that is meant, and says what it waits for.

pub mod topic_lookup;
pub mod waiting;
