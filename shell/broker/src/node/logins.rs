//! Who may log in to this node's listeners, and what this node logs in to others with. Data, and the counts of refused
//! logins.
//!
//! Listeners' settings are swapped as a whole when dynamic configurations change: a new password of PLAIN's users, or
//! of this node itself, takes effect with the next login. SCRAM credentials are the image's.
//!
//! `keytabs` holds the keys of GSSAPI.
//!
//! Neighbours: requests/connection/login.rs, which authenticates clients; shell/net's links, which log in.

pub mod keytabs;

use crate::config::sasl;
use arc_swap::ArcSwap;
use barnabas_base::{Map, MonotonicMs, Text, TimestampMs};
use barnabas_config::sasl::{OwnLogin, SaslConfig, SaslListener};
use barnabas_config::{ConfigError, Listeners};
use barnabas_metadata::Image;
use barnabas_metadata::access::{Scram, ScramMechanism};
use barnabas_metadata::config::BrokerConfig;
use barnabas_net::links::{LinkLogin, LoginSource, LoginWith};
use barnabas_net::tickets::TicketSource;
use barnabas_oauth::{IssuerKeys, TokenSource, check_token};
use barnabas_sasl::Secret;
use barnabas_sasl::client::ClientLogin;
use barnabas_sasl::delay::Delays;
use barnabas_sasl::exchange::TokenCredential;
use barnabas_sasl::jaas::Section;
use barnabas_sasl::oauth::Bearer;
use barnabas_sasl::oauth::settings::Validator;
use barnabas_sasl::scram::{Decoy, ITERATIONS_MIN, Mechanism, ScramCredential, TokenKey, digest};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a start waits for the keys that tokens are signed with. Clients that come back meanwhile would be refused,
/// and many do not try again.
const FIRST_KEYS: Duration = Duration::from_secs(10);

/// Credentials that the secret of decoys is made of.
const DECOY_CREDENTIALS: usize = 8;

/// See the file's header.
#[derive(Debug, Default)]
pub struct Logins {
    listeners: ArcSwap<Vec<Option<Arc<SaslListener>>>>,
    pub to_brokers: Option<LinkLogin>,
    pub to_controllers: Option<LinkLogin>,
    /// Of the listeners with OAUTHBEARER: one for all that name the same issuer alike.
    issuers: ArcSwap<Vec<Arc<IssuerKeys>>>,
    /// What the links have their tokens and tickets from: to brokers, to controllers.
    sources: Mutex<[Option<Own>; 2]>,
    delays: Mutex<Delays>,
    /// Of the listeners with GSSAPI.
    pub keytabs: keytabs::Keytabs,
    /// With the credentials that it was made from.
    decoy: Mutex<Option<(Scram, Decoy)>>,
    /// `delegation.token.secret.key`; `None`: there are no delegation tokens.
    token_key: Option<TokenKey>,
    /// Those that were used here: at most twice as many as there are tokens, and [`TOKENS_MIN`].
    tokens: Mutex<Map<(Mechanism, Text), ScramCredential>>,
    /// `None`: nothing is read again.
    source: Option<Source>,
}

/// Credentials of so many tokens are kept without looking which tokens still exist.
const TOKENS_MIN: usize = 64;

/// What the settings are read with.
#[derive(Debug, Clone)]
pub struct Source {
    pub listeners: Listeners,
    pub jaas_file: Vec<Section>,
}

impl Source {
    /// # Errors
    /// See [`sasl::read`].
    pub fn read(&self, config: &BrokerConfig) -> Result<SaslConfig, ConfigError> {
        sasl::read(config, &self.listeners, &self.jaas_file)
    }
}

/// A source of tokens, as links ask it.
#[derive(Debug)]
struct Tokens(Arc<TokenSource>);

impl LoginSource for Tokens {
    fn login(&self, _: &str) -> Result<ClientLogin, String> {
        self.0.login()
    }
}

/// A source of tickets, as links ask it.
#[derive(Debug)]
struct Tickets(Arc<TicketSource>);

impl LoginSource for Tickets {
    fn login(&self, host: &str) -> Result<ClientLogin, String> {
        self.0.login(host)
    }
}

/// What a link's credentials come from.
#[derive(Debug)]
enum Own {
    Tokens(Arc<TokenSource>),
    Tickets(Arc<TicketSource>),
}

