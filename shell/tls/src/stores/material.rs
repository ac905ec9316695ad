//! What one listener or client holds of keys and trust, read at one moment; and how a newer one replaces it.
//!
//! Always true: what is in use was complete and its key fitted its certificate. Files that are half written, or that
//! contradict each other, are not taken; what was in use before stays.

use super::Content;
use super::revoked::Lists;
use super::trust::{Trust, take_refused};
use barnabas_certificates::{
    Expiring, Facts, KEY_STORE, KeyEntry, Source, Store, StoreKeys, TRUST_STORE, TlsError, TlsSettings,
    check_replacement, public_key,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::sign::CertifiedKey;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Where systems keep the authorities that they trust: for clients without a trust store, as Java's `cacerts`.
const SYSTEM_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// What a reload came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    Unchanged,
    /// New connections get the new material.
    Loaded,
    /// The stores have changed to something that cannot be used.
    Kept(TlsError),
}

/// See the file's header.
#[derive(Debug, Clone)]
pub struct Material {
    contents: [Option<Content>; 2],
    pub keys: Vec<Arc<CertifiedKey>>,
    /// Of the first key's certificate.
    pub own: Option<Facts>,
    pub trust: Option<Trust>,
    /// `None`: nothing is checked for revocation.
    pub lists: Option<Lists>,
    pub expiring: Vec<Expiring>,
    /// In words, for the log.
    pub warnings: Vec<String>,
}

impl Material {
    /// # Errors
    /// A store that cannot be read, or a key that does not fit its certificate.
    pub fn read(settings: &TlsSettings, provider: &CryptoProvider) -> Result<Self, TlsError> {
        let (mut warnings, mut expiring) = (Vec::new(), Vec::new());
        let (key_content, key_store) = open(settings.key_store.as_ref(), settings, KEY_STORE)?;
        let (trust_content, trust_store) = open(settings.trust_store.as_ref(), settings, TRUST_STORE)?;
        let mut keys = Vec::new();
        let mut own = None;
        for entry in key_store.into_iter().flat_map(|store| store.keys) {
            let facts = entry.chain.first().and_then(Facts::of);
            keys.push(Arc::new(certified(entry, provider)?));
            if let Some(Facts { subject, version: 1, .. }) = &facts {
                warnings.push(format!(
                    "the certificate of {subject} is of X.509 version 1, without names of hosts: Barnabas' nodes and tools \
                     and many clients do not accept it. Issue it with subjectAltName (openssl x509 -req: -extfile)"
                ));
            }
            own = own.or(facts);
        }
        if settings.key_store.is_some() && keys.is_empty() {
            return Err(KEY_STORE.wrong("it holds no private key"));
        }
        for key in &keys {
            expire("keystore", &key.cert, &mut expiring);
        }
        let lists = settings.revocation.as_ref().map(Lists::read).transpose()?;
        let trust = trust_store.map(|store| {
            let certificates = store.into_trusted();
            expire("truststore", &certificates, &mut expiring);
            let (trust, ignored) = Trust::new(certificates);
            let trust = trust.with_lists(lists.clone());
            if ignored > 0 {
                warnings.push(format!(
                    "{ignored} certificates of the trust store are no authorities that can be verified with"
                ));
            }
            trust
        });
        if trust.as_ref().is_some_and(|trust| trust.certificates().is_empty()) {
            return Err(TRUST_STORE.wrong("it holds no trusted certificate"));
        }
        expiring.extend(lists.iter().flat_map(|lists| lists.ends.iter().cloned()));
        Ok(Self { contents: [key_content, trust_content], keys, own, trust, lists, expiring, warnings })
    }

    /// Whether the stores say something else now. A store that cannot be read counts as changed: reading it again
    /// says why.
    pub fn has_changed(&self, settings: &TlsSettings) -> bool {
        let sources = [&settings.key_store, &settings.trust_store];
        let has_other_stores =
            sources.into_iter().zip(&self.contents).any(|(source, known)| match (source, known) {
                (Some(source @ Source::File { .. }), Some(known)) => {
                    Content::read(source).ok().as_ref() != Some(known)
                }
                _ => false,
            });
        let lists = self.lists.as_ref().zip(settings.revocation.as_ref());
        has_other_stores || lists.is_some_and(|(lists, revocation)| lists.has_changed(revocation))
    }

