//! A KDC's answers, made of this folder's own parts.

use super::*;

const NOW: TimestampMs = TimestampMs(1_795_943_000_000);
const NONCE: u32 = 77;

fn principal(text: &str) -> Principal {
    Principal::parse(text).expect("a principal")
}

fn entry(fill: u8) -> Entry {
    let key = Key::new(Enctype::Aes256Sha1, &[fill; 32]).expect("a key");
    Entry { principal: principal("alice@R"), version: 1, key }
}

fn named(number: u8, name: &Principal) -> Vec<u8> {
    der::field(number, &messages::name_of(name))
}

/// An AS-REP or TGS-REP that `key` encrypts. `tag`: of its encrypted part.
fn answer(kind: u8, tag: u8, (key, usage): (&Key, Usage), service: &Principal, nonce: u32) -> Vec<u8> {
    let session = der::sequence(&[der::field(0, &der::integer(18)), der::field(1, &der::octets(&[5; 32]))]);
    let part = [
        der::field(0, &session),
        der::field(1, &der::sequence(&[])),
        der::field(2, &der::integer(nonce.into())),
        der::field(4, &der::flags(0)),
        der::field(5, &der::time(NOW)),
        der::field(7, &der::time(TimestampMs(NOW.0 + 3_600_000))),
        der::field(9, &der::string(&service.realm)),
        named(10, service),
    ];
    let part = der::element(application(tag), &der::sequence(&part));
    let cipher = key.encrypt(usage, &[1; 16], &part).expect("a cipher");
    let client = principal("alice@R");
    let fields = [
        der::field(0, &der::integer(5)),
        der::field(1, &der::integer(i64::from(kind))),
        der::field(3, &der::string(&client.realm)),
        named(4, &client),
        der::field(5, &der::element(application(1), b"ticket")),
        der::field(6, &messages::encrypted_data(key.enctype(), &cipher)),
    ];
    der::element(application(kind), &der::sequence(&fields))
}

fn error(code: i64, text: Option<&str>, data: Option<&[u8]>) -> Vec<u8> {
    let mut fields = vec![
        der::field(0, &der::integer(5)),
        der::field(1, &der::integer(30)),
        der::field(4, &der::time(NOW)),
        der::field(5, &der::integer(0)),
        der::field(6, &der::integer(code)),
        der::field(9, &der::string("R")),
        named(10, &ticket_service(&principal("alice@R"))),
    ];
    fields.extend(text.map(|text| der::field(11, &der::string(text))));
    fields.extend(data.map(|data| der::field(12, &der::octets(data))));
    der::element(application(ERROR), &der::sequence(&fields))
}

fn first() -> Ticket {
    let (client, key) = (principal("alice@R"), entry(1));
    let whole = answer(AS_REP, 25, (&key.key, Usage::AsReply), &ticket_service(&client), NONCE);
    as_reply(&whole, &client, &[entry(9), key], NONCE).expect("a ticket")
}

#[test]
fn first_ticket_is_read_with_the_clients_key() {
    let ticket = first();
    assert_eq!(ticket.bytes, der::element(application(1), b"ticket"));
    assert_eq!((ticket.starts, ticket.ends), (NOW, TimestampMs(NOW.0 + 3_600_000)));
    let (client, key) = (principal("alice@R"), entry(1));
    // Tag 26 as well; not another key, another number, another service.
    let of =
        |tag, nonce, service: &Principal| answer(AS_REP, tag, (&key.key, Usage::AsReply), service, nonce);
    let own = ticket_service(&client);
    assert!(as_reply(&of(26, NONCE, &own), &client, &[entry(1)], NONCE).is_ok());
    assert_eq!(as_reply(&of(25, NONCE, &own), &client, &[entry(2)], NONCE), Err(KdcFault::WrongKey));
    assert_eq!(as_reply(&of(25, 1, &own), &client, &[entry(1)], NONCE), Err(KdcFault::Other));
    let other = principal("krbtgt/S@S");
    assert_eq!(as_reply(&of(25, NONCE, &other), &client, &[entry(1)], NONCE), Err(KdcFault::Other));
    assert_eq!(as_reply(&of(25, NONCE, &own), &principal("bob@R"), &[entry(1)], NONCE), Err(KdcFault::Other));
}

#[test]
fn services_ticket_is_read_with_the_first_tickets_key() {
    let (first, service) = (first(), principal("kafka/host@R"));
    let whole = answer(TGS_REP, 26, (&first.key, Usage::TgsReply), &service, NONCE);
    assert_eq!(tgs_reply(&whole, &first, &service, NONCE).expect("a ticket").service, service);
    let other = principal("kafka/other@R");
    assert_eq!(tgs_reply(&whole, &first, &other, NONCE), Err(KdcFault::Other));
    for length in 0..whole.len() {
        assert!(tgs_reply(&whole[..length], &first, &service, NONCE).is_err(), "{length}");
    }
}

#[test]
fn refusals_say_what_to_do() {
    let refused = |bytes: &[u8]| as_reply(bytes, &principal("alice@R"), &[], NONCE).expect_err("refused");
    let said = refused(&error(37, Some("clock\nskew"), None)).to_string();
    assert_eq!(said, "the KDC refuses: clockskew (error 37: the clocks differ too much)");
    let entry = |enctype| der::sequence(&[der::field(0, &der::integer(enctype))]);
    let types = der::sequence(&[entry(23), entry(18)]);
    let methods = der::sequence(&[padata(2, &[]), padata(PA_ETYPE_INFO2, &types)]);
    assert_eq!(refused(&error(25, None, Some(&methods))), KdcFault::Preauth(vec![23, 18]));
    assert_eq!(refused(&error(25, None, None)), KdcFault::Preauth(Vec::new()));
    assert_eq!(refused(b""), KdcFault::Malformed);
}
