//! `console-consumer` and `console-producer`: records as lines.
//!
//! | file | answers |
//! |---|---|
//! | `consumer` | `console-consumer`: flags, and how long it reads |
//! | `printer` | how a record is printed |
//! | `producer` | `console-producer`: flags, and what is sent when |
//! | `lines` | how a line is a record |

pub mod consumer;
mod lines;
mod printer;
pub mod producer;
