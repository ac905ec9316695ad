//! A client of RFC 4120 and RFC 4121, made of this folder's own parts, against the acceptor.

use super::acceptor::{Acceptor, Fault, Secrets};
use super::enctype::{Enctype, Key, Usage};
use super::initiator::{Distrust, Initiator};
use super::keytab::{Entry, Keytab, tests::file};
use super::replays::{REMEMBERED_MAX, Replays, Seen};
use super::{Principal, Rules, Ticket, der};
use crate::exchange::{Exchange, Offer, SaslMechanism, Step, Surroundings, TokenCredential};
use crate::oauth::Bearer;
use crate::plain::PlainUsers;
use crate::scram::{Decoy, Mechanism, ScramCredential};
use barnabas_base::TimestampMs;
use barnabas_wire::messages::{
    ApiVersionsRequest, ApiVersionsResponse, RequestHeader, SaslAuthenticateRequest, SaslHandshakeRequest,
};
use barnabas_wire::{RequestBody, encode_request};
use bytes::Bytes;
use std::sync::Arc;

const SERVICE: &str = "kafka/broker.example.com@EXAMPLE.COM";
const NOW: TimestampMs = TimestampMs(1_795_943_000_000);
const MINUTE_MS: i64 = 60_000;
const KEY: [u8; 32] = [1; 32];

fn principal(text: &str) -> Principal {
    Principal::parse(text).expect("a principal")
}

fn named(number: u8, name: &Principal) -> Vec<u8> {
    let texts: Vec<Vec<u8>> = name.components.iter().map(|text| der::string(text)).collect();
    let name = [der::field(0, &der::integer(1)), der::field(1, &der::sequence(&texts))];
    der::field(number, &der::sequence(&name))
}

fn realm(number: u8, name: &Principal) -> Vec<u8> {
    der::field(number, &der::string(&name.realm))
}

fn key(number: u8, key: &Key) -> Vec<u8> {
    let parts =
        [der::field(0, &der::integer(key.enctype().number())), der::field(1, &der::octets(key.bytes()))];
    der::field(number, &der::sequence(&parts))
}

fn encrypted(number: u8, version: Option<i64>, enctype: i64, cipher: &[u8]) -> Vec<u8> {
    let mut parts = vec![der::field(0, &der::integer(enctype))];
    parts.extend(version.map(|version| der::field(1, &der::integer(version))));
    parts.push(der::field(2, &der::octets(cipher)));
    der::field(number, &der::sequence(&parts))
}

/// What a client and its KDC say. The fields are changed by tests.
#[derive(Clone)]
struct Request {
    service: Principal,
    client: Principal,
    in_authenticator: Principal,
    service_key: Key,
    version: Option<i64>,
    session: Key,
    subkey: Option<Key>,
    starts: Option<TimestampMs>,
    ends: TimestampMs,
    at: TimestampMs,
    ticket_flags: u32,
    options: u32,
    checksum: Option<(i64, Vec<u8>)>,
}

fn checksum(flags: u32) -> Vec<u8> {
    [&[16, 0, 0, 0][..], &[0; 16], &flags.to_le_bytes()].concat()
}

impl Request {
    fn new(enctype: Enctype) -> Self {
        let of = |fill: u8| Key::new(enctype, &vec![fill; enctype.key_bytes()]).expect("a key");
        Self {
            service: principal(SERVICE),
            client: principal("alice@EXAMPLE.COM"),
            in_authenticator: principal("alice@EXAMPLE.COM"),
            service_key: of(1),
            version: Some(2),
            session: of(2),
            subkey: Some(of(3)),
            starts: None,
            ends: TimestampMs(NOW.0 + 60 * MINUTE_MS),
            at: NOW,
            ticket_flags: 0,
            options: 0,
            checksum: Some((0x8003, checksum(2))),
        }
    }

