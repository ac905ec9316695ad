//! A replica on a disk in memory, as its caller would drive it.

#![allow(clippy::unwrap_used, reason = "a test")]

mod bench;
mod opening;
mod readers;
mod sync;

pub(crate) use bench::Bench;
