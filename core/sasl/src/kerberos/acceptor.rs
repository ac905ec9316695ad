//! The acceptor's side of the GSS-API mechanism for Kerberos, and the two tokens of SASL that follow it.
//!
//! ```text
//! client: the initial token, AP-REQ        server: AP-REP where the client asks for it
//! client: nothing                          server: the layers that it offers: none
//! client: the layer that it takes: none    server: nothing; the client is known
//! ```
//! Without mutual authentication, as with Java's clients of Kafka, the first answer is the offer already. With it, what
//! follows is signed with a key of the acceptor's ([`Secrets`]), so that a recorded exchange cannot be played again.
//!
//! Left out, and refused: security layers (Kafka offers none), user-to-user tickets, delegated credentials (ignored),
//! SPNEGO, and channel bindings (ignored, as where an acceptor of Java asks for none).
//!
//! # Source
//! RFC 4121, RFC 4752; the JDK's `GssKrb5Server`, `KrbApReq`, `InitSecContextToken`.

use barnabas_base::TimestampMs;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroize;

use super::enctype::{CONFOUNDER_BYTES, Enctype, Key, Usage};
use super::keytab::Entry;
use super::messages::{self, ApRequest, Authenticator, Encrypted, TicketPart};
use super::replays::Seen;
use super::wrap::{ACCEPTOR_SUBKEY, SENT_BY_ACCEPTOR, unwrap, wrap};
use super::{Principal, Rules, der};

/// 1.2.840.113554.1.2.2 with its tag and length.
const KRB5: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02];
pub(super) const AP_REQ: [u8; 2] = [1, 0];
pub(super) const AP_REP: [u8; 2] = [2, 0];

/// The type of an authenticator's checksum that carries GSS-API's flags.
pub(super) const GSS_CHECKSUM: i64 = 0x8003;
pub(super) const MUTUAL: u32 = 2;

/// No security layer, and as many bytes as Java's server says for messages that never come.
const OFFER: [u8; 4] = [1, 1, 0, 0];
pub(super) const NO_LAYER: u8 = 1;

/// What a listener checks its clients with.
#[derive(Debug, Clone, PartialEq)]
pub struct Acceptor {
    /// This broker's own principal.
    pub service: Principal,
    /// Its keys.
    pub keys: Vec<Entry>,
    pub rules: Rules,
    pub clock_skew_ms: i64,
}

/// Random bytes for one login: a confounder, a key, a number. Zeroed when dropped.
pub struct Secrets(pub [u8; Secrets::BYTES]);

impl Secrets {
    pub const BYTES: usize = CONFOUNDER_BYTES + 32 + 4;

    /// A confounder, the bytes of a key, and a number of 30 bits: no peer reads it as a negative one.
    pub(super) fn split(&self) -> (&[u8; CONFOUNDER_BYTES], &[u8], u32) {
        let (confounder, rest) = self.0.split_first_chunk().expect("invariant: the array's own length");
        let (key, number) = rest.split_at(32);
        let number = number.iter().fold(0, |number: u32, byte| number << 8 | u32::from(*byte)) & 0x3fff_ffff;
        (confounder, key, number)
    }

    /// A confounder alone.
    pub fn confounder(&self) -> &[u8; CONFOUNDER_BYTES] {
        self.split().0
    }

    /// A number alone.
    pub fn number(&self) -> u32 {
        self.split().2
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[hidden]")
    }
}

