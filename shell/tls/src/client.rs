//! A client's TLS: for tools, and for a node's connections to other nodes.
//!
//! Without a trust store the system's authorities are trusted, as Java trusts its own file. Without a key store no
//! certificate is shown.

use crate::stores::loaded::{Current, Loaded};
use crate::stores::material::{self, Material, Reload};
use crate::{Session, SessionError, suites};
use barnabas_certificates::{Expiring, TlsError, TlsSettings};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, SignatureScheme, StreamOwned};
use std::io::{Read, Write};
use std::sync::Arc;

/// Servers whose sessions are remembered.
const SESSIONS: usize = 256;

/// See the file's header. Made once; each connection takes a session from it.
#[derive(Debug)]
pub struct ClientTls {
    loaded: Current<ClientConfig>,
}

impl ClientTls {
    /// # Errors
    /// The key to change, and why.
    pub fn load(settings: TlsSettings) -> Result<Self, TlsError> {
        Ok(Self { loaded: Current::new(Loaded::read(settings, config)?) })
    }

    /// A session with `host`, for one connection.
    ///
    /// # Errors
    /// The host is no name that a certificate can be for.
    pub fn connect(&self, host: &str) -> Result<Session, SessionError> {
        let loaded = self.loaded.get();
        session(&loaded.settings, loaded.config.clone(), host)
    }

    /// A blocking stream to `host` over a socket: for a thread that may wait, and a request now and then.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn over<T: Read + Write>(
        &self,
        host: &str,
        socket: T,
    ) -> Result<StreamOwned<ClientConnection, T>, SessionError> {
        let loaded = self.loaded.get();
        let name = server_name(&loaded.settings, host)?;
        let connection = ClientConnection::new(loaded.config.clone(), name);
        let connection = connection.map_err(|error| SessionError::new(error.to_string()))?;
        Ok(StreamOwned::new(connection, socket))
    }

    /// Reads the stores again, and uses them for new connections if they have changed and are sound.
    pub fn reload(&self, now_s: i64) -> Reload {
        self.loaded.reload(now_s, |old, settings| next(old, settings, now_s))
    }

    /// Uses `settings` for new connections, if they differ from those in use and are sound.
    pub fn reconfigure(&self, settings: &TlsSettings, now_s: i64) -> Reload {
        self.loaded.reconfigure(settings, |old, settings| next(old, settings, now_s))
    }

    /// What is worth a line in the log.
    pub fn warnings(&self) -> Vec<String> {
        self.loaded.get().warnings()
    }

    /// The certificates in use, with the end of each.
    pub fn expiring(&self) -> Vec<Expiring> {
        self.loaded.get().material.expiring.clone()
    }

    /// For a handshake in memory between materials of one listener: host names cannot be checked there.
    pub(crate) fn session_of(settings: &TlsSettings, material: &Material) -> Result<Session, TlsError> {
        let settings = TlsSettings { checks_host_name: false, ..settings.clone() };
        let provider = Arc::new(suites::provider(&settings)?);
        let config = Arc::new(config(&settings, &material.without_lists(), &provider)?);
        session(&settings, config, "localhost").map_err(|error| {
            TlsError::new(
                "ssl.keystore.location",
                error.to_string(),
                "ssl.keystore.location=/etc/barnabas/broker.p12",
            )
        })
    }
}

/// What may take the place of `old`. Where its own trust store trusts its certificate, the other side is a node of the
/// same cluster, as a rule, and trusts the same authorities: it would refuse a certificate of another one.
fn next(
    old: &Loaded<ClientConfig>,
    settings: TlsSettings,
    now_s: i64,
) -> Result<Loaded<ClientConfig>, TlsError> {
    let new = old.next(settings, config, now_s)?;
    let provider = Arc::new(suites::provider(&new.settings)?);
    let is_trusted = |of: &Material, by: &Material| by.trusts_key_of(of, &provider, now_s);
    if new.material.keys.is_empty() || !is_trusted(&old.material, &old.material) {
        return Ok(new);
    }
    // Nodes whose stores have not changed yet are connected to as well.
    if is_trusted(&new.material, &old.material) && is_trusted(&new.material, &new.material) {
        return Ok(new);
    }
    Err(TlsError::new(
        "ssl.keystore.location",
        "its certificate is of an authority that the trust store (ssl.truststore.location, now or before) does not have, \
         so that other nodes would refuse it",
        "ssl.keystore.location=/etc/barnabas/broker.p12",
    ))
}

fn session(settings: &TlsSettings, config: Arc<ClientConfig>, host: &str) -> Result<Session, SessionError> {
    Session::client(config, server_name(settings, host)?)
}

fn server_name(settings: &TlsSettings, host: &str) -> Result<ServerName<'static>, SessionError> {
    match ServerName::try_from(host.to_owned()) {
        Ok(name) => Ok(name),
        // Nothing is compared with it.
        Err(_) if !settings.checks_host_name => Ok(ServerName::try_from("invalid").expect("a name")),
        Err(_) => Err(SessionError::new(format!("'{host}' is no host name that a certificate can be for"))),
    }
}

fn config(
    settings: &TlsSettings,
    material: &Material,
    provider: &Arc<CryptoProvider>,
) -> Result<ClientConfig, TlsError> {
    let trust = match &material.trust {
        Some(trust) => trust.clone(),
        None => material::system_trust()?.with_lists(material.lists.clone()),
    };
    let verifier = trust.of_servers(provider, settings.checks_host_name).map_err(|problem| {
        TlsError::new("ssl.truststore.location", problem, "ssl.truststore.location=/etc/barnabas/ca.pem")
    })?;
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&suites::versions(settings)?)
        .map_err(|error| suites::unusable(&error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = if material.keys.is_empty() {
        builder.with_no_client_auth()
    } else {
        builder.with_client_cert_resolver(Arc::new(KeyByScheme(material.keys.clone())))
    };
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(config)
}

/// The first key that can sign as the server asks.
#[derive(Debug)]
struct KeyByScheme(Vec<Arc<CertifiedKey>>);

impl ResolvesClientCert for KeyByScheme {
    fn resolve(&self, _authorities: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.iter().find(|key| key.key.choose_scheme(schemes).is_some()).cloned()
    }

    fn has_certs(&self) -> bool {
        true
    }
}
