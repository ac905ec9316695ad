//! The client's side of the GSS-API mechanism for Kerberos: shows a ticket to a service, which must prove that it could
//! read it, and agrees on no security layer.
//!
//! The tokens are those of core/sasl/src/kerberos/acceptor.rs, with mutual authentication.
//!
//! # Source
//! RFC 4121, RFC 4752.

use super::acceptor::{AP_REP, AP_REQ, GSS_CHECKSUM, MUTUAL, NO_LAYER, Secrets, frame, unframe};
use super::enctype::{Key, Usage};
use super::messages::{self, ReplyPart};
use super::wrap::{ACCEPTOR_SUBKEY, SENT_BY_ACCEPTOR, unwrap, wrap};
use super::{Principal, Ticket};
use barnabas_base::TimestampMs;

/// The flag of GSS-API for signed tokens: both ends need it of the context.
const INTEGRITY: u32 = 32;

/// Why the client does not trust the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    #[error("the service's first answer is wrong: {0}")]
    Reply(&'static str),
    #[error("the service's offer is wrong: {0}")]
    Offer(&'static str),
    #[error("the service goes on after the login")]
    Further,
}

/// A login under way.
#[derive(Debug)]
pub struct Initiator {
    client: Principal,
    session: Key,
    own: Key,
    at_us: i64,
    sequence: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    Reply,
    Offer { key: Key, flags: u8 },
    Last,
}

impl Initiator {
    /// The first token. `at_us`: microseconds since 1970, other ones for each login.
    pub fn begin(ticket: &Ticket, at_us: i64, secrets: &Secrets) -> (Vec<u8>, Self) {
        let (confounder, own, sequence) = secrets.split();
        let session = ticket.key.clone();
        let enctype = session.enctype();
        let own =
            Key::new(enctype, &own[..enctype.key_bytes()]).expect("invariant: cut to the type's length");
        let flags = (MUTUAL | INTEGRITY).to_le_bytes();
        let checksum = [&16_u32.to_le_bytes()[..], &[0; 16], &flags].concat();
        let plain =
            messages::authenticator(&ticket.client, (GSS_CHECKSUM, &checksum), at_us, Some((&own, sequence)));
        let cipher = session.encrypt(Usage::Authenticator, confounder, &plain);
        let cipher = cipher.expect("invariant: the key's type has a cipher");
        let request = messages::request(true, &ticket.bytes, enctype, &cipher);
        let client = ticket.client.clone();
        let state = State::Reply;
        (frame(AP_REQ, &request), Self { client, session, own, at_us, sequence, state })
    }

    /// The answer to a token of the service. `None`: it has proved itself, and this client is known.
    ///
    /// # Errors
    /// It is not the service that the ticket is for, or wants a security layer.
    pub fn answer(mut self, token: &[u8]) -> Result<Option<(Vec<u8>, Self)>, Distrust> {
        match &self.state {
            State::Reply => {
                self.state = self.reply(token).map_err(Distrust::Reply)?;
                Ok(Some((Vec::new(), self)))
            }
            State::Offer { key, flags } => {
                let offer = unwrap(key, flags | SENT_BY_ACCEPTOR, token).map_err(Distrust::Offer)?;
                if offer.len() != 4 || offer[0] & NO_LAYER == 0 {
                    return Err(Distrust::Offer("it wants a security layer, and this client speaks none"));
                }
                // No authorization id: the service takes the ticket's.
                let choice = wrap(key, *flags, self.sequence, &[NO_LAYER, 0, 0, 0]);
                self.state = State::Last;
                Ok(Some((choice, self)))
            }
            State::Last if token.is_empty() => Ok(None),
            State::Last => Err(Distrust::Further),
        }
    }

    /// Whose login it is.
    pub fn client(&self) -> &Principal {
        &self.client
    }

    fn reply(&self, token: &[u8]) -> Result<State, &'static str> {
        let reply = messages::parse_reply(unframe(token, AP_REP)?).map_err(|_| "it is malformed")?;
        let plain = self.session.decrypt(Usage::ApReply, reply.cipher);
        let plain = plain.ok_or("it was not encrypted with the ticket's key")?;
        let part = ReplyPart::parse(&plain).map_err(|_| "it is malformed")?;
        let part = part.ok_or("its key has an encryption type that is not spoken here")?;
        let seconds = TimestampMs(self.at_us.div_euclid(1_000_000) * 1000);
        if part.seconds != seconds || part.micros != self.at_us.rem_euclid(1_000_000) {
            return Err("it answers another request");
        }
        Ok(match part.subkey {
            Some(key) => State::Offer { key, flags: ACCEPTOR_SUBKEY },
            None => State::Offer { key: self.own.clone(), flags: 0 },
        })
    }
}
