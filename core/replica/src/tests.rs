//! A replica on a disk in memory, as its caller would drive it.

#![allow(clippy::unwrap_used, reason = "a test")]

mod append;
mod await_journal;
mod await_metadata;
mod bench;
mod fetch_append;
mod leader;
mod moving;
mod opening;
mod queries;
mod readers;
mod reads;
mod repair;
mod restarts;
mod retention;
mod sync;
mod truncation;
mod write_back;

pub(crate) use bench::Bench;
