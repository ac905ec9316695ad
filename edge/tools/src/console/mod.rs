//! `console-consumer`, `console-share-consumer` and `console-producer`: records as lines. The verifiable tools: what
//! happens as lines of JSON.
//!
//! | file | answers |
//! |---|---|
//! | `consumer` | `console-consumer`: flags, and how long it reads |
//! | `printer` | how a record is printed |
//! | `producer` | `console-producer`: flags, and what is sent when |
//! | `lines` | how a line is a record |
//! | `share_consumer` | `console-share-consumer` |
//! | `verifiable` | `verifiable-producer` and `verifiable-consumer` |

pub mod consumer;
mod lines;
mod printer;
pub mod producer;
pub mod share_consumer;
pub mod verifiable;