    /// The ticket as the KDC writes it.
    fn ticket(&self) -> Vec<u8> {
        let mut part = vec![
            der::field(0, &der::flags(self.ticket_flags)),
            key(1, &self.session),
            realm(2, &self.client),
            named(3, &self.client),
            der::field(4, &der::sequence(&[])),
            der::field(5, &der::time(NOW)),
        ];
        part.extend(self.starts.map(|starts| der::field(6, &der::time(starts))));
        part.push(der::field(7, &der::time(self.ends)));
        let part = der::element(der::application(3), &der::sequence(&part));
        let part = self.service_key.encrypt(Usage::Ticket, &[5; 16], &part).expect("a cipher");
        let ticket = [
            der::field(0, &der::integer(5)),
            realm(1, &self.service),
            named(2, &self.service),
            encrypted(3, self.version, self.service_key.enctype().number(), &part),
        ];
        der::element(der::application(1), &der::sequence(&ticket))
    }

    fn token(&self) -> Vec<u8> {
        let ticket = self.ticket();
        let mut said = vec![
            der::field(0, &der::integer(5)),
            realm(1, &self.in_authenticator),
            named(2, &self.in_authenticator),
        ];
        said.extend(self.checksum.iter().map(|(kind, value)| {
            let parts = [der::field(0, &der::integer(*kind)), der::field(1, &der::octets(value))];
            der::field(3, &der::sequence(&parts))
        }));
        said.extend([der::field(4, &der::integer(123_456)), der::field(5, &der::time(self.at))]);
        said.extend(self.subkey.iter().map(|subkey| key(6, subkey)));
        said.push(der::field(7, &der::integer(99)));
        let said = der::element(der::application(2), &der::sequence(&said));
        let said = self.session.encrypt(Usage::Authenticator, &[6; 16], &said).expect("a cipher");
        let request = [
            der::field(0, &der::integer(5)),
            der::field(1, &der::integer(14)),
            der::field(2, &der::flags(self.options)),
            der::field(3, &ticket),
            encrypted(4, None, self.session.enctype().number(), &said),
        ];
        let request = der::element(der::application(14), &der::sequence(&request));
        let oid = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02];
        der::element(der::application(0), &[&oid[..], &[1, 0], &request].concat())
    }
}

fn acceptor() -> Acceptor {
    let entries: Vec<(&str, u32, u16, &[u8])> = [17_u16, 18, 19, 20]
        .map(|number| (SERVICE, 2, number, &KEY[..if number % 2 == 1 { 16 } else { 32 }]))
        .into();
    let keytab = Keytab::parse(&file(&entries)).expect("a keytab");
    Acceptor {
        service: principal(SERVICE),
        keys: keytab.keys_of(&principal(SERVICE)),
        rules: Rules::parse("DEFAULT", "EXAMPLE.COM").expect("rules"),
        clock_skew_ms: 5 * MINUTE_MS,
    }
}

fn secrets() -> Secrets {
    let mut secrets = [0; Secrets::BYTES];
    secrets.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
    Secrets(secrets)
}

fn fault(request: &Request) -> Fault {
    let accepted = acceptor().accept(&request.token(), NOW, &secrets(), |_, _| Seen::New);
    accepted.expect_err("refused").1
}

/// The client's last token: a signed choice of a layer.
fn choice(key: &Key, flags: u8, data: &[u8], rotate: u16) -> Vec<u8> {
    let header = |checksum: u16, rotate: u16| {
        let mut header = vec![5, 4, flags, 0xff];
        header.extend(checksum.to_be_bytes());
        header.extend(rotate.to_be_bytes());
        header.extend(99_u64.to_be_bytes());
        header
    };
    let checksum = key.checksum(Usage::InitiatorSeal, &[data, &header(0, 0)]);
    let mut body = [data, &checksum].concat();
    let places = usize::from(rotate) % body.len();
    body.rotate_right(places);
    [header(checksum.len() as u16, rotate), body].concat()
}

