//! What every coordinator is made of. See the crate's page.

mod committed;
mod effect;
mod pending;
mod timers;

pub use committed::Committed;
pub use effect::{BatchId, Caller, Effect, EndTransaction, Now, Producer, Record, Ticket};
pub(crate) use pending::Refusable;
pub use pending::{Closed, Held, Pending};
pub use timers::Timers;