    /// See [`Lists::lapses_within`].
    pub fn lapses_within(&self, from_s: i64, to_s: i64) -> bool {
        self.lists.as_ref().is_some_and(|lists| lists.lapses_within(from_s, to_s))
    }

    /// The same without the lists: whether the stores fit each other does not depend on them.
    #[must_use]
    pub fn without_lists(&self) -> Self {
        let trust = self.trust.clone().map(|trust| trust.with_lists(None));
        Self { trust, lists: None, ..self.clone() }
    }

    /// Whether this trust store trusts the first certificate of `other` as a client's. Revocation lists are left out.
    pub fn trusts_key_of(&self, other: &Self, provider: &Arc<CryptoProvider>, now_s: i64) -> bool {
        let Some((own, chain)) = other.keys.first().and_then(|key| key.cert.split_first()) else {
            return false;
        };
        let trust = self.trust.clone().map(|trust| trust.with_lists(None));
        let Some(verifier) = trust.and_then(|trust| trust.of_clients(provider, true).ok()) else {
            return false;
        };
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now_s.max(0).unsigned_abs()));
        let is_trusted = verifier.verify_client_cert(own, chain, now).is_ok();
        // No handshake was refused.
        take_refused();
        is_trusted
    }

    /// Whether `next` may replace this one, as Kafka judges a new key store.
    ///
    /// # Errors
    /// What speaks against it, with the key that allows it.
    pub fn may_become(&self, next: &Self, settings: &TlsSettings, now_s: i64) -> Result<(), TlsError> {
        check_replacement(self.own.as_ref(), next.own.as_ref(), settings, now_s)
    }
}

/// The authorities that the system trusts.
///
/// # Errors
/// There are none.
pub fn system_trust() -> Result<Trust, TlsError> {
    let named = std::env::var_os("SSL_CERT_FILE");
    let paths = named.iter().map(Path::new).chain(SYSTEM_AUTHORITIES.iter().map(Path::new));
    for path in paths {
        let source = Source::File { path: path.to_owned(), password: None };
        if let Ok(store) = Content::read(&source).and_then(|content| content.open(&source, None))
            && !store.trusted.is_empty()
        {
            return Ok(Trust::new(store.trusted).0);
        }
    }
    Err(TlsError::new(
        "ssl.truststore.location",
        "is not set, and this system has no file of authorities to trust",
        TRUST_STORE.example,
    ))
}

fn open(
    source: Option<&Source>,
    settings: &TlsSettings,
    keys: StoreKeys,
) -> Result<(Option<Content>, Option<Store>), TlsError> {
    let Some(source) = source else { return Ok((None, None)) };
    let of = match source {
        Source::File { path, .. } => format!("{}: ", path.display()),
        Source::Inline(_) => String::new(),
    };
    let content = Content::read(source).map_err(|problem| keys.unusable(source, problem))?;
    let store = content.open(source, settings.key_password.as_ref());
    let store = store.map_err(|problem| keys.unusable(source, format!("{of}{problem}")))?;
    Ok((Some(content), Some(store)))
}

fn certified(entry: KeyEntry, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    if entry.chain.is_empty() {
        return Err(KEY_STORE.wrong("its private key has no certificate"));
    }
    let key = provider.key_provider.load_private_key(entry.key);
    let key = key.map_err(|error| KEY_STORE.wrong(format!("its private key cannot be used: {error}")))?;
    let certified = CertifiedKey::new(entry.chain, key);
    // Not by `keys_match`, which takes no certificate of version 1.
    let own =
        public_key(&certified.cert[0]).ok_or_else(|| KEY_STORE.wrong("its certificate cannot be read"))?;
    if certified.key.public_key().is_none_or(|key| key.as_ref() != own) {
        return Err(KEY_STORE.wrong("its private key belongs to another certificate than its own"));
    }
    Ok(certified)
}

fn expire(store: &'static str, certificates: &[CertificateDer<'_>], into: &mut Vec<Expiring>) {
    let facts = certificates.iter().filter_map(Facts::of);
    into.extend(facts.map(|facts| Expiring {
        store,
        subject: facts.subject,
        not_after_s: facts.not_after_s,
    }));
}
