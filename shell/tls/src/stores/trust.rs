//! Whose certificates are accepted: webpki's verification against a trust store, with what Java allows beside it.
//!
//! Java accepts a certificate that stands in the trust store itself, whether or not it is an authority's: self-signed
//! certificates of servers are pinned that way. webpki takes trust stores for authorities alone. So a certificate
//! that is in the store, byte for byte, is accepted here while it is valid; everything else is webpki's judgement.
//!
//! Where there are lists of revoked certificates, each certificate of a chain is looked up in its issuer's. One that is
//! revoked, or that no valid list speaks about, is refused even if it stands in the store.
//!
//! Differs from Java: no host names in a common name, no SHA-1, no certificates of version 1, no RSA keys below 2048
//! bits.

use super::revoked::{self, Lists};
use barnabas_certificates::Facts;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// The subject of the certificate that was refused last on this thread, for the log.
    static REFUSED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Takes the name of the certificate that a handshake on this thread was just refused for.
pub fn take_refused() -> Option<String> {
    REFUSED.take()
}

/// A trust store that is ready for use.
#[derive(Debug, Clone)]
pub struct Trust {
    roots: Arc<RootCertStore>,
    /// Sorted.
    pinned: Arc<[CertificateDer<'static>]>,
    lists: Option<Lists>,
}

impl Trust {
    /// Returns how many certificates could not be taken for authorities as well. They are still accepted themselves.
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> (Self, usize) {
        let mut roots = RootCertStore::empty();
        let (_, ignored) = roots.add_parsable_certificates(certificates.iter().cloned());
        let mut pinned = certificates;
        pinned.sort_by(|one, other| one.as_ref().cmp(other.as_ref()));
        (Self { roots: Arc::new(roots), pinned: pinned.into(), lists: None }, ignored)
    }

    /// The same with these lists of revoked certificates.
    #[must_use]
    pub fn with_lists(self, lists: Option<Lists>) -> Self {
        Self { lists, ..self }
    }

    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.pinned
    }

    /// A certificate that stands in the store itself.
    fn is_pinned(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
        let is_here = self.pinned.binary_search_by(|known| known.as_ref().cmp(certificate.as_ref())).is_ok();
        is_here
            && Facts::of(certificate).is_some_and(|facts| {
                let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
                facts.not_before_s <= now && now <= facts.not_after_s
            })
    }

    /// # Errors
    /// The store holds no authority.
    pub fn of_clients(
        &self,
        provider: &Arc<CryptoProvider>,
        is_required: bool,
    ) -> Result<Arc<dyn ClientCertVerifier>, String> {
        let mut builder = WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider.clone());
        if let Some(lists) = &self.lists {
            builder = builder.with_crls(lists.ders.iter().cloned());
            builder = if lists.refuses_expired { builder.enforce_revocation_expiration() } else { builder };
            builder = if lists.refuses_missing { builder } else { builder.allow_unknown_revocation_status() };
        }
        let builder = if is_required { builder } else { builder.allow_unauthenticated() };
        let inner = builder.build().map_err(|error| error.to_string())?;
        Ok(Arc::new(OfClients { inner, trust: self.clone() }))
    }

    /// # Errors
    /// The store holds no authority.
    pub fn of_servers(
        &self,
        provider: &Arc<CryptoProvider>,
        checks_host_name: bool,
    ) -> Result<Arc<dyn ServerCertVerifier>, String> {
        let mut builder = WebPkiServerVerifier::builder_with_provider(self.roots.clone(), provider.clone());
        if let Some(lists) = &self.lists {
            builder = builder.with_crls(lists.ders.iter().cloned());
            builder = if lists.refuses_expired { builder.enforce_revocation_expiration() } else { builder };
            builder = if lists.refuses_missing { builder } else { builder.allow_unknown_revocation_status() };
        }
        let inner = builder.build().map_err(|error| error.to_string())?;
        Ok(Arc::new(OfServers { inner, trust: self.clone(), checks_host_name }))
    }
}

fn remember(certificate: &CertificateDer<'_>, error: &Error) {
    if is_of_lists(error) {
        revoked::count_refused();
    }
    REFUSED.set(Facts::of(certificate).map(|facts| facts.subject));
}

/// Signatures of handshakes are webpki's judgement for clients and servers alike.
macro_rules! signatures_are_of_inner {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.inner.verify_tls12_signature(message, cert, dss)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.inner.verify_tls13_signature(message, cert, dss)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.inner.supported_verify_schemes()
        }
    };
}

#[derive(Debug)]
struct OfClients {
    inner: Arc<dyn ClientCertVerifier>,
    trust: Trust,
}

impl ClientCertVerifier for OfClients {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.inner.verify_client_cert(end_entity, intermediates, now).or_else(|error| {
            if !is_of_lists(&error) && self.trust.is_pinned(end_entity, now) {
                return Ok(ClientCertVerified::assertion());
            }
            remember(end_entity, &error);
            Err(error)
        })
    }

    signatures_are_of_inner!();
}

#[derive(Debug)]
struct OfServers {
    inner: Arc<WebPkiServerVerifier>,
    trust: Trust,
    checks_host_name: bool,
}

impl ServerCertVerifier for OfServers {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let error = match verified {
            Ok(verified) => return Ok(verified),
            Err(error) => error,
        };
        // webpki looks at the name last: everything else was in order.
        if is_of_name(&error) && !self.checks_host_name {
            return Ok(ServerCertVerified::assertion());
        }
        if !is_of_name(&error) && !is_of_lists(&error) && self.trust.is_pinned(end_entity, now) {
            if self.checks_host_name {
                let parsed = rustls::server::ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&parsed, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        remember(end_entity, &error);
        Err(error)
    }

    signatures_are_of_inner!();
}

fn is_of_name(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        )
    )
}

fn is_of_lists(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(
            CertificateError::Revoked
                | CertificateError::UnknownRevocationStatus
                | CertificateError::ExpiredRevocationList
                | CertificateError::ExpiredRevocationListContext { .. }
        )
    )
}
