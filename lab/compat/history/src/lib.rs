//! Judges what real clients saw: JSON-lines histories against the rules A1–A18 of the reliability reference.
//!
//! A history is a directory of files, one for each client, an event on each line (README.md says which). Lines are
//! streamed into [`facts::Facts`], which keep about 60 bytes for each record and nothing of the text; then each rule of
//! [`rules`] looks at the facts. No rule has a deadline: times only say which of two operations had ended before the
//! other began, so a slow machine changes no verdict. What must come to an end within some time is for whoever runs the
//! clients to decide, and to write down as a `final` event that says how far they came.
//!
//! It does not look at brokers: replicas' batches and admin answers come as events too.

pub mod event;
pub mod facts;
pub mod gather;
pub mod judge;
pub mod rules;

#[cfg(test)]
mod tests;
