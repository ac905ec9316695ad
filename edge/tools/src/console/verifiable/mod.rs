//! `verifiable-producer` and `verifiable-consumer`: tools of system tests, which print a line of JSON for each thing
//! that happens.
//!
//! | file | answers |
//! |---|---|
//! | `event` | how such a line is written |
//! | `producer`, `consumer` | the tools |

pub mod consumer;
mod event;
pub mod producer;
