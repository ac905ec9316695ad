//! SASL without I/O: authenticates a client and determines its principal.
//!
//! Pure. No socket, clock or random number: nonces, salts and the time come in as arguments. Credentials come in from
//! the metadata image or from JAAS. Each mechanism is a chain of types: a step consumes the state before it, so a
//! message out of order cannot be written down.
//!
//! | file | answers |
//! |---|---|
//! | `exchange` | the server's exchange of a connection: ApiVersions, SaslHandshake, tokens, the verdict |
//! | `client` | the client's exchange, for links to other nodes |
//! | `delay` | how long a refused client waits for its answer |
//! | `jaas` | the login modules of `sasl.jaas.config` and of JAAS files |
//! | `plain` | PLAIN, both sides (RFC 4616) |
//! | `scram` | SCRAM-SHA-256 and SCRAM-SHA-512, both sides (RFC 5802, RFC 7677) |
//! | `kerberos` | GSSAPI: Kerberos tickets, the side that accepts them (RFC 4121, RFC 4752) |
//! | `oauth` | OAUTHBEARER: its messages (RFC 7628) |
//! | `refusal` | why a login failed, and how much of that the client may read |
//!
//! Always true:
//! 1. a client that fails cannot tell an unknown user from a wrong password, by text or by the work done
//! 2. a secret has no `Display`, and its `Debug` prints no byte of it
//! 3. no input panics, and the work on a message is linear in its length
//!
//! It does not know sockets and deadlines: the shell's `requests/connection/login.rs` carries the frames and bounds
//! their size (`sasl.server.max.receive.size`).

pub mod client;
pub mod delay;
pub mod exchange;
pub mod jaas;
pub mod kerberos;
pub mod oauth;
pub mod plain;
mod refusal;
pub mod scram;

pub use barnabas_base::Secret;
pub use refusal::{Login, Refusal};
