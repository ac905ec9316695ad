//! What a client asks of a KDC and reads of it: a ticket for tickets with a key of its keytab, then those of services.
//!
//! ```text
//! AS-REQ  →  KRB-ERROR 25: which encryption type  →  AS-REQ with an encrypted time  →  AS-REP: the first ticket
//! TGS-REQ with that ticket, for a service  →  TGS-REP: its ticket
//! ```
//! Left out: passwords, other pre-authentication than by time, referrals to other realms. A ticket of a ticket cache
//! may be renewed; a keytab gets a new one any time.
//!
//! # Source
//! RFC 4120, 3.1, 3.3, 5.4.

use super::der::{self, Malformed, Reader, SEQUENCE, application};
use super::enctype::{CONFOUNDER_BYTES, Usage};
use super::keytab::Entry;
use super::messages::{self, VERSION};
use super::{Enctype, Key, Principal};
use barnabas_base::TimestampMs;

const AS_REQ: u8 = 10;
const AS_REP: u8 = 11;
const TGS_REQ: u8 = 12;
const TGS_REP: u8 = 13;
const ERROR: u8 = 30;

const PA_TGS_REQ: i64 = 1;
const PA_ENC_TIMESTAMP: i64 = 2;
const PA_ETYPE_INFO2: i64 = 19;
const PREAUTH_REQUIRED: i64 = 25;
/// A KDC option.
const RENEW: u32 = 1 << 1;

/// How long a ticket is asked for. The KDC gives less where its policy says so.
const LIFE_MS: i64 = 24 * 3_600_000;
/// An answer of more bytes is not read.
pub const REPLY_BYTES_MAX: usize = 1 << 20;

/// A ticket and the key that goes with it.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    pub client: Principal,
    pub service: Principal,
    pub(super) key: Key,
    /// As the KDC wrote it.
    pub(super) bytes: Vec<u8>,
    pub starts: TimestampMs,
    pub ends: TimestampMs,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (client, service) = (self.client.to_string(), self.service.to_string());
        f.debug_struct("Ticket").field("client", &client).field("service", &service).finish_non_exhaustive()
    }
}

/// Why there is no ticket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KdcFault {
    #[error("the KDC's answer is malformed")]
    Malformed,
    #[error("the KDC's answer is not for this request")]
    Other,
    /// Asks for a proof, with the first of these types of which the client has a key.
    #[error("the KDC asks for pre-authentication by {0:?}, and the keytab has no such key")]
    Preauth(Vec<i64>),
    #[error("the KDC refuses: {text} (error {code}{})", hint(*.code))]
    Refused { code: i64, text: String },
    #[error(
        "the KDC's answer cannot be decrypted: the keytab is older than the KDC's key. Write the keytab again"
    )]
    WrongKey,
    #[error("the ticket's key has an encryption type that is not spoken here")]
    Enctype,
}

fn hint(code: i64) -> &'static str {
    match code {
        6 => ": it does not know the client",
        7 => ": it does not know the service. Is there a principal of this host's name?",
        14 => ": it has no encryption type in common",
        18 => ": the principal is locked, expired or disabled",
        24 => ": the key is wrong. Write the keytab again",
        37 => ": the clocks differ too much",
        _ => "",
    }
}

impl From<Malformed> for KdcFault {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// A proof for the KDC: the time, encrypted with the client's key.
#[derive(Debug, Clone, Copy)]
pub struct Proof<'a> {
    pub key: &'a Key,
    /// Microseconds since 1970.
    pub at_us: i64,
    pub confounder: &'a [u8; CONFOUNDER_BYTES],
}

/// AS-REQ. `enctypes`: those of the client's keys, the best one first.
pub fn as_request(
    client: &Principal,
    enctypes: &[Enctype],
    nonce: u32,
    now: TimestampMs,
    proof: Option<Proof<'_>>,
) -> Vec<u8> {
    let service = ticket_service(client);
    let body = body(Some(client), &service, (enctypes, 0), nonce, now);
    let proof = proof.map(|proof| {
        let time = der::sequence(&[
            der::field(0, &der::time(TimestampMs(proof.at_us.div_euclid(1000)))),
            der::field(1, &der::integer(proof.at_us.rem_euclid(1_000_000))),
        ]);
        let cipher = proof.key.encrypt(Usage::PreAuthentication, proof.confounder, &time);
        let cipher = cipher.expect("invariant: the key's type has a cipher");
        padata(PA_ENC_TIMESTAMP, &messages::encrypted_data(proof.key.enctype(), &cipher))
    });
    request(AS_REQ, proof, &body)
}