/// The acceptor's key, as the client reads it in AP-REP.
fn subkey_of(answer: &[u8], session: &Key) -> Key {
    let mut token = der::Reader::new(answer).take(der::application(0)).expect("a token");
    token.take(6).expect("a mechanism");
    let reply = token.bytes().strip_prefix(&[2, 0]).expect("AP-REP");
    let mut fields = der::Reader::new(reply)
        .take(der::application(15))
        .and_then(|mut r| r.take(der::SEQUENCE))
        .expect("AP-REP");
    assert_eq!(fields.field(0).and_then(|mut version| version.integer()), Ok(5));
    assert_eq!(fields.field(1).and_then(|mut kind| kind.integer()), Ok(15));
    let mut part = fields.field(2).and_then(|mut part| part.take(der::SEQUENCE)).expect("a ciphertext");
    part.field(0).expect("a type");
    let cipher = part.field(2).and_then(|mut cipher| cipher.octets()).expect("bytes");
    let plain =
        session.decrypt(Usage::ApReply, cipher).expect("it proves that the service could read the ticket");
    let mut fields = der::Reader::new(&plain)
        .take(der::application(27))
        .and_then(|mut r| r.take(der::SEQUENCE))
        .expect("a part");
    assert_eq!(fields.field(0).and_then(|mut time| time.time()), Ok(NOW));
    assert_eq!(fields.field(1).and_then(|mut micros| micros.integer()), Ok(123_456));
    let mut subkey = fields.field(2).and_then(|mut key| key.take(der::SEQUENCE)).expect("a key");
    subkey.field(0).expect("a type");
    let bytes = subkey.field(1).and_then(|mut bytes| bytes.octets()).expect("bytes");
    Key::new(session.enctype(), bytes).expect("a key")
}

#[test]
fn right_ticket_of_each_encryption_type_makes_the_client_known() {
    for number in 17..=20 {
        let request = Request::new(Enctype::from_number(number).expect("known"));
        let accepted =
            acceptor().accept(&request.token(), NOW, &secrets(), |_, _| Seen::New).expect("accepted");
        assert_eq!(accepted.client, principal("alice@EXAMPLE.COM"));
        let key = subkey_of(&accepted.answer, &request.session);
        let (offer, next) = accepted.next.take(&[]).expect("an offer");
        let (header, rest) = offer.split_at(16);
        assert_eq!((header[2], &rest[..4]), (5, &[1, 1, 0, 0][..]), "{number}");
        let unsigned = [&header[..4], &[0; 4], &header[8..]].concat();
        assert!(key.verifies(Usage::AcceptorSeal, &[&rest[..4], &unsigned], &rest[4..]));
        let choice = choice(&key, 4, &[1, 0, 0, 0], 28);
        let (answer, next) = next.expect("one more").take(&choice).expect("known");
        assert!(answer.is_empty() && next.is_none());
    }
}

#[test]
fn client_without_mutual_authentication_gets_the_offer_at_once() {
    let mut request = Request::new(Enctype::Aes256Sha1);
    request.checksum = Some((0x8003, checksum(0)));
    for subkey in [request.subkey.clone(), None] {
        request.subkey = subkey;
        let accepted =
            acceptor().accept(&request.token(), NOW, &secrets(), |_, _| Seen::New).expect("accepted");
        assert_eq!(accepted.answer[8..16], 99_u64.to_be_bytes(), "the client's own number");
        assert_eq!(
            (accepted.answer[..3].to_vec(), accepted.answer[16..20].to_vec()),
            (vec![5, 4, 1], vec![1, 1, 0, 0])
        );
        let key = request.subkey.as_ref().unwrap_or(&request.session);
        let (_, next) = accepted.next.take(&choice(key, 0, b"\x01\0\0\0alice", 0)).expect("known");
        assert!(next.is_none());
    }
}

