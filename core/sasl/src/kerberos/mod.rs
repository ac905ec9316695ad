//! GSSAPI: Kerberos tickets, on the side that accepts them and on the side that shows them.
//!
//! | file | answers |
//! |---|---|
//! | `acceptor` | is this client's ticket right; what is the answer; which layer follows |
//! | `initiator` | how a ticket is shown; is the service the one that it is for |
//! | `kdc` | what is a KDC asked for tickets, and what does it answer |
//! | `tickets` | who asks for tickets, for which services, when again; which tickets did `kinit` leave in a file |
//! | `wrap` | the signed tokens of both sides |
//! | `keytab` | which keys does this service have |
//! | `names` | which name does a text make; which user is a principal |
//! | `replays` | was this request seen before |
//! | `krb5_conf` | which realm is the default one, how far may clocks differ, where is a KDC |
//! | `messages` | the messages of RFC 4120 |
//! | `enctype` | keys, encryption, checksums |
//! | `der` | the bytes of elements |
//!
//! Always true:
//! 1. no client is accepted whose ticket was not encrypted with a key of the keytab, or whose authenticator was taken
//!    before
//! 2. every ciphertext is verified before its plaintext is parsed
//!
//! It does not know files, clocks, sockets and random numbers: shell/net/src/tickets.rs asks KDCs.

mod acceptor;
mod der;
mod enctype;
mod initiator;
mod kdc;
mod keytab;
mod krb5_conf;
mod messages;
mod names;
mod replays;
#[cfg(test)]
mod tests;
mod tickets;
mod wrap;

pub use acceptor::{Accepted, Acceptor, Fault, Layer, Secrets};
pub use enctype::{Enctype, Key};
pub use initiator::{Distrust, Initiator};
pub use kdc::{
    KdcFault, Proof, REPLY_BYTES_MAX, Ticket, as_reply, as_request, renewal_request, tgs_reply, tgs_request,
};
pub use keytab::{Entry, KEYTAB_BYTES_MAX, Keytab, KeytabFault};
pub use krb5_conf::Krb5Conf;
pub use messages::read_decrypted;
pub use names::{Principal, Rules};
pub use replays::{REMEMBERED_MAX, Replays, Seen};
pub use tickets::ccache::{TICKET_CACHE_BYTES_MAX, TicketCache, TicketCacheFault, cache_file};
pub use tickets::{CacheSettings, TicketSettings, is_due, keytab_of, principal_of, service_name_of};