/// Why a client is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the first token is no Kerberos token of GSS-API: {0}")]
    Token(&'static str),
    /// The keytab has no key of the ticket's encryption type.
    #[error("{0}")]
    NoKey(String),
    /// None of the keytab's keys decrypts it.
    #[error("{0}")]
    WrongKey(String),
    #[error("the authenticator was not encrypted with the ticket's key")]
    WrongAuthenticator,
    #[error("{0} has an encryption type that is not spoken here (aes128 and aes256 with sha1 and sha2 are)")]
    Enctype(&'static str),
    #[error("the authenticator is of {0}, the ticket of another client")]
    OtherClient(String),
    #[error("the client's clock is {} s from this broker's: more than {} s", .off_ms / 1000, .most_ms / 1000)]
    Skew { off_ms: i64, most_ms: i64 },
    #[error("the ticket ended {} s ago", .0 / 1000)]
    Expired(i64),
    #[error("the ticket is not valid yet")]
    NotYet,
    #[error("the request is a replay")]
    Replay,
    #[error("this broker cannot remember further logins: {} within the last minutes", super::REMEMBERED_MAX)]
    Full,
    #[error("a token after the first is wrong: {0}")]
    Layer(&'static str),
    #[error("{0}")]
    NoUser(String),
}

impl Fault {
    /// Whether the connection is closed without an answer, so that the client tries again. Kafka means to do so for
    /// replays and for tickets that are not valid yet (`KerberosError.retriable`). Since Java 16 it cannot read the
    /// error's code and refuses them as it does others; so does this.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Full)
    }
}

/// A client whose ticket is right.
#[derive(Debug)]
pub struct Accepted {
    pub client: Principal,
    /// AP-REP, or the offer where the client asks for no AP-REP.
    pub answer: Vec<u8>,
    pub next: Layer,
}

/// The two tokens that follow the first.
#[derive(Debug)]
pub struct Layer {
    key: Key,
    flags: u8,
    sequence: u32,
    is_offered: bool,
}

impl Acceptor {
    /// The client's first token. `note` remembers an authenticator by its digest, until a time, and says whether it
    /// came before.
    ///
    /// # Errors
    /// The client that the ticket names, where it could be read, and what is wrong.
    pub fn accept(
        &self,
        token: &[u8],
        now: TimestampMs,
        secrets: &Secrets,
        note: impl FnOnce([u8; 16], TimestampMs) -> Seen,
    ) -> Result<Accepted, (Option<String>, Fault)> {
        let nameless = |fault| (None, fault);
        let request = unframe(token, AP_REQ).map_err(|why| nameless(Fault::Token(why)))?;
        let request =
            ApRequest::parse(request).map_err(|_| nameless(Fault::Token("what it holds is no AP-REQ")))?;
        if request.uses_session_key {
            return Err(nameless(Fault::Token("the ticket is encrypted with a session key")));
        }
        let plain = self.decrypt_ticket(&request).map_err(nameless)?;
        let ticket = TicketPart::parse(&plain)
            .map_err(|_| nameless(Fault::Token("the ticket is malformed")))?
            .ok_or_else(|| nameless(Fault::Enctype("the ticket's session key")))?;
        let answered = self.answer(&request, &ticket, now, secrets, note);
        answered.map_err(|fault| (Some(ticket.client.to_string()), fault))
    }

    fn decrypt_ticket(&self, request: &ApRequest<'_>) -> Result<zeroize::Zeroizing<Vec<u8>>, Fault> {
        let Encrypted { enctype, version, cipher } = request.ticket;
        let has = || {
            let keys =
                self.keys.iter().map(|entry| format!("version {} {}", entry.version, entry.key.enctype()));
            let keys: Vec<String> = keys.collect();
            if keys.is_empty() { "none".to_owned() } else { keys.join(", ") }
        };
        let (service, own) = (&request.service, &self.service);
        let fitting = self.keys.iter().filter(|entry| entry.key.enctype().number() == enctype);
        // The key of the ticket's version, else the newest.
        let key = fitting.max_by_key(|entry| (Some(entry.version) == version, entry.version));
        let Some(entry) = key else {
            let enctype = Enctype::from_number(enctype)
                .map_or_else(|| format!("encryption type {enctype}"), |known| known.to_string());
            return Err(Fault::NoKey(format!(
                "the ticket for {service} is encrypted with {enctype}, and the keytab has no such key of {own} (keytab: {})",
                has()
            )));
        };
        entry.key.decrypt(Usage::Ticket, cipher).ok_or_else(|| {
            let version = version.map_or_else(|| "not named".to_owned(), |version| version.to_string());
            Fault::WrongKey(format!(
                "the ticket for {service} cannot be decrypted with the keys of {own} (ticket: key version {version}; \
                 keytab: {}). Where the keytab is older than the KDC's key, write it again; where the ticket is older, \
                 the client needs a new one",
                has()
            ))
        })
    }

    fn answer(
        &self,
        request: &ApRequest<'_>,
        ticket: &TicketPart,
        now: TimestampMs,
        secrets: &Secrets,
        note: impl FnOnce([u8; 16], TimestampMs) -> Seen,
    ) -> Result<Accepted, Fault> {
        if request.authenticator.enctype != ticket.key.enctype().number() {
            return Err(Fault::WrongAuthenticator);
        }
        let plain = ticket.key.decrypt(Usage::Authenticator, request.authenticator.cipher);
        let plain = plain.ok_or(Fault::WrongAuthenticator)?;
        let authenticator = Authenticator::parse(&plain)
            .map_err(|_| Fault::Token("the authenticator is malformed"))?
            .ok_or(Fault::Enctype("the client's sub-key"))?;
        self.check_times(&authenticator, ticket, now)?;
        let flags = gss_flags(&authenticator)?;
        let digest: [u8; 32] = Sha256::digest(request.authenticator.cipher).into();
        let mut short = [0; 16];
        short.copy_from_slice(&digest[..16]);
        match note(short, TimestampMs(authenticator.seconds.0.saturating_add(self.clock_skew_ms + 1000))) {
            Seen::New => {}
            Seen::Replayed => return Err(Fault::Replay),
            Seen::Full => return Err(Fault::Full),
        }
        Ok(established(ticket, &authenticator, flags & MUTUAL != 0, secrets))
    }

    /// In the order of Java's checks, the replay aside.
    fn check_times(
        &self,
        authenticator: &Authenticator<'_>,
        ticket: &TicketPart,
        now: TimestampMs,
    ) -> Result<(), Fault> {
        if authenticator.client != ticket.client {
            return Err(Fault::OtherClient(authenticator.client.to_string()));
        }
        let most_ms = self.clock_skew_ms;
        let off_ms = now.0.saturating_sub(authenticator.seconds.0).saturating_abs();
        if off_ms > most_ms {
            return Err(Fault::Skew { off_ms, most_ms });
        }
        let is_early = ticket.starts.is_some_and(|start| start.0.saturating_sub(now.0) > most_ms);
        if is_early || ticket.is_invalid {
            return Err(Fault::NotYet);
        }
        let over_ms = now.0.saturating_sub(ticket.ends.0);
        if over_ms > most_ms { Err(Fault::Expired(over_ms)) } else { Ok(()) }
    }
}

/// The answer to a client that has proved itself, and the key of the tokens to come.
fn established(
    ticket: &TicketPart,
    authenticator: &Authenticator<'_>,
    is_mutual: bool,
    secrets: &Secrets,
) -> Accepted {
    let (confounder, fresh, sequence) = secrets.split();
    let base = authenticator.subkey.as_ref().unwrap_or(&ticket.key);
    let client = ticket.client.clone();
    if !is_mutual {
        // Nothing has told the client a number of this side: it expects its own.
        let sequence = authenticator.sequence;
        let mut next = Layer { key: base.clone(), flags: 0, sequence, is_offered: false };
        return Accepted { client, answer: next.offer(), next };
    }
    let enctype = base.enctype();
    let subkey =
        Key::new(enctype, &fresh[..enctype.key_bytes()]).expect("invariant: cut to the type's length");
    let plain = messages::reply_part(authenticator, &subkey, sequence);
    let cipher = ticket.key.encrypt(Usage::ApReply, confounder, &plain);
    let cipher = cipher.expect("invariant: the key's type has a cipher");
    let reply = messages::reply(ticket.key.enctype(), &cipher);
    let answer = frame(AP_REP, &reply);
    Accepted {
        client,
        answer,
        next: Layer { key: subkey, flags: ACCEPTOR_SUBKEY, sequence, is_offered: false },
    }
}

impl Layer {
    /// The client's next token: nothing, then the layer that it takes. The answer, and the state after it; without a
    /// state the client is known.
    ///
    /// # Errors
    /// The token is wrong, or asks for a security layer.
    pub fn take(mut self, token: &[u8]) -> Result<(Vec<u8>, Option<Self>), Fault> {
        if self.is_offered {
            return self.taken(token).map(|()| (Vec::new(), None));
        }
        match token {
            [] => Ok((self.offer(), Some(self))),
            _ => Err(Fault::Layer("the client sends data where it should have waited for the offer")),
        }
    }

    fn offer(&mut self) -> Vec<u8> {
        self.is_offered = true;
        wrap(&self.key, self.flags | SENT_BY_ACCEPTOR, self.sequence, &OFFER)
    }

    /// Checks the signature, and that no security layer is asked for. The authorization id is ignored, as by Kafka's
    /// `SaslServerCallbackHandler`.
    fn taken(&self, token: &[u8]) -> Result<(), Fault> {
        let data = unwrap(&self.key, self.flags, token).map_err(Fault::Layer)?;
        match data[..] {
            [layer, _, _, _, ..] if layer & NO_LAYER != 0 => Ok(()),
            [_, _, _, _, ..] => {
                Err(Fault::Layer("the client selected a security layer, and none is offered"))
            }
            _ => Err(Fault::Layer("it is shorter than four bytes")),
        }
    }
}

/// The flags of GSS-API.
fn gss_flags(authenticator: &Authenticator<'_>) -> Result<u32, Fault> {
    let (kind, value) = authenticator.checksum.ok_or(Fault::Token("the authenticator has no checksum"))?;
    match value {
        [16, 0, 0, 0, _bindings @ .., a, b, c, d] if kind == GSS_CHECKSUM && value.len() == 24 => {
            Ok(u32::from_le_bytes([*a, *b, *c, *d]))
        }
        [16, 0, 0, 0, ..] if kind == GSS_CHECKSUM && value.len() > 24 => {
            Ok(u32::from_le_bytes([value[20], value[21], value[22], value[23]]))
        }
        _ => Err(Fault::Token("the authenticator's checksum is not GSS-API's")),
    }
}

/// `[APPLICATION 0]`: the mechanism, the token's kind, its content.
pub(super) fn frame(kind: [u8; 2], content: &[u8]) -> Vec<u8> {
    der::element(der::application(0), &[KRB5, &kind, content].concat())
}

/// The content of a token that must hold this kind.
pub(super) fn unframe(token: &[u8], kind: [u8; 2]) -> Result<&[u8], &'static str> {
    let mut outer = der::Reader::new(token);
    let inner = outer.take(der::application(0)).map_err(|_| "it does not begin with 60")?;
    if !outer.is_empty() {
        return Err("bytes follow it");
    }
    let rest = inner.bytes().strip_prefix(KRB5).ok_or("its mechanism is not Kerberos")?;
    rest.strip_prefix(&kind).ok_or("it holds another message")
}
