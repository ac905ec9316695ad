//! A listener's TLS: the configuration that new connections get, made of its `ssl.*` keys, and made again when these or
//! its stores change.
//!
//! Connections that are open keep the configuration that they began with. Ticket keys belong to one configuration: a
//! session of before a reload is not resumed after it, so no certificate outlives its removal from the trust store by
//! way of a ticket.
//!
//! Always true: a configuration that is in use was complete; a reload that fails leaves the one before in use.

use crate::stores::loaded::{self, Current};
use crate::stores::material::{Material, Reload};
use crate::{ClientTls, Session, SessionError, provider, suites};
use barnabas_certificates::{ClientAuth, Expiring, Facts, MappingRules, TlsError, TlsSettings};
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::server::{
    ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// One session ticket for each full handshake: clients use one.
const TICKETS: usize = 1;

/// See the file's header.
#[derive(Debug)]
pub struct ServerTls {
    /// Brokers connect to each other here: new material must verify against itself and the old one.
    is_among_brokers: bool,
    loaded: Current<Served>,
}

/// What is made of the settings.
#[derive(Debug)]
struct Served {
    config: Arc<ServerConfig>,
    rules: MappingRules,
}

type Loaded = loaded::Loaded<Served>;

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
        let loaded = Loaded::read(settings, served)?;
        if is_among_brokers {
            verify_among(&loaded, &loaded)?;
        }
        Ok(Self { is_among_brokers, loaded: Current::new(loaded) })
    }

    /// What is worth a line in the log at the start and after each reload.
    pub fn warnings(&self) -> Vec<String> {
        self.loaded.get().warnings()
    }

    /// The subject of this listener's certificate, if clients that check host names refuse it at `host`.
    pub fn mismatched_subject(&self, host: &str) -> Option<String> {
        let loaded = self.loaded.get();
        let own = loaded.material.own.as_ref()?;
        let name = ServerName::try_from(host).ok();
        let is_for = |key: &Arc<CertifiedKey>| {
            let certificate = key.cert.first().and_then(|own| ParsedCertificate::try_from(own).ok());
            certificate.zip(name.as_ref()).is_some_and(|(own, name)| verify_server_name(&own, name).is_ok())
        };
        (!loaded.material.keys.iter().any(is_for)).then(|| own.subject.clone())
    }

    /// A new connection's session.
    ///
    /// # Errors
    /// rustls' own; with a sound configuration there are none.
    pub fn accept(&self) -> Result<Session, SessionError> {
        Session::server(self.loaded.get().config.config.clone())
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
        let name = self.loaded.get().config.rules.apply(&facts.subject);
        name.map(Some).ok_or_else(|| {
            let what = format!("no rule of ssl.principal.mapping.rules matches {}", facts.subject);
            SessionError::new(what)
        })
    }

    /// Reads the stores again, and uses them for new connections if they have changed and are sound.
    pub fn reload(&self, now_s: i64) -> Reload {
        self.loaded.reload(now_s, |old, settings| self.next(old, settings, now_s))
    }

    /// Uses `settings` for new connections, if they differ from those in use and are sound.
    pub fn reconfigure(&self, settings: &TlsSettings, now_s: i64) -> Reload {
        self.loaded.reconfigure(settings, |old, settings| self.next(old, settings, now_s))
    }

    /// Whether [`Self::reconfigure`] would take `settings`.
    ///
    /// # Errors
    /// What speaks against them, with the key.
    pub fn check(&self, settings: &TlsSettings, now_s: i64) -> Result<(), TlsError> {
        let old = self.loaded.get();
        if *settings == old.settings { Ok(()) } else { self.next(&old, settings.clone(), now_s).map(drop) }
    }

    fn next(&self, old: &Loaded, settings: TlsSettings, now_s: i64) -> Result<Loaded, TlsError> {
        let new = old.next(settings, served, now_s)?;
        if self.is_among_brokers {
            // Brokers whose stores have not changed yet go on connecting, and are connected to.
            verify_among(&new, &new)?;
            verify_among(&new, old)?;
            verify_among(old, &new)?;
        }
        Ok(new)
    }

    /// The certificates in use, with the end of each.
    pub fn expiring(&self) -> Vec<Expiring> {
        self.loaded.get().material.expiring.clone()
    }

    /// Whether a client without a certificate is refused.
    pub fn requires_clients(&self) -> bool {
        self.loaded.get().settings.client_auth == ClientAuth::Required
    }

    /// Whether clients may show a certificate.
    pub fn asks_clients(&self) -> bool {
        self.loaded.get().settings.client_auth != ClientAuth::None
    }
}

fn served(
    settings: &TlsSettings,
    material: &Material,
    provider: &Arc<CryptoProvider>,
) -> Result<Served, TlsError> {
    let rules = MappingRules::parse(&settings.principal_mapping_rules)?;
    Ok(Served { config: Arc::new(config(settings, material, provider)?), rules })
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
    // As Java's servers do: the order is that of `ssl.cipher.suites`.
    config.ignore_client_order = true;
    Ok(config)
}

/// A client with one material must reach a server with the other, by a real handshake. Revocation lists are left out:
/// one that names this node's certificate must be taken as well.
fn verify_among(client: &Loaded, server: &Loaded) -> Result<(), TlsError> {
    let problem = |why: String| {
        TlsError::new(
            "ssl.truststore.location",
            format!("a broker with these stores cannot connect to one with these stores: {why}"),
            "ssl.truststore.location=/etc/barnabas/ca.pem",
        )
    };
    let mut dialling = ClientTls::session_of(&client.settings, &client.material)?;
    let provider = Arc::new(suites::provider(&server.settings)?);
    let accepted = Arc::new(config(&server.settings, &server.material.without_lists(), &provider)?);
    let mut accepting = Session::server(accepted).map_err(|error| problem(error.to_string()))?;
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