#[test]
fn choices_that_are_not_signed_or_ask_for_a_layer_are_refused() {
    let request = Request::new(Enctype::Aes128Sha256);
    let taken = |choose: &dyn Fn(&Key) -> Vec<u8>| {
        let accepted =
            acceptor().accept(&request.token(), NOW, &secrets(), |_, _| Seen::New).expect("accepted");
        let key = subkey_of(&accepted.answer, &request.session);
        let (_, next) = accepted.next.take(&[]).expect("an offer");
        next.expect("one more").take(&choose(&key)).map(|_| ())
    };
    assert_eq!(taken(&|key| choice(key, 4, &[1, 0, 0, 0], 0)), Ok(()));
    for (what, refused) in [
        ("a layer", taken(&|key| choice(key, 4, &[2, 0, 0, 0], 0))),
        ("another key", taken(&|_| choice(&request.session, 4, &[1, 0, 0, 0], 0))),
        ("the client's key", taken(&|key| choice(key, 0, &[1, 0, 0, 0], 0))),
        ("this side's own token", taken(&|key| choice(key, 5, &[1, 0, 0, 0], 0))),
        ("encrypted", taken(&|key| choice(key, 6, &[1, 0, 0, 0], 0))),
        ("too short", taken(&|key| choice(key, 4, &[1, 0, 0], 0))),
        ("nothing", taken(&|_| Vec::new())),
        ("no data", taken(&|key| choice(key, 4, &[], 0))),
    ] {
        assert!(matches!(refused, Err(Fault::Layer(_))), "{what}: {refused:?}");
    }
    let accepted = acceptor().accept(&request.token(), NOW, &secrets(), |_, _| Seen::New).expect("accepted");
    assert!(matches!(accepted.next.take(&[1]), Err(Fault::Layer(_))), "data before the offer");
}

#[test]
fn tickets_for_another_key_are_refused_with_what_the_keytab_has() {
    let mut request = Request::new(Enctype::Aes256Sha1);
    request.service_key = Key::new(Enctype::Aes256Sha1, &[9; 32]).expect("a key");
    let Fault::WrongKey(said) = fault(&request) else { panic!("another fault") };
    assert!(
        said.contains("ticket: key version 2; keytab: version 2 aes128-cts-hmac-sha1-96, version 2 aes256"),
        "{said}"
    );
    let mut few = acceptor();
    few.keys.retain(|entry| entry.key.enctype() == Enctype::Aes128Sha1);
    let refused = few.accept(&request.token(), NOW, &secrets(), |_, _| Seen::New).expect_err("refused");
    assert!(matches!(refused, (None, Fault::NoKey(_))), "{refused:?}");
}

#[test]
fn ticket_of_an_older_key_is_read_while_the_keytab_has_that_key() {
    let mut many = acceptor();
    let newer = Key::new(Enctype::Aes256Sha1, &[8; 32]).expect("a key");
    many.keys.push(Entry { principal: principal(SERVICE), version: 3, key: newer.clone() });
    let mut request = Request::new(Enctype::Aes256Sha1);
    let accepts =
        |request: &Request| many.accept(&request.token(), NOW, &secrets(), |_, _| Seen::New).is_ok();
    assert!(accepts(&request), "version 2");
    (request.service_key, request.version) = (newer, Some(3));
    assert!(accepts(&request), "version 3");
    // Without a version, or with one that the keytab lacks, the newest key counts, as in Java.
    for version in [None, Some(9)] {
        request.version = version;
        assert!(accepts(&request), "{version:?}");
    }
}

#[test]
fn times_are_judged_with_the_clock_skew() {
    let base = Request::new(Enctype::Aes128Sha1);
    let at = |minutes: i64| TimestampMs(NOW.0 + minutes * MINUTE_MS);
    let with = |change: &dyn Fn(&mut Request)| {
        let mut request = base.clone();
        change(&mut request);
        acceptor()
            .accept(&request.token(), NOW, &secrets(), |_, _| Seen::New)
            .map(|_| ())
            .map_err(|(_, fault)| fault)
    };
    for minutes in [-5, 5] {
        assert_eq!(with(&|request| request.at = at(minutes)), Ok(()));
        assert!(matches!(with(&|request| request.at = at(minutes * 2)), Err(Fault::Skew { .. })));
    }
    assert_eq!(with(&|request| request.ends = at(-5)), Ok(()));
    assert!(matches!(with(&|request| request.ends = at(-6)), Err(Fault::Expired(_))));
    assert_eq!(with(&|request| request.starts = Some(at(5))), Ok(()));
    assert_eq!(with(&|request| request.starts = Some(at(6))), Err(Fault::NotYet));
    assert_eq!(with(&|request| request.ticket_flags = 1 << 24), Err(Fault::NotYet));
}

