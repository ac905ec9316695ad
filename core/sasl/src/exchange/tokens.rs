//! One mechanism's exchange on the server, token by token.
//!
//! Each step consumes the state before it. A refusal names the user that the client claimed to be, for the delay that
//! grows by user; it is not the client's to read.

use barnabas_base::TimestampMs;

use super::{SaslMechanism, Surroundings};
use crate::kerberos::{self, Acceptor, Fault};
use crate::oauth::{CONFIRMATION, FirstMessage, INVALID_TOKEN};
use crate::scram::{self, Challenged, Identity, Received};
use crate::{Login, Refusal, plain};

/// Characters of a claimed name that are kept.
const USER_CHARS_MAX: usize = 256;

/// The token that is awaited.
#[derive(Debug)]
pub(super) enum Tokens {
    Plain,
    ScramFirst(scram::Mechanism),
    ScramFinal(Box<Challenged>, String),
    Bearer,
    /// The client has read that its bearer token is refused, and confirms it. With the reason, for the log.
    BearerRefused(String),
    Ticket,
    /// The client's ticket is right; the layer is agreed on.
    TicketAccepted(Box<kerberos::Layer>, Login),
}

/// What comes of a token.
#[derive(Debug)]
pub(super) enum Token {
    Next(Vec<u8>, Tokens),
    Done(Vec<u8>, Login),
    Refused(Refused),
}

/// A refusal, and what only the log may show.
#[derive(Debug)]
pub(super) struct Refused {
    pub refusal: Refusal,
    /// Where the client has said so.
    pub user: Option<String>,
    /// Instead of the refusal's own text.
    pub log: Option<String>,
    /// The connection is closed without an answer, so that the client tries again.
    pub is_temporary: bool,
}

impl Refused {
    pub fn new(refusal: Refusal, user: Option<String>) -> Self {
        Self { refusal, user, log: None, is_temporary: false }
    }

    /// For the log.
    pub fn why(&self) -> String {
        self.log.clone().unwrap_or_else(|| self.refusal.to_string())
    }
}

impl Tokens {
    pub fn new(mechanism: SaslMechanism) -> Self {
        match mechanism {
            SaslMechanism::Plain => Self::Plain,
            SaslMechanism::Scram(mechanism) => Self::ScramFirst(mechanism),
            SaslMechanism::OAuthBearer => Self::Bearer,
            SaslMechanism::Gssapi => Self::Ticket,
        }
    }

    pub fn is_first(&self) -> bool {
        matches!(self, Self::Plain | Self::ScramFirst(_) | Self::Bearer | Self::Ticket)
    }

    pub fn take(self, token: &[u8], now: TimestampMs, around: &dyn Surroundings) -> Token {
        match self {
            Self::Plain => match plain::log_in(token, around.plain_users()) {
                Ok(login) => Token::Done(Vec::new(), login),
                Err(refusal) => refused(refusal, user_of_plain(token)),
            },
            Self::ScramFirst(mechanism) => scram_first(mechanism, token, now, around),
            Self::ScramFinal(challenged, user) => match challenged.finish(token) {
                Ok((answer, login)) => Token::Done(answer, login),
                Err(refusal) => refused(refusal, Some(user)),
            },
            Self::Bearer => bearer(token, now, around),
            Self::BearerRefused(why) if token == CONFIRMATION => {
                let refusal = Refusal::told(INVALID_TOKEN);
                Token::Refused(Refused { refusal, user: None, log: Some(why), is_temporary: false })
            }
            Self::BearerRefused(why) => {
                refused(Refusal::hidden(format!("{why}; and the client did not confirm the refusal")), None)
            }
            Self::Ticket => ticket(token, now, around),
            Self::TicketAccepted(layer, login) => match layer.take(token) {
                Ok((answer, Some(layer))) => {
                    Token::Next(answer, Self::TicketAccepted(Box::new(layer), login))
                }
                Ok((answer, None)) => Token::Done(answer, login),
                Err(fault) => ticket_refused(&fault, Some(shortened(&login.name))),
            },
        }
    }
}