/// The service that gives tickets to a client's realm.
fn ticket_service(client: &Principal) -> Principal {
    Principal { components: vec!["krbtgt".to_owned(), client.realm.clone()], realm: client.realm.clone() }
}

/// The first ticket, from AS-REP.
///
/// # Errors
/// See [`KdcFault`].
pub fn as_reply(bytes: &[u8], client: &Principal, keys: &[Entry], nonce: u32) -> Result<Ticket, KdcFault> {
    let reply = Reply::parse(bytes, AS_REP)?;
    let fitting = keys.iter().filter(|entry| entry.key.enctype().number() == reply.enctype);
    let decrypts = |entry: &Entry| entry.key.decrypt(Usage::AsReply, reply.cipher);
    let plain = fitting.rev().find_map(decrypts).ok_or(KdcFault::WrongKey)?;
    reply.ticket(&plain, client, &ticket_service(client), nonce)
}

/// TGS-REQ: a ticket for a service of the same realm, by the first ticket.
pub fn tgs_request(
    first: &Ticket,
    service: &Principal,
    nonce: u32,
    at_us: i64,
    confounder: &[u8; CONFOUNDER_BYTES],
) -> Vec<u8> {
    by_ticket(first, service, 0, nonce, at_us, confounder)
}

/// TGS-REQ: the first ticket again, with a later end. [`tgs_reply`] reads the answer, with the first ticket's service.
pub fn renewal_request(
    first: &Ticket,
    nonce: u32,
    at_us: i64,
    confounder: &[u8; CONFOUNDER_BYTES],
) -> Vec<u8> {
    by_ticket(first, &first.service, RENEW, nonce, at_us, confounder)
}

fn by_ticket(
    first: &Ticket,
    service: &Principal,
    options: u32,
    nonce: u32,
    at_us: i64,
    confounder: &[u8; CONFOUNDER_BYTES],
) -> Vec<u8> {
    let enctypes = [Enctype::Aes256Sha384, Enctype::Aes128Sha256, Enctype::Aes256Sha1, Enctype::Aes128Sha1];
    let body = body(None, service, (&enctypes, options), nonce, TimestampMs(at_us.div_euclid(1000)));
    let enctype = first.key.enctype();
    let checksum = first.key.checksum(Usage::TgsChecksum, &[&body]);
    let plain = messages::authenticator(&first.client, (enctype.checksum_number(), &checksum), at_us, None);
    let cipher = first.key.encrypt(Usage::TgsAuthenticator, confounder, &plain);
    let cipher = cipher.expect("invariant: the key's type has a cipher");
    let shown = messages::request(false, &first.bytes, enctype, &cipher);
    request(TGS_REQ, Some(padata(PA_TGS_REQ, &shown)), &body)
}

/// A service's ticket, from TGS-REP.
///
/// # Errors
/// See [`KdcFault`].
pub fn tgs_reply(bytes: &[u8], first: &Ticket, service: &Principal, nonce: u32) -> Result<Ticket, KdcFault> {
    let reply = Reply::parse(bytes, TGS_REP)?;
    let plain = first.key.decrypt(Usage::TgsReply, reply.cipher).ok_or(KdcFault::Other)?;
    reply.ticket(&plain, &first.client, service, nonce)
}

/// AS-REP or TGS-REP.
struct Reply<'a> {
    client: Principal,
    ticket: &'a [u8],
    enctype: i64,
    cipher: &'a [u8],
}

impl<'a> Reply<'a> {
    fn parse(bytes: &'a [u8], kind: u8) -> Result<Self, KdcFault> {
        let mut outer = Reader::new(bytes);
        if let Some(mut error) = outer.optional(application(ERROR))? {
            return Err(refused(&mut error)?);
        }
        let mut fields = outer.take(application(kind))?.take(SEQUENCE)?;
        if fields.field(0)?.integer()? != VERSION || fields.field(1)?.integer()? != i64::from(kind) {
            return Err(KdcFault::Malformed);
        }
        fields.optional_field(2)?;
        let realm = fields.field(3)?.string()?.to_owned();
        let client = Principal { components: messages::name(&mut fields.field(4)?)?, realm };
        let ticket = fields.field(5)?.bytes();
        let part = messages::encrypted(&mut fields.field(6)?)?;
        Ok(Self { client, ticket, enctype: part.enctype, cipher: part.cipher })
    }

