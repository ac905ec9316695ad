//! GSSAPI: Kerberos tickets, on the side that accepts them.
//!
//! | file | answers |
//! |---|---|
//! | `acceptor` | is this client's ticket right; what is the answer; which layer follows |
//! | `keytab` | which keys does this service have |
//! | `rules` | which user is a principal |
//! | `principal` | which name does a text make |
//! | `replays` | was this request seen before |
//! | `krb5_conf` | which realm is the default one, how far may clocks differ |
//! | `messages` | the messages of RFC 4120 |
//! | `enctype` | keys, encryption, checksums |
//! | `der` | the bytes of elements |
//!
//! Always true:
//! 1. no client is accepted whose ticket was not encrypted with a key of the keytab, or whose authenticator was taken
//!    before
//! 2. every ciphertext is verified before its plaintext is parsed
//!
//! It does not know files, clocks and random numbers, nor a KDC: tickets are not asked for here.

mod acceptor;
mod der;
mod enctype;
mod keytab;
mod krb5_conf;
mod messages;
mod principal;
mod replays;
mod rules;
#[cfg(test)]
mod tests;

pub use acceptor::{Accepted, Acceptor, Fault, Layer, Secrets};
pub use enctype::{Enctype, Key};
pub use keytab::{Entry, KEYTAB_BYTES_MAX, Keytab, KeytabFault};
pub use krb5_conf::Krb5Conf;
pub use messages::read_decrypted;
pub use principal::Principal;
pub use replays::{REMEMBERED_MAX, Replays, Seen};
pub use rules::Rules;
