//! What every coordinator is made of. See the crate's page.

mod call;
mod committed;
mod pending;
mod timers;
mod transaction_version;

pub use call::{BatchId, Caller, EndTransaction, Now, Producer, Record, Ticket};
pub use committed::Committed;
pub use pending::{Closed, Held, Pending};
pub(crate) use pending::{Refusable, append_refusal};
pub use timers::Timers;
pub use transaction_version::TransactionVersion;
