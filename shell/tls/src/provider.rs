//! The cryptography behind rustls. This file alone names it: another provider is another line here.
//!
//! aws-lc-rs: it encrypts and signs RSA twice as fast as ring (docs/DEPENDENCIES.md).

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs as chosen;
use rustls::server::ProducesTickets;
use std::sync::Arc;

/// All suites and key exchanges of the provider.
pub fn provider() -> CryptoProvider {
    chosen::default_provider()
}

/// Keys for session tickets, of this value alone: sessions end with it.
pub fn ticketer() -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
    chosen::Ticketer::new()
}