impl Logins {
    /// Waits up to ten seconds for the keys of an issuer that answers slowly; a start goes on without those of one that
    /// does not.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(source: Source, config: SaslConfig, token_key: Option<TokenKey>) -> io::Result<Self> {
        let mut logins = Self { source: Some(source), token_key, ..Self::default() };
        let issuers = logins.issuers_of(&config)?;
        issuers.iter().for_each(|issuer| issuer.await_first(FIRST_KEYS));
        let warnings =
            config.listeners.iter().flatten().filter_map(|listener| listener.tokens.as_ref()?.warning());
        for warning in warnings {
            tracing::warn!("OAUTHBEARER: {warning}");
        }
        logins.issuers = ArcSwap::from_pointee(issuers);
        logins.keytabs.configure(&config);
        logins.listeners = ArcSwap::from_pointee(config.listeners);
        let mut links = [config.to_brokers, config.to_controllers].into_iter().enumerate();
        let mut link = || {
            let (place, own) = links.next()?;
            own.map(|own| LinkLogin::new(logins.login_with(place, own)))
        };
        let (to_brokers, to_controllers) = (link(), link());
        (logins.to_brokers, logins.to_controllers) = (to_brokers, to_controllers);
        Ok(logins)
    }

    /// Whether the logins of a changed configuration can be used.
    ///
    /// # Errors
    /// What cannot. Where the logins of the one before could not be used either, nothing is refused: its mistakes may
    /// be mended one by one.
    pub fn check(&self, before: &BrokerConfig, after: &BrokerConfig) -> Result<(), String> {
        let Some(source) = &self.source else { return Ok(()) };
        match source.read(after) {
            Err(error) if source.read(before).is_ok() => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    /// The dynamic configurations have changed. A configuration that cannot be applied is logged and leaves everything
    /// as it was.
    pub fn reconfigure(&self, config: &BrokerConfig) {
        let Some(source) = &self.source else { return };
        let read = source.read(config).map_err(|error| error.to_string());
        let read = read.and_then(|read| match self.issuers_of(&read) {
            Ok(issuers) => Ok((read, issuers)),
            Err(error) => Err(error.to_string()),
        });
        match read {
            Ok((read, issuers)) => {
                // A listener's issuer is there before the listener.
                let before = self.issuers.load_full();
                self.issuers.store(Arc::new(before.iter().chain(&issuers).cloned().collect()));
                self.keytabs.configure(&read);
                self.listeners.store(Arc::new(read.listeners));
                self.issuers.store(Arc::new(issuers));
                for (place, (link, own)) in
                    [(&self.to_brokers, read.to_brokers), (&self.to_controllers, read.to_controllers)]
                        .into_iter()
                        .enumerate()
                {
                    if let (Some(link), Some(own)) = (link, own) {
                        link.set(self.login_with(place, own));
                    }
                }
            }
            Err(error) => {
                tracing::warn!(
                    error,
                    "the dynamic SASL configuration is not applied; the one before goes on"
                );
            }
        }
    }

    /// The issuers that these listeners need. Those that run already go on.
    fn issuers_of(&self, config: &SaslConfig) -> io::Result<Vec<Arc<IssuerKeys>>> {
        let running = self.issuers.load_full();
        let mut issuers: Vec<Arc<IssuerKeys>> = Vec::new();
        for listener in config.listeners.iter().flatten() {
            let Some(Validator::Signed { keys, .. }) = &listener.tokens else { continue };
            let is_same = |issuer: &&Arc<IssuerKeys>| issuer.settings() == keys.as_ref();
            if issuers.iter().find(is_same).is_none() {
                let issuer = match running.iter().find(is_same) {
                    Some(issuer) => issuer.clone(),
                    None => Arc::new(IssuerKeys::start(keys.as_ref().clone())?),
                };
                issuers.push(issuer);
            }
        }
        Ok(issuers)
    }

    /// A source whose settings have not changed keeps its token, or its tickets.
    fn login_with(&self, place: usize, own: OwnLogin) -> LoginWith {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sources[place].take();
        let (own, with): (Own, Arc<dyn LoginSource>) = match (own, before) {
            (OwnLogin::Fixed(login), _) => return LoginWith::Fixed(login),
            (OwnLogin::Tokens(settings), before) => {
                let source = match before {
                    Some(Own::Tokens(source)) if *source.settings() == *settings => source,
                    _ => Arc::new(TokenSource::new(*settings)),
                };
                (Own::Tokens(source.clone()), Arc::new(Tokens(source)))
            }
            (OwnLogin::Tickets(settings), before) => {
                let source = match before {
                    Some(Own::Tickets(source)) if *source.settings() == *settings => source,
                    _ => Arc::new(TicketSource::new(*settings)),
                };
                (Own::Tickets(source.clone()), Arc::new(Tickets(source)))
            }
        };
        sources[place] = Some(own);
        LoginWith::Source(with)
    }

    /// Judges a token of OAUTHBEARER on a listener. Does not wait.
    ///
    /// # Errors
    /// What is wrong with it, for the log.
    pub fn bearer(&self, listener: &SaslListener, token: &str, now: TimestampMs) -> Result<Bearer, String> {
        let validator = listener.tokens.as_ref().ok_or("this listener does not take OAUTHBEARER")?;
        let issuers = self.issuers.load();
        let issuer = match validator {
            Validator::Signed { keys, .. } => {
                issuers.iter().find(|issuer| issuer.settings() == keys.as_ref())
            }
            Validator::Unsecured(_) => None,
        };
        let checked = check_token(validator, token, now, issuer.map(Arc::as_ref));
        checked.map_err(|fault| fault.to_string())
    }

    /// Whether a listener uses SASL.
    pub fn is_used(&self) -> bool {
        self.listeners.load().iter().any(Option::is_some)
    }

    /// How the listener at this place authenticates; `None`: it does not use SASL.
    pub fn listener(&self, place: usize) -> Option<Arc<SaslListener>> {
        self.listeners.load().get(place).cloned().flatten()
    }

    /// A client is refused. Returns for how many milliseconds its answer is held back.
    pub fn refused(&self, address: IpAddr, user: Option<&str>, least_ms: u64, now: MonotonicMs) -> u64 {
        let mut delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
        delays.refused(address, user, least_ms, now)
    }

    /// The key of delegation tokens; `None`: there are none.
    pub fn token_key(&self) -> Option<&TokenKey> {
        self.token_key.as_ref()
    }

    /// The credential of a token that the image has, if it was derived before.
    pub fn token(&self, image: &Image, mechanism: Mechanism, id: &str) -> Option<TokenCredential> {
        let token = image.tokens.get(id)?;
        let known = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let credential = known.get(&(mechanism, Text::from(id)))?.clone();
        let owner = token.owner.split_once(':').map_or(&*token.owner, |(_, name)| name).to_owned();
        Some(TokenCredential { credential, owner, expires: token.expires.min(token.expires_at_the_latest) })
    }

    /// Keeps the credential of a token. It never changes while there is the token.
    pub fn keep_token(&self, image: &Image, id: &str, credential: ScramCredential) {
        let mut known = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= TOKENS_MIN.max(2 * image.tokens.len()) {
            known.retain(|(_, id), _| image.tokens.contains_key(id));
        }
        known.insert((credential.mechanism(), Text::from(id)), credential);
    }

    /// Stands in for unknown users. Made of the credentials themselves, which every broker of the cluster has and no
    /// client knows: all brokers answer alike for a name that does not exist. It is made of those with the smallest
    /// digests, so that the salts of unknown names seldom change, and of several: one user alone knows its own
    /// credential, and not the secret.
    pub fn decoy(&self, image: &Image) -> Decoy {
        let mut known = self.decoy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((scram, decoy)) = &*known
            && scram.ptr_eq(&image.scram)
        {
            return decoy.clone();
        }
        let keys = image.scram.values().map(|known| [&known.stored_key[..], &known.server_key[..]].concat());
        let digests: BTreeSet<[u8; 32]> = keys.map(|keys| digest(&keys)).collect();
        let smallest: Vec<[u8; 32]> = digests.into_iter().take(DECOY_CREDENTIALS).collect();
        let counts = image.scram.iter().filter_map(|((kind, _), known)| {
            let iterations = u32::try_from(known.iterations).ok()?;
            Some((Mechanism::from_code(kind.code())?, iterations))
        });
        let secret = Secret::from(digest(&smallest.concat()).to_vec());
        let decoy = Decoy::new(secret, ITERATIONS_MIN).with_counts(counts);
        *known = Some((image.scram.clone(), decoy.clone()));
        decoy
    }
}

/// A user's credential as the metadata log has it. One that cannot be is none.
pub fn scram(image: &Image, mechanism: Mechanism, user: &str) -> Option<ScramCredential> {
    let kind = ScramMechanism::from_code(mechanism.code())?;
    let known = image.scram.get(&(kind, Text::from(user)))?;
    let secret = |bytes: &[u8]| Secret::from(bytes);
    let (stored, server) = (secret(&known.stored_key), secret(&known.server_key));
    ScramCredential::new(mechanism, known.salt.to_vec(), stored, server, known.iterations.into()).ok()
}

/// Whether a user still has a credential.
pub fn has_scram(image: &Image, mechanism: Mechanism, user: &str) -> bool {
    ScramMechanism::from_code(mechanism.code())
        .is_some_and(|kind| image.scram.contains_key(&(kind, Text::from(user))))
}