    /// Checks that the answer is to the request that was asked.
    fn ticket(
        self,
        plain: &[u8],
        client: &Principal,
        service: &Principal,
        nonce: u32,
    ) -> Result<Ticket, KdcFault> {
        let mut outer = Reader::new(plain);
        // Some KDCs write the tag of a TGS-REP's part into an AS-REP.
        let part = match outer.optional(application(25))? {
            Some(part) => Some(part),
            None => outer.optional(application(26))?,
        };
        let mut fields = part.ok_or(KdcFault::Malformed)?.take(SEQUENCE)?;
        let key = messages::key(&mut fields.field(0)?)?.ok_or(KdcFault::Enctype)?;
        fields.field(1)?;
        let answered = fields.field(2)?.integer()? as u32;
        fields.optional_field(3)?;
        fields.field(4)?;
        let authenticated = fields.field(5)?.time()?;
        let starts = fields.optional_field(6)?.map(|mut start| start.time()).transpose()?;
        let ends = fields.field(7)?.time()?;
        fields.optional_field(8)?;
        let realm = fields.field(9)?.string()?.to_owned();
        let found = Principal { components: messages::name(&mut fields.field(10)?)?, realm };
        if answered != nonce || self.client != *client || found != *service {
            return Err(KdcFault::Other);
        }
        let starts = starts.unwrap_or(authenticated);
        Ok(Ticket { client: self.client, service: found, key, bytes: self.ticket.to_vec(), starts, ends })
    }
}

/// KRB-ERROR.
fn refused(error: &mut Reader<'_>) -> Result<KdcFault, Malformed> {
    let mut fields = error.take(SEQUENCE)?;
    for number in [0, 1] {
        fields.field(number)?;
    }
    for number in [2, 3] {
        fields.optional_field(number)?;
    }
    for number in [4, 5] {
        fields.field(number)?;
    }
    let code = fields.field(6)?.integer()?;
    for number in [7, 8, 9, 10] {
        fields.optional_field(number)?;
    }
    let text = fields.optional_field(11)?.map(|mut text| text.string().map(str::to_owned)).transpose()?;
    let data = fields.optional_field(12)?.map(|mut data| data.octets()).transpose()?;
    if code == PREAUTH_REQUIRED {
        return Ok(KdcFault::Preauth(data.map(offered).transpose()?.unwrap_or_default()));
    }
    let text: String = text.unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect();
    Ok(KdcFault::Refused { code, text })
}

/// The encryption types of a METHOD-DATA's ETYPE-INFO2, in the KDC's order.
fn offered(data: &[u8]) -> Result<Vec<i64>, Malformed> {
    let mut all = Reader::new(data).take(SEQUENCE)?;
    let mut offered = Vec::new();
    while !all.is_empty() {
        let mut one = all.take(SEQUENCE)?;
        let kind = one.field(1)?.integer()?;
        let value = one.field(2)?.octets()?;
        if kind == PA_ETYPE_INFO2 {
            let mut entries = Reader::new(value).take(SEQUENCE)?;
            while !entries.is_empty() {
                offered.push(entries.take(SEQUENCE)?.field(0)?.integer()?);
            }
        }
    }
    Ok(offered)
}

fn request(kind: u8, proof: Option<Vec<u8>>, body: &[u8]) -> Vec<u8> {
    let mut fields =
        vec![der::field(1, &der::integer(VERSION)), der::field(2, &der::integer(i64::from(kind)))];
    fields.extend(proof.map(|proof| der::field(3, &der::sequence(&[proof]))));
    fields.push(der::field(4, body));
    der::element(application(kind), &der::sequence(&fields))
}

fn padata(kind: i64, value: &[u8]) -> Vec<u8> {
    der::sequence(&[der::field(1, &der::integer(kind)), der::field(2, &der::octets(value))])
}

fn body(
    client: Option<&Principal>,
    service: &Principal,
    (enctypes, options): (&[Enctype], u32),
    nonce: u32,
    now: TimestampMs,
) -> Vec<u8> {
    let enctypes: Vec<Vec<u8>> = enctypes.iter().map(|enctype| der::integer(enctype.number())).collect();
    let mut fields = vec![der::field(0, &der::flags(options))];
    fields.extend(client.map(|client| der::field(1, &messages::name_of(client))));
    fields.extend([
        der::field(2, &der::string(&service.realm)),
        der::field(3, &messages::name_of(service)),
        der::field(5, &der::time(TimestampMs(now.0.saturating_add(LIFE_MS)))),
        der::field(7, &der::integer(nonce.into())),
        der::field(8, &der::sequence(&enctypes)),
    ]);
    der::sequence(&fields)
}

#[cfg(test)]
mod tests;
