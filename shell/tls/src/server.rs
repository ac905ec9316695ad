//! A listener's TLS: the configuration that new connections get, made of its `ssl.*` keys, and made again when its
//! stores change.
//!
//! Connections that are open keep the configuration that they began with. Ticket keys belong to one configuration: a
//! session of before a reload is not resumed after it, so no certificate outlives its removal from the trust store by
//! way of a ticket.
//!
//! Always true: a configuration that is in use was complete; a reload that fails leaves the one before in use.

use crate::certificate::{Expiring, Facts, MappingRules};
use crate::settings::{ClientAuth, TlsSettings, provider, suites};
use crate::stores::material::{Material, Reload};
use crate::{ClientTls, Session, SessionError, TlsError};
use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// One session ticket for each full handshake: clients use one.
const TICKETS: usize = 1;

/// See the file's header.
#[derive(Debug)]
pub struct ServerTls {
    settings: TlsSettings,
    rules: MappingRules,
    /// Brokers connect to each other here: new material must verify against itself and the old one.
    is_among_brokers: bool,
    loaded: ArcSwap<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    material: Material,
}

impl ServerTls {
    /// `is_among_brokers`: brokers or controllers dial this listener with the same stores.
    ///
    /// # Errors
    /// The key to change, and why.
    pub fn load(settings: TlsSettings, is_among_brokers: bool) -> Result<Self, TlsError> {
        if settings.key_store.is_none() {
            return Err(TlsError::new(
                "ssl.keystore.location",
                "is not set, nor is ssl.keystore.key: a listener with TLS needs a key and a certificate",
                "ssl.keystore.location=/etc/barnabas/broker.p12",
            ));
        }
        let rules = MappingRules::parse(&settings.principal_mapping_rules)?;
        let loaded = load(&settings)?;
        let server = Self { settings, rules, is_among_brokers, loaded: ArcSwap::from_pointee(loaded) };
        if is_among_brokers {
            let loaded = server.loaded.load();
            verify_among(&server.settings, &loaded, &loaded)?;
        }
        Ok(server)
    }

    /// What is worth a line in the log at the start and after each reload.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = suites::warnings(&self.settings);
        warnings.extend(self.loaded.load().material.warnings.iter().cloned());
        warnings
    }

    /// A new connection's session.
    ///
    /// # Errors
    /// rustls' own; with a sound configuration there are none.
    pub fn accept(&self) -> Result<Session, SessionError> {
        Session::server(self.loaded.load().config.clone())
    }

    /// The user that the peer's certificate names. `None`: it showed none.
    ///
    /// # Errors
    /// No mapping rule matches its name, or the certificate has expired since the session was made that was resumed.
    pub fn principal(&self, session: &Session, now_s: i64) -> Result<Option<String>, SessionError> {
        let Some(certificate) = session.peer_certificate() else { return Ok(None) };
        let facts = Facts::of(certificate)
            .ok_or_else(|| SessionError::new("the client's certificate cannot be read"))?;
        if facts.not_after_s < now_s {
            let what = format!("the client's certificate of {} has expired", facts.subject);
            return Err(SessionError::new(what));
        }
        let name = self.rules.apply(&facts.subject);
        name.map(Some).ok_or_else(|| {
            let what = format!("no rule of ssl.principal.mapping.rules matches {}", facts.subject);
            SessionError::new(what)
        })
    }

    /// Reads the stores again, and uses them for new connections if they have changed and are sound.
    pub fn reload(&self, now_s: i64) -> Reload {
        let old = self.loaded.load();
        if !old.material.has_changed(&self.settings) {
            return Reload::Unchanged;
        }
        let checked = load(&self.settings).and_then(|new| {
            old.material.may_become(&new.material, &self.settings, now_s)?;
            if self.is_among_brokers {
                // Brokers whose stores have not changed yet go on connecting, and are connected to.
                verify_among(&self.settings, &new, &new)?;
                verify_among(&self.settings, &new, &old)?;
                verify_among(&self.settings, &old, &new)?;
            }
            Ok(new)
        });
        match checked {
            Ok(new) => {
                self.loaded.store(Arc::new(new));
                Reload::Loaded
            }
            Err(error) => Reload::Kept(error),
        }
    }

    /// The certificates in use, with the end of each.
    pub fn expiring(&self) -> Vec<Expiring> {
        self.loaded.load().material.expiring.clone()
    }

    /// Whether a client without a certificate is refused.
    pub fn requires_clients(&self) -> bool {
        self.settings.client_auth == ClientAuth::Required
    }

    /// Whether clients may show a certificate.
    pub fn asks_clients(&self) -> bool {
        self.settings.client_auth != ClientAuth::None
    }
}

fn load(settings: &TlsSettings) -> Result<Loaded, TlsError> {
    let provider = Arc::new(suites::provider(settings)?);
    let material = Material::read(settings, &provider)?;
    let config = config(settings, &material, &provider)?;
    Ok(Loaded { config: Arc::new(config), material })
}

fn config(
    settings: &TlsSettings,
    material: &Material,
    provider: &Arc<CryptoProvider>,
) -> Result<ServerConfig, TlsError> {
    let verifier = match (settings.client_auth, &material.trust) {
        (ClientAuth::None, _) => WebPkiClientVerifier::no_client_auth(),
        (asked, Some(trust)) => {
            trust.of_clients(provider, asked == ClientAuth::Required).map_err(|problem| {
                TlsError::new(
                    "ssl.truststore.location",
                    problem,
                    "ssl.truststore.location=/etc/barnabas/ca.pem",
                )
            })?
        }
        (_, None) => {
            return Err(TlsError::new(
                "ssl.truststore.location",
                "is not set, nor is ssl.truststore.certificates: ssl.client.auth asks clients for certificates, and none \
                 would be trusted",
                "ssl.truststore.location=/etc/barnabas/ca.pem",
            ));
        }
    };
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&suites::versions(settings)?)
        .map_err(|error| suites::unusable(&error))?;
    let resolver = Arc::new(KeyByScheme(material.keys.clone()));
    let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(resolver);
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = provider::ticketer().map_err(|error| suites::unusable(&error))?;
    config.send_tls13_tickets = TICKETS;
    Ok(config)
}

/// A client with one material must reach a server with the other, by a real handshake.
fn verify_among(settings: &TlsSettings, client: &Loaded, server: &Loaded) -> Result<(), TlsError> {
    let problem = |why: String| {
        TlsError::new(
            "ssl.truststore.location",
            format!("a broker with these stores cannot connect to one with these stores: {why}"),
            "ssl.truststore.location=/etc/barnabas/ca.pem",
        )
    };
    let mut dialling = ClientTls::session_of(settings, &client.material)?;
    let mut accepting = Session::server(server.config.clone()).map_err(|error| problem(error.to_string()))?;
    Session::meet(&mut dialling, &mut accepting).map_err(|error| problem(error.to_string()))
}

/// The first key that can sign as the client asks: a store may hold an RSA and an EC key.
#[derive(Debug)]
struct KeyByScheme(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for KeyByScheme {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        let fitting = self.0.iter().find(|key| key.key.choose_scheme(schemes).is_some());
        fitting.or(self.0.first()).cloned()
    }
}