#[test]
fn requests_that_do_not_fit_together_are_refused() {
    let base = Request::new(Enctype::Aes128Sha1);
    let with = |change: &dyn Fn(&mut Request)| {
        let mut request = base.clone();
        change(&mut request);
        fault(&request)
    };
    assert!(matches!(
        with(&|request| request.in_authenticator = principal("bob@EXAMPLE.COM")),
        Fault::OtherClient(_)
    ));
    assert!(matches!(with(&|request| request.options = 1 << 30), Fault::Token(_)));
    assert!(matches!(with(&|request| request.checksum = None), Fault::Token(_)));
    assert!(matches!(with(&|request| request.checksum = Some((0x8003, vec![16, 0, 0, 0]))), Fault::Token(_)));
    assert!(matches!(with(&|request| request.checksum = Some((7, checksum(2)))), Fault::Token(_)));
}

#[test]
fn request_that_comes_twice_is_a_replay() {
    let (token, mut replays) = (Request::new(Enctype::Aes256Sha384).token(), Replays::default());
    let mut accept = || {
        acceptor()
            .accept(&token, NOW, &secrets(), |digest, until| replays.note(digest, until, NOW))
            .map(|_| ())
    };
    assert_eq!(accept(), Ok(()));
    let (client, fault) = accept().expect_err("refused");
    assert_eq!((client, fault), (Some("alice@EXAMPLE.COM".to_owned()), Fault::Replay));
}

#[test]
fn tokens_that_are_cut_or_changed_are_refused() {
    let token = Request::new(Enctype::Aes128Sha1).token();
    for length in 0..token.len() {
        assert!(acceptor().accept(&token[..length], NOW, &secrets(), |_, _| Seen::New).is_err(), "{length}");
    }
    for at in 0..token.len() {
        let mut changed = token.clone();
        changed[at] ^= 0x40;
        // The name of the service and the version of its key stand outside of what is encrypted, and the key decides.
        let accepted = acceptor().accept(&changed, NOW, &secrets(), |_, _| Seen::New);
        if let Ok(accepted) = accepted {
            assert_eq!(accepted.client, principal("alice@EXAMPLE.COM"));
            assert_ne!(changed, token);
        }
    }
    let longer = [&token[..], &[0]].concat();
    assert!(acceptor().accept(&longer, NOW, &secrets(), |_, _| Seen::New).is_err());
}

/// A listener that offers GSSAPI alone.
struct Listener(Acceptor, std::cell::RefCell<Replays>, [Offer; 1], PlainUsers, Option<Arc<Acceptor>>);

impl Listener {
    fn new() -> Self {
        let offer = Offer { mechanism: SaslMechanism::Gssapi, session_max_ms: 0 };
        Self(acceptor(), std::cell::RefCell::default(), [offer], PlainUsers::default(), None)
    }
}

impl Surroundings for Listener {
    fn offers(&self) -> &[Offer] {
        &self.2
    }

    fn api_versions(&self, _: i16, _: Option<&ApiVersionsRequest>) -> ApiVersionsResponse {
        ApiVersionsResponse::default()
    }

    fn plain_users(&self) -> &PlainUsers {
        &self.3
    }

    fn scram(&self, _: Mechanism, _: &str) -> Option<ScramCredential> {
        None
    }

    fn token(&self, _: Mechanism, _: &str) -> Option<TokenCredential> {
        None
    }

    fn decoy(&self) -> Decoy {
        Decoy::new(crate::Secret::from("a secret of the test"), 4096)
    }

    fn bearer(&self, _: &str, _: TimestampMs) -> Result<Bearer, String> {
        Err("none".to_owned())
    }

    fn kerberos(&self) -> Option<&Acceptor> {
        Some(&self.0)
    }

    fn kerberos_renewed(&self) -> Option<Arc<Acceptor>> {
        self.4.clone()
    }

    fn note(&self, digest: [u8; 16], until: TimestampMs, now: TimestampMs) -> Seen {
        self.1.borrow_mut().note(digest, until, now)
    }

    fn secrets(&self) -> Secrets {
        secrets()
    }

    fn nonce(&self) -> String {
        "nonce".to_owned()
    }
}

