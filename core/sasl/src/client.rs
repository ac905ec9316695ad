//! The client's exchange, for links to other nodes: one mechanism, token by token. Frames are the caller's.
//!
//! [`ClientExchange::begin`] → a token → [`ClientExchange::challenged`] with what the server answers, until it gives no
//! token. PBKDF2 runs in `challenged`: call it where nothing else waits.
//!
//! # Source
//! Kafka 4 `SaslClientAuthenticator`.

use zeroize::Zeroizing;

use crate::exchange::SaslMechanism;
use crate::jaas::LoginModule;
use crate::kerberos::{Distrust, Initiator, Secrets, Ticket};
use crate::scram::{self, ClientChallenged, ClientFault};
use crate::{Secret, oauth, plain};

/// What a node logs in to others with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientLogin {
    Plain { user: String, password: Secret },
    Scram { mechanism: scram::Mechanism, user: String, password: Secret, is_token: bool },
    Bearer { token: Secret, extensions: Vec<(String, String)> },
    Ticket(Box<TicketLogin>),
}

/// A ticket for the service on the other side, and what no other login has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketLogin {
    pub ticket: Ticket,
    /// Microseconds since 1970.
    pub at_us: i64,
    /// [`Secrets::BYTES`] random bytes.
    pub secrets: Secret,
}

/// Why there is no login.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    #[error(transparent)]
    Scram(#[from] ClientFault),
    #[error(transparent)]
    Ticket(#[from] Distrust),
    #[error("the server refuses the token: {0}")]
    Bearer(String),
    #[error("{mechanism}: the server answers with {bytes} bytes where it should have finished")]
    Unexpected { mechanism: &'static str, bytes: usize },
}

/// An exchange under way.
#[derive(Debug)]
pub struct ClientExchange(State);

#[derive(Debug)]
enum State {
    Last(&'static str),
    ScramFirst(scram::Client, Secret),
    ScramFinal(ClientChallenged),
    Bearer,
    Ticket(Box<Initiator>),
}

/// A token of the client.
pub type Token = Zeroizing<Vec<u8>>;

impl ClientLogin {
    /// From a login module. `None`: the module has no credential for this mechanism.
    pub fn of(mechanism: SaslMechanism, module: &LoginModule) -> Option<Self> {
        match (mechanism, module) {
            (SaslMechanism::Plain, LoginModule::Plain(login)) => {
                let (user, password) = (login.username.clone()?, login.password.clone()?);
                Some(Self::Plain { user, password })
            }
            (SaslMechanism::Scram(mechanism), LoginModule::Scram(login)) => {
                let (user, password) = (login.username.clone()?, login.password.clone()?);
                Some(Self::Scram { mechanism, user, password, is_token: login.token_auth })
            }
            _ => None,
        }
    }

    /// For SaslHandshake.
    pub fn mechanism(&self) -> &'static str {
        match self {
            Self::Plain { .. } => SaslMechanism::Plain.name(),
            Self::Scram { mechanism, .. } => mechanism.name(),
            Self::Bearer { .. } => SaslMechanism::OAuthBearer.name(),
            Self::Ticket(_) => SaslMechanism::Gssapi.name(),
        }
    }
}

impl ClientExchange {
    /// The first token. `nonce` is fresh, random and printable, without commas.
    pub fn begin(login: &ClientLogin, nonce: &str) -> (Token, Self) {
        match login {
            ClientLogin::Plain { user, password } => {
                (plain::client_message(user, password), Self(State::Last(login.mechanism())))
            }
            ClientLogin::Scram { mechanism, user, password, is_token } => {
                let (message, client) = scram::Client::new(*mechanism, user, *is_token, nonce);
                (Zeroizing::new(message), Self(State::ScramFirst(client, password.clone())))
            }
            ClientLogin::Bearer { token, extensions } => {
                (oauth::client_message(token, extensions), Self(State::Bearer))
            }
            ClientLogin::Ticket(login) => {
                let mut secrets = Secrets([0; Secrets::BYTES]);
                secrets.0.iter_mut().zip(login.secrets.bytes()).for_each(|(into, byte)| *into = *byte);
                let (token, initiator) = Initiator::begin(&login.ticket, login.at_us, &secrets);
                (Zeroizing::new(token), Self(State::Ticket(Box::new(initiator))))
            }
        }
    }

    /// The answer to a challenge. `None`: the server knows the client now, and has proved itself where the mechanism
    /// asks for that.
    ///
    /// # Errors
    /// The server is not who it should be, or refuses.
    pub fn challenged(self, challenge: &[u8]) -> Result<Option<(Token, Self)>, LoginError> {
        match self.0 {
            State::Last(_) if challenge.is_empty() => Ok(None),
            State::Last(mechanism) => Err(LoginError::Unexpected { mechanism, bytes: challenge.len() }),
            State::ScramFirst(client, password) => {
                let (answer, challenged) = client.answer(challenge, &password)?;
                Ok(Some((Zeroizing::new(answer), Self(State::ScramFinal(challenged)))))
            }
            State::ScramFinal(challenged) => {
                challenged.verify(challenge)?;
                Ok(None)
            }
            State::Ticket(initiator) => {
                let next = initiator.answer(challenge)?;
                Ok(next.map(|(token, rest)| (Zeroizing::new(token), Self(State::Ticket(Box::new(rest))))))
            }
            State::Bearer if challenge.is_empty() => Ok(None),
            State::Bearer => {
                let shown: String = String::from_utf8_lossy(challenge).chars().take(200).collect();
                Err(LoginError::Bearer(shown))
            }
        }
    }
}
