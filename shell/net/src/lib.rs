//! Sockets, TLS and frames: what stands between a client's TCP connection and the bytes of one request.
//!
//! Knows Kafka's framing (a 4-byte length, then that many bytes) and its listener syntax; knows no broker and no
//! partition, and of APIs only which versions a peer speaks ([`links`], the connections that a node makes). Every limit
//! that a stranger could reach for is here: connections in total and per address, their rate, the size of a frame, the
//! memory of all frames together.
//!
//! Always true:
//! 1. nothing is reserved on the word of a length: a buffer grows as bytes arrive, or to what the connection has sent
//!    before
//! 2. a connection that waits holds no buffer
//! 3. one address cannot use up bounded resources (connections, memory): it leaves a part to others
//! 4. a limit slows the sender down or closes its connection; it never ends the process
//!
//! Produce path 0 of 5. After: shell/broker/src/requests/connection.rs

mod accept;
mod budget;
mod frame_reader;
mod frame_writer;
mod gate;
pub mod links;
mod pace;
mod spare_buffers;
mod stream;
pub mod tickets;

pub use accept::{Acceptor, BindError, CreationQuotas, OverQuota, SocketOptions, Unlimited};
pub use budget::{Account, Budget, Claim, Claimant, Press, Standing};
pub use frame_reader::{FrameError, FrameReader, Stranger};
pub use frame_writer::FrameWriter;
pub use gate::{ConnectionLimits, ConnectionSlot, Entrance, FirstRequest, Gate, Refused};
pub use pace::{Pace, TooSlow};
pub use stream::{Accepted, Detached, HandshakeError, ReadHalf, Stream, WriteHalf, accept};
