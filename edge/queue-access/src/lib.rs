//! What the listeners for message queues share: AMQP's (edge/queues) and MQ's (edge/mq-queues). A queue is a topic
//! with a share group (KIP-932) behind it.
//!
//! | module | answers |
//! |---|---|
//! | `listener` | which connections come in, and how many at a time |
//! | `login` | who is this peer, in Kafka's terms |
//! | `address` | which topic and which share group is this address |
//! | `socket` | how do bytes go out and come in |
//! | `group` | where the queue's share group begins |
//! | `browse` | where does a look at a queue end |
//! | `puts` | which puts of many connections go together, and what is each answered |
//! | `units` | how are the records of a unit of work written, whole or not at all |
//! | `temporary` | topics that are made for one link or handle, and go with it |

mod address;
mod browse;
pub mod group;
mod listener;
mod login;
mod puts;
mod socket;
pub mod temporary;
mod units;

pub use address::{AMQP_TEMPORARY, Address, MQ_TEMPORARY, is_temporary};
pub use browse::Ends;
pub use listener::{BindError, CONNECTIONS_MAX, Names, Queues, Settings, bind, cluster, start};
pub use login::{Claim, Denied, LOGIN_WITHIN, Logins};
pub use puts::{Origin, Outcome, Producers, Putter, size_bytes};
pub use socket::Socket;
pub use units::{NotWritten, PUT_BYTES_MAX, PUTS_MAX, Puts, RECORD_BYTES, Slots, UnitWriter};