fn scram_first(
    mechanism: scram::Mechanism,
    token: &[u8],
    now: TimestampMs,
    around: &dyn Surroundings,
) -> Token {
    let received = match Received::new(mechanism, token) {
        Ok(received) => received,
        Err(refusal) => return refused(refusal, None),
    };
    let (nonce, decoy) = (around.nonce(), around.decoy());
    let (challenge, challenged, user) = match received.identity() {
        Identity::User(user) => {
            let (found, user) = (around.scram(mechanism, user), shortened(user));
            let (challenge, challenged) = received.challenge(found.as_ref(), &decoy, &nonce);
            (challenge, challenged, user)
        }
        Identity::Token(id) => {
            let found = around.token(mechanism, id).filter(|token| token.expires > now);
            let id = shortened(id);
            let found = found.as_ref().map(|token| (&token.credential, token.owner.as_str(), token.expires));
            let (challenge, challenged) = received.challenge_token(found, &decoy.of_tokens(), &nonce);
            (challenge, challenged, id)
        }
    };
    Token::Next(challenge, Tokens::ScramFinal(Box::new(challenged), user))
}

fn bearer(token: &[u8], now: TimestampMs, around: &dyn Surroundings) -> Token {
    let first = match FirstMessage::parse(token) {
        Ok(first) => first,
        Err(refusal) => return refused(refusal, None),
    };
    match around.bearer(first.token, now) {
        Err(why) => Token::Next(INVALID_TOKEN.as_bytes().to_vec(), Tokens::BearerRefused(why)),
        Ok(bearer) => match first.authzid {
            Some(authzid) if authzid != bearer.principal => {
                let what = format!(
                    "Authentication failed: Client requested an authorization id ({authzid}) that is different from the \
                     token's principal name ({})",
                    bearer.principal
                );
                refused(Refusal::told(what), Some(shortened(&bearer.principal)))
            }
            _ => {
                let expires = Some(bearer.expires);
                let login = Login { name: bearer.principal, expires, token: None };
                Token::Done(Vec::new(), login)
            }
        },
    }
}

/// Kafka names the user after the exchange, and closes the connection where no rule fits. Here the client reads that it
/// is refused. The session is not bound to the ticket's end: Java does not show it, so Kafka does not know it
/// (KIP-368).
fn ticket(token: &[u8], now: TimestampMs, around: &dyn Surroundings) -> Token {
    let Some(acceptor) = around.kerberos() else {
        return refused(Refusal::hidden("this listener has no keys of Kerberos"), None);
    };
    let accept = |acceptor: &Acceptor| {
        acceptor.accept(token, now, &around.secrets(), |digest, until| around.note(digest, until, now))
    };
    let accepted = match accept(acceptor) {
        // A ticket made with a key that was added a moment ago.
        Err((client, fault @ (Fault::NoKey(_) | Fault::WrongKey(_)))) => {
            around.kerberos_renewed().map_or(Err((client, fault)), |renewed| accept(&renewed))
        }
        judged => judged,
    };
    let accepted = match accepted {
        Ok(accepted) => accepted,
        Err((client, fault)) => {
            return ticket_refused(&fault, client.as_deref().map(shortened));
        }
    };
    match acceptor.rules.user_of(&accepted.client) {
        Ok(name) => {
            let next = Tokens::TicketAccepted(Box::new(accepted.next), Login::of(name));
            Token::Next(accepted.answer, next)
        }
        Err(why) => ticket_refused(&Fault::NoUser(why), Some(shortened(&accepted.client.to_string()))),
    }
}

fn ticket_refused(fault: &Fault, user: Option<String>) -> Token {
    let is_temporary = fault.is_temporary();
    Token::Refused(Refused { is_temporary, ..Refused::new(Refusal::hidden(fault.to_string()), user) })
}

fn refused(refusal: Refusal, user: Option<String>) -> Token {
    Token::Refused(Refused::new(refusal, user))
}

fn user_of_plain(token: &[u8]) -> Option<String> {
    let user = token.split(|&byte| byte == 0).nth(1)?;
    std::str::from_utf8(user).ok().filter(|user| !user.is_empty()).map(shortened)
}

fn shortened(name: &str) -> String {
    name.chars().take(USER_CHARS_MAX).collect()
}
