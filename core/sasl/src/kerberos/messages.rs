//! The messages of RFC 4120 between a client and a service: AP-REQ, Ticket, EncTicketPart, Authenticator; AP-REP.
//!
//! Names and texts are copied; ciphertexts are borrowed. Fields that nothing here judges are skipped.

use super::der::{self, Malformed, Reader, SEQUENCE, application};
use super::{Enctype, Key, Principal};
use barnabas_base::TimestampMs;

pub(super) const VERSION: i64 = 5;
const AP_REQ: i64 = 14;
const AP_REP: i64 = 15;

/// Bits of AP-REQ's options.
const USE_SESSION_KEY: u32 = 1 << 30;
const MUTUAL_REQUIRED: u32 = 1 << 29;
/// Bits of a ticket's flags.
const INVALID: u32 = 1 << (31 - 7);

/// Bytes that a key makes readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encrypted<'a> {
    pub enctype: i64,
    pub version: Option<u32>,
    pub cipher: &'a [u8],
}

/// The client's request to a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApRequest<'a> {
    /// The ticket is encrypted with a session key, for a service without a keytab.
    pub uses_session_key: bool,
    /// The service that the ticket was issued for.
    pub service: Principal,
    pub ticket: Encrypted<'a>,
    pub authenticator: Encrypted<'a>,
}

/// What only the service and the KDC can read of a ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TicketPart {
    pub is_invalid: bool,
    pub key: Key,
    pub client: Principal,
    /// The earlier of both times counts where there is no start.
    pub starts: Option<TimestampMs>,
    pub ends: TimestampMs,
}

/// What the client proves with that it knows the ticket's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authenticator<'a> {
    pub client: Principal,
    /// Type and value.
    pub checksum: Option<(i64, &'a [u8])>,
    /// To the microsecond, as the reply repeats it.
    pub seconds: TimestampMs,
    pub micros: i64,
    pub subkey: Option<Key>,
    /// The first number of the client's tokens; 0 where it names none.
    pub sequence: u32,
}

impl<'a> ApRequest<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut outer = Reader::new(bytes);
        let mut fields = outer.take(application(AP_REQ as u8))?.take(SEQUENCE)?;
        if !outer.is_empty()
            || fields.field(0)?.integer()? != VERSION
            || fields.field(1)?.integer()? != AP_REQ
        {
            return Err(Malformed);
        }
        let uses_session_key = fields.field(2)?.flags()? & USE_SESSION_KEY != 0;
        let mut ticket = fields.field(3)?.take(application(1))?.take(SEQUENCE)?;
        if ticket.field(0)?.integer()? != VERSION {
            return Err(Malformed);
        }
        let realm = ticket.field(1)?.string()?.to_owned();
        let service = Principal { components: name(&mut ticket.field(2)?)?, realm };
        let ticket = encrypted(&mut ticket.field(3)?)?;
        Ok(Self { uses_session_key, service, ticket, authenticator: encrypted(&mut fields.field(4)?)? })
    }
}

impl TicketPart {
    /// `Ok(None)`: the session key has an encryption type that is not spoken here.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut fields = Reader::new(bytes).take(application(3))?.take(SEQUENCE)?;
        let flags = fields.field(0)?.flags()?;
        let key = key(&mut fields.field(1)?)?;
        let realm = fields.field(2)?.string()?.to_owned();
        let components = name(&mut fields.field(3)?)?;
        fields.field(4)?;
        fields.field(5)?;
        let starts = fields.optional_field(6)?.map(|mut start| start.time()).transpose()?;
        let ends = fields.field(7)?.time()?;
        let client = Principal { components, realm };
        Ok(key.map(|key| Self { is_invalid: flags & INVALID != 0, key, client, starts, ends }))
    }
}

impl<'a> Authenticator<'a> {
    /// `Ok(None)`: the sub-key has an encryption type that is not spoken here.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let mut fields = Reader::new(bytes).take(application(2))?.take(SEQUENCE)?;
        if fields.field(0)?.integer()? != VERSION {
            return Err(Malformed);
        }
        let realm = fields.field(1)?.string()?.to_owned();
        let client = Principal { components: name(&mut fields.field(2)?)?, realm };
        let checksum = match fields.optional_field(3)? {
            None => None,
            Some(mut checksum) => {
                let mut parts = checksum.take(SEQUENCE)?;
                Some((parts.field(0)?.integer()?, parts.field(1)?.octets()?))
            }
        };
        let micros = fields.field(4)?.integer()?;
        if !(0..1_000_000).contains(&micros) {
            return Err(Malformed);
        }
        let seconds = fields.field(5)?.time()?;
        let subkey = match fields.optional_field(6)? {
            None => None,
            Some(mut subkey) => match key(&mut subkey)? {
                None => return Ok(None),
                known => known,
            },
        };
        // Some write numbers above 2^31 as negative ones.
        let sequence = fields.optional_field(7)?.map(|mut number| number.integer()).transpose()?;
        let sequence = sequence.unwrap_or(0) as u32;
        Ok(Some(Self { client, checksum, seconds, micros, subkey, sequence }))
    }
}

/// Reads bytes as each of the messages that come encrypted. For the fuzzer, which knows no key.
pub fn read_decrypted(bytes: &[u8]) -> bool {
    let is_ticket = TicketPart::parse(bytes).is_ok();
    ApRequest::parse(bytes).is_ok() || is_ticket || Authenticator::parse(bytes).is_ok()
}

/// The plaintext of AP-REP: what the authenticator said, and the acceptor's own key and number.
pub(super) fn reply_part(authenticator: &Authenticator<'_>, subkey: &Key, sequence: u32) -> Vec<u8> {
    let fields = [
        der::field(0, &der::time(authenticator.seconds)),
        der::field(1, &der::integer(authenticator.micros)),
        der::field(2, &key_of(subkey)),
        der::field(3, &der::integer(sequence.into())),
    ];
    der::element(application(27), &der::sequence(&fields))
}

