//! Fetches and small questions.
//!
//! | file | answers |
//! |---|---|
//! | `reading/asks.rs` | offsets by time, epochs, producers, sizes |
//! | `reading/await_durable.rs` | what must be durable before it is read |
//! | `reading/reads.rs` | what of a partition may be read |
//! | `reading/turn.rs` | how much is read while others wait for the worker |

pub mod asks;
pub mod await_durable;
pub mod reads;
pub mod turn;
