//! The cryptography behind rustls. This file alone names it: another provider is another line here.
//!
//! aws-lc-rs: it encrypts and signs RSA twice as fast as ring (docs/DEPENDENCIES.md). But its AES-GCM uses the
//! processor's wide instructions (VAES) with AVX-512 alone, ring's without it as well: there the suites are ring's, and
//! keys, key exchange and tickets stay aws-lc's.

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs as chosen;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::ProducesTickets;
use std::sync::Arc;

/// All suites and key exchanges of the provider.
pub fn provider() -> CryptoProvider {
    CryptoProvider { cipher_suites: suites(has_wide_aes_without_avx512()), ..chosen::default_provider() }
}

fn suites(is_ring_faster: bool) -> Vec<SupportedCipherSuite> {
    if is_ring_faster { ring::DEFAULT_CIPHER_SUITES.to_vec() } else { chosen::DEFAULT_CIPHER_SUITES.to_vec() }
}

#[cfg(target_arch = "x86_64")]
fn has_wide_aes_without_avx512() -> bool {
    std::arch::is_x86_feature_detected!("vaes")
        && std::arch::is_x86_feature_detected!("vpclmulqdq")
        && !std::arch::is_x86_feature_detected!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_wide_aes_without_avx512() -> bool {
    false
}

/// Keys for session tickets, of this value alone: sessions end with it.
pub fn ticketer() -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
    chosen::Ticketer::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_of_both_libraries_are_the_same() {
        let names = |is_ring_faster| suites(is_ring_faster).iter().map(|s| s.suite()).collect::<Vec<_>>();
        assert_eq!(names(true), names(false));
    }
}