/// An exchange whose handshake is done; version 0: raw tokens follow.
fn shaken(around: &Listener, version: i16) -> Exchange {
    let mut exchange = Exchange::new();
    assert!(matches!(exchange.take(handshake(version), NOW, around), Step::Answer(_)));
    exchange
}

/// A request's bytes.
fn request(api_version: i16, body: RequestBody) -> Bytes {
    let header = RequestHeader {
        request_api_key: body.key().number(),
        request_api_version: api_version,
        correlation_id: 7,
        ..Default::default()
    };
    encode_request(&header, &body).expect("a request").into_bytes()
}

fn handshake(version: i16) -> Bytes {
    request(version, SaslHandshakeRequest { mechanism: "GSSAPI".into(), ..Default::default() }.into())
}

fn framed(token: &[u8]) -> Bytes {
    let auth_bytes = Bytes::copy_from_slice(token);
    request(1, SaslAuthenticateRequest { auth_bytes, ..Default::default() }.into())
}

fn without_mutual(client: &str) -> Request {
    let mut request = Request::new(Enctype::Aes256Sha384);
    (request.client, request.in_authenticator) = (principal(client), principal(client));
    request.checksum = Some((0x8003, checksum(0)));
    request
}

#[test]
fn login_by_raw_tokens_has_no_last_answer() {
    let around = Listener::new();
    for (version, has_answer) in [(0, false), (1, true)] {
        let request = without_mutual("alice@EXAMPLE.COM");
        let key = request.subkey.clone().expect("set");
        let (first, last) = (request.token(), choice(&key, 0, &[1, 0, 0, 0], 0));
        let frame = |token: &[u8]| if version == 0 { Bytes::copy_from_slice(token) } else { framed(token) };
        let mut exchange = shaken(&around, version);
        // Each login has a request of its own.
        around.1.replace(Replays::default());
        assert!(matches!(exchange.take(frame(&first), NOW, &around), Step::Answer(_)));
        let Step::Done(answer, known) = exchange.take(frame(&last), NOW, &around) else { panic!("refused") };
        assert_eq!((known.login.name.as_str(), known.lifetime_ms), ("alice", None));
        assert_eq!(answer.is_some(), has_answer, "version {version}");
    }
}

/// As Java's clients see it after `ktadd`: the KDC uses the new key at once.
#[test]
fn ticket_of_a_key_that_the_keytab_has_by_now_is_taken() {
    let mut around = Listener::new();
    let newer = Key::new(Enctype::Aes256Sha1, &[8; 32]).expect("a key");
    let request =
        Request { service_key: newer.clone(), version: Some(3), ..without_mutual("alice@EXAMPLE.COM") };
    let token = request.token();
    let is_taken =
        |around: &Listener| matches!(shaken(around, 1).take(framed(&token), NOW, around), Step::Answer(_));
    assert!(!is_taken(&around));
    let mut renewed = acceptor();
    renewed.keys.push(Entry { principal: principal(SERVICE), version: 3, key: newer });
    around.4 = Some(Arc::new(renewed));
    assert!(is_taken(&around));
    around.4 = Some(Arc::new(acceptor()));
    assert!(!is_taken(&around), "other keys, and not the ticket's");
}

#[test]
fn refused_tickets_are_answered_and_a_full_memory_closes() {
    let around = Listener::new();
    let failure = |token: &[u8]| match shaken(&around, 1).take(framed(token), NOW, &around) {
        Step::Failed(failure) => Some((failure.answer.is_some(), failure.user, failure.why)),
        _ => None,
    };
    let token = without_mutual("alice@EXAMPLE.COM").token();
    assert_eq!(failure(&token), None);
    let (is_answered, user, why) = failure(&token).expect("refused");
    assert_eq!((is_answered, user.as_deref()), (true, Some("alice@EXAMPLE.COM")));
    assert_eq!(why, "the request is a replay");
    for number in 0..u64::try_from(REMEMBERED_MAX).expect("fits") {
        let mut digest = [0; 16];
        digest[..8].copy_from_slice(&number.to_be_bytes());
        around.note(digest, TimestampMs(NOW.0 + 1), NOW);
    }
    let (is_answered, _, why) = failure(&without_mutual("bob@EXAMPLE.COM").token()).expect("refused");
    assert!(!is_answered && why.starts_with("this broker cannot remember further logins"), "{why}");
    around.1.replace(Replays::default());
    let (is_answered, user, why) = failure(&without_mutual("alice@OTHER.COM").token()).expect("refused");
    assert_eq!((is_answered, user.as_deref()), (true, Some("alice@OTHER.COM")));
    assert!(why.starts_with("No rules apply to alice@OTHER.COM"), "{why}");
}

