//! Rounds of appends: what is held back, what goes to the journal, what is answered.
//!
//! | file | answers |
//! |---|---|
//! | `appends/await_metadata.rs` | what waits for the metadata it rests on |
//! | `appends/journaled.rs` | what waits for the journal, and what is written back |
//! | `appends/refused.rs` | what waits for an earlier batch that was refused |
//! | `appends/rounds.rs` | how does a round end, how are effects carried out |

pub mod await_metadata;
pub mod journaled;
pub mod refused;
pub mod rounds;