/// What AP-REP says, as the client reads it.
#[derive(Debug)]
pub(super) struct ReplyPart {
    pub seconds: TimestampMs,
    pub micros: i64,
    pub subkey: Option<Key>,
}

impl ReplyPart {
    /// `Ok(None)`: the sub-key has an encryption type that is not spoken here.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut fields = Reader::new(bytes).take(application(27))?.take(SEQUENCE)?;
        let seconds = fields.field(0)?.time()?;
        let micros = fields.field(1)?.integer()?;
        let subkey = match fields.optional_field(2)? {
            None => None,
            Some(mut subkey) => match key(&mut subkey)? {
                None => return Ok(None),
                known => known,
            },
        };
        Ok(Some(Self { seconds, micros, subkey }))
    }
}

/// The ciphertext of AP-REP.
pub(super) fn parse_reply(bytes: &[u8]) -> Result<Encrypted<'_>, Malformed> {
    let mut fields = Reader::new(bytes).take(application(AP_REP as u8))?.take(SEQUENCE)?;
    if fields.field(0)?.integer()? != VERSION || fields.field(1)?.integer()? != AP_REP {
        return Err(Malformed);
    }
    encrypted(&mut fields.field(2)?)
}

/// AP-REQ, of a ticket's own bytes and an encrypted authenticator.
pub(super) fn request(is_mutual: bool, ticket: &[u8], enctype: Enctype, authenticator: &[u8]) -> Vec<u8> {
    let options = if is_mutual { MUTUAL_REQUIRED } else { 0 };
    let fields = [
        der::field(0, &der::integer(VERSION)),
        der::field(1, &der::integer(AP_REQ)),
        der::field(2, &der::flags(options)),
        der::field(3, ticket),
        der::field(4, &encrypted_data(enctype, authenticator)),
    ];
    der::element(application(AP_REQ as u8), &der::sequence(&fields))
}

/// The plaintext of an authenticator. `at_us`: microseconds since 1970.
pub(super) fn authenticator(
    client: &Principal,
    checksum: (i64, &[u8]),
    at_us: i64,
    own: Option<(&Key, u32)>,
) -> Vec<u8> {
    let (kind, value) = checksum;
    let checksum = der::sequence(&[der::field(0, &der::integer(kind)), der::field(1, &der::octets(value))]);
    let mut fields = vec![
        der::field(0, &der::integer(VERSION)),
        der::field(1, &der::string(&client.realm)),
        der::field(2, &name_of(client)),
        der::field(3, &checksum),
        der::field(4, &der::integer(at_us.rem_euclid(1_000_000))),
        der::field(5, &der::time(TimestampMs(at_us.div_euclid(1000)))),
    ];
    if let Some((subkey, sequence)) = own {
        fields.extend([der::field(6, &key_of(subkey)), der::field(7, &der::integer(sequence.into()))]);
    }
    der::element(application(2), &der::sequence(&fields))
}

/// A name of type 1, a user's; KDCs take it for a service too.
pub(super) fn name_of(principal: &Principal) -> Vec<u8> {
    let texts: Vec<Vec<u8>> = principal.components.iter().map(|text| der::string(text)).collect();
    der::sequence(&[der::field(0, &der::integer(1)), der::field(1, &der::sequence(&texts))])
}

fn key_of(key: &Key) -> Vec<u8> {
    der::sequence(&[
        der::field(0, &der::integer(key.enctype().number())),
        der::field(1, &der::octets(key.bytes())),
    ])
}

pub(super) fn encrypted_data(enctype: Enctype, cipher: &[u8]) -> Vec<u8> {
    der::sequence(&[der::field(0, &der::integer(enctype.number())), der::field(2, &der::octets(cipher))])
}

/// AP-REP.
pub(super) fn reply(enctype: Enctype, cipher: &[u8]) -> Vec<u8> {
    let fields = [
        der::field(0, &der::integer(VERSION)),
        der::field(1, &der::integer(AP_REP)),
        der::field(2, &encrypted_data(enctype, cipher)),
    ];
    der::element(application(AP_REP as u8), &der::sequence(&fields))
}

pub(super) fn encrypted<'a>(field: &mut Reader<'a>) -> Result<Encrypted<'a>, Malformed> {
    let mut parts = field.take(SEQUENCE)?;
    let enctype = parts.field(0)?.integer()?;
    // MIT writes versions above 2^31 as negative numbers.
    let version = parts.optional_field(1)?.map(|mut version| version.integer()).transpose()?;
    let version = version.map(|version| version as u32);
    Ok(Encrypted { enctype, version, cipher: parts.field(2)?.octets()? })
}

pub(super) fn name(field: &mut Reader<'_>) -> Result<Vec<String>, Malformed> {
    let mut parts = field.take(SEQUENCE)?;
    parts.field(0)?.integer()?;
    let mut texts = parts.field(1)?.take(SEQUENCE)?;
    let mut components = Vec::new();
    while !texts.is_empty() {
        components.push(texts.string()?.to_owned());
    }
    if components.is_empty() { Err(Malformed) } else { Ok(components) }
}

pub(super) fn key(field: &mut Reader<'_>) -> Result<Option<Key>, Malformed> {
    let mut parts = field.take(SEQUENCE)?;
    let enctype = Enctype::from_number(parts.field(0)?.integer()?);
    let bytes = parts.field(1)?.octets()?;
    match enctype {
        None => Ok(None),
        Some(enctype) => Key::new(enctype, bytes).map(Some).ok_or(Malformed),
    }
}