#[test]
fn client_that_logs_in_again_keeps_its_principal() {
    let around = Listener::new();
    let log_in = |exchange: &mut Exchange, client: &str| {
        exchange.take(handshake(1), NOW, &around);
        around.1.replace(Replays::default());
        let request = without_mutual(client);
        exchange.take(framed(&request.token()), NOW, &around);
        let key = request.subkey.as_ref().expect("set");
        exchange.take(framed(&choice(key, 0, &[1, 0, 0, 0], 0)), NOW, &around)
    };
    let Step::Done(_, known) = log_in(&mut Exchange::new(), "alice@EXAMPLE.COM") else { panic!("refused") };
    let same = log_in(&mut Exchange::again(known.clone()), "alice@EXAMPLE.COM");
    assert!(matches!(same, Step::Done(Some(_), _)), "{same:?}");
    let Step::Failed(failure) = log_in(&mut Exchange::again(known), "bob@EXAMPLE.COM") else {
        panic!("taken")
    };
    assert!(failure.why.starts_with("Cannot change principals during re-authentication"), "{}", failure.why);
}

/// The client's side of this crate, with the ticket of a request.
fn initiated(request: &Request) -> (Vec<u8>, Initiator) {
    let ticket = Ticket {
        client: request.client.clone(),
        service: request.service.clone(),
        key: request.session.clone(),
        bytes: request.ticket(),
        starts: NOW,
        ends: request.ends,
    };
    Initiator::begin(&ticket, NOW.0 * 1000 + 123, &Secrets([9; Secrets::BYTES]))
}

#[test]
fn initiator_and_acceptor_agree_with_each_encryption_type() {
    for number in 17..=20 {
        let request = Request::new(Enctype::from_number(number).expect("known"));
        let (token, initiator) = initiated(&request);
        let accepted = acceptor().accept(&token, NOW, &secrets(), |_, _| Seen::New).expect("accepted");
        assert_eq!(accepted.client, principal("alice@EXAMPLE.COM"));
        let (token, initiator) = initiator.answer(&accepted.answer).expect("trusted").expect("one more");
        let (offer, next) = accepted.next.take(&token).expect("an offer");
        let (choice, initiator) = initiator.answer(&offer).expect("trusted").expect("one more");
        let (last, next) = next.expect("one more").take(&choice).expect("known");
        assert!(next.is_none());
        assert!(initiator.answer(&last).expect("trusted").is_none());
    }
}

#[test]
fn service_that_cannot_read_the_ticket_is_not_trusted() {
    let request = Request::new(Enctype::Aes256Sha1);
    let reply = |request: &Request| {
        let (token, initiator) = initiated(request);
        let accepted = acceptor().accept(&token, NOW, &secrets(), |_, _| Seen::New).expect("accepted");
        (accepted, initiator)
    };
    let (_, initiator) = reply(&request);
    assert!(matches!(initiator.answer(&[]), Err(Distrust::Reply(_))), "no proof");
    let mut other = request.clone();
    other.session = Key::new(Enctype::Aes256Sha1, &[77; 32]).expect("a key");
    let ((accepted, _), (_, initiator)) = (reply(&other), initiated(&request));
    assert!(matches!(initiator.answer(&accepted.answer), Err(Distrust::Reply(_))), "of another ticket");
    let (accepted, initiator) = reply(&request);
    let (_, initiator) = initiator.answer(&accepted.answer).expect("trusted").expect("one more");
    let forged = choice(&request.session, 5, &[1, 0, 0, 0], 0);
    assert!(matches!(initiator.answer(&forged), Err(Distrust::Offer(_))), "an offer of another key");
}
