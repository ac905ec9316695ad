//! TLS: how a listener or a client proves who it is, whom it trusts, and the bytes that then go over its connections.
//!
//! It reads the files that Kafka's settings name (`ssl.*`; core/certificates knows their formats), makes rustls'
//! configurations of them, makes them again when the files change, and drives one [`Session`] for each connection. It
//! owns no socket: shell/net does, and calls a session with what has come.
//!
//! As a client:
//! ```no_run
//! # fn properties(key: &str) -> Option<String> { None }
//! use barnabas_tls::{ClientTls, TlsSettings};
//! let tls = ClientTls::load(TlsSettings::read(properties)?)?; // once: it keeps sessions to resume
//! let session = tls.connect("broker1.example.com")?;          // for each connection; the host name is checked
//! // shell/net: Stream::connect(("broker1.example.com", 9093), Some(&tls)).await does both, and the handshake
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! As a server: [`ServerTls::load`], [`ServerTls::accept`] for each connection, [`ServerTls::principal`] after its
//! handshake, [`ServerTls::reload`] every few seconds.
//!
//! It does not know listeners, frames or users' rights. A class named by `ssl.engine.factory.class` is not loaded: only
//! Kafka's own two are accepted.
//!
//! Always true:
//! 1. what is in use was complete, and its key fitted its certificate; a reload that fails changes nothing
//! 2. passwords and keys are not shown by `Debug`, and passwords are overwritten when dropped
//! 3. TLS 1.2 and 1.3 alone, with forward secrecy; no early data (a Produce could be replayed), no renegotiation

mod authority;
mod client;
mod provider;
mod server;
mod session;
mod stores;
mod suites;

pub use authority::{Authority, Issued, Validity};
pub use barnabas_certificates::{ClientAuth, Expiring, Expiry, Source, TlsError, TlsSettings};
pub use client::ClientTls;
pub use server::ServerTls;
pub use session::{Arrived, OUT_PLAIN_MAX, Session, SessionError, with_out};
pub use stores::material::Reload;
pub use stores::revoked::{STORE as REVOCATION_LISTS, refused_by_lists};
