//! What every coordinator is made of. See the crate's page.

mod append;
mod call;
mod committed;
mod encoding;
mod load;
pub(crate) mod part;
pub(crate) mod pattern;
mod pending;
mod room;
mod timers;
mod transaction_version;
pub(crate) mod weight;

pub use append::{Contents, Gathered, Together, append_error, marker_batch};
pub use call::{BatchId, Caller, EndTransaction, Now, Producer, Record, Ticket};
pub use committed::Committed;
pub(crate) use encoding::{ID_BYTES_MAX, encoded, shortened};
pub use load::LoadError;
pub(crate) use load::{Loaded, each_loaded};
pub use part::{PART_BYTES, Part};
pub use pending::{Closed, Held, Pending};
pub(crate) use pending::{Refusable, append_refusal};
pub use room::Room;
pub use timers::Timers;
pub use transaction_version::TransactionVersion;
