//! What guards a listener: TLS records of strangers, files with keys and certificates, patterns of ACLs.

use std::sync::OnceLock;

use barnabas_base::{Secret, Text, Uuid};
use barnabas_certificates::{RevocationList, Source, Store};
use barnabas_metadata::access::Acl;
use barnabas_metadata::{Image, MetadataVersion};
use barnabas_security::explain::{Question, decides};
use barnabas_security::{Authorizer, Host, Operation, ResourceType, SuperUsers, binding};
use barnabas_tls::{Authority, ClientTls, ServerTls, Session, TlsSettings, Validity};
use bytes::BytesMut;

/// Both ends with a certificate of one authority. Made once: a key pair costs more than most inputs.
struct Ends {
    server: ServerTls,
    client: ClientTls,
}

fn ends() -> &'static Ends {
    static ENDS: OnceLock<Ends> = OnceLock::new();
    ENDS.get_or_init(|| {
        let validity = Validity { now_s: 1_700_000_000, days: 36_500 };
        let authority = Authority::new("fuzz", validity).expect("an authority");
        let issued = authority.issue("node", &["localhost".to_owned()], validity).expect("a certificate");
        let get = |key: &str| match key {
            "ssl.keystore.key" => issued.key.text().map(str::to_owned),
            "ssl.keystore.certificate.chain" => Some(issued.chain.clone()),
            "ssl.truststore.certificates" => Some(authority.certificate()),
            "ssl.client.auth" => Some("required".to_owned()),
            _ => None,
        };
        let settings = || TlsSettings::read(get).expect("sound settings");
        let server = ServerTls::load(settings(), false).expect("a server");
        Ends { server, client: ClientTls::load(settings()).expect("a client") }
    })
}

/// What a stranger sends to a listener with TLS: the first byte says how much of an honest handshake goes before it
/// (none; a client's greeting; all), and in which pieces it comes.
pub fn tls_records(data: &[u8]) {
    let Some((&form, rest)) = data.split_first() else { return };
    let Ok(mut session) = ends().server.accept() else { return };
    let rounds = [0, 1, 4][usize::from(form % 3)];
    if let Ok(mut honest) = ends().client.connect("localhost") {
        if rounds > 0 {
            honest.begin().expect("a greeting");
        }
        for round in 0..rounds {
            if round > 0 {
                pass(&mut session, &mut honest);
            }
            pass(&mut honest, &mut session);
        }
    }
    let step = usize::from(form / 3) * 64 + 1;
    let mut plain = BytesMut::new();
    for piece in rest.chunks(step) {
        let mut piece = Some(piece);
        let read = |into: &mut [u8]| {
            Ok(piece.take().map(|piece| {
                into[..piece.len()].copy_from_slice(piece);
                piece.len()
            }))
        };
        // 16 KiB of a piece at the most fit a read of this size.
        if session.receive(1 << 14, &mut plain, read).is_err() {
            // It may be told why, and says nothing more.
            assert!(
                session
                    .receive(1, &mut plain, |into| {
                        into[0] = 0;
                        Ok(Some(1))
                    })
                    .is_err()
            );
            break;
        }
    }
    assert!(plain.is_empty(), "a stranger has no key of the session");
}

fn pass(from: &mut Session, to: &mut Session) {
    let mut wire = Vec::new();
    if from.has_out() {
        from.flush(|bytes| {
            wire.extend_from_slice(bytes);
            Ok(bytes.len())
        })
        .expect("written");
    }
    for piece in wire.chunks(1024) {
        let read = |into: &mut [u8]| {
            into[..piece.len()].copy_from_slice(piece);
            Ok(Some(piece.len()))
        };
        to.receive(1024, &mut BytesMut::new(), read).expect("an honest handshake");
    }
}

/// A key or trust store in any format, with the password `storepass` and without one.
pub fn key_store(data: &[u8]) {
    let file =
        |password: Option<&str>| Source::File { path: "store".into(), password: password.map(Secret::from) };
    let opened = [
        Store::open(data, &file(None), None),
        Store::open(data, &file(Some("storepass")), Some(&Secret::from("keypass1"))),
    ];
    for store in opened.into_iter().flatten() {
        let keys = store.keys.len();
        assert!(store.keys.iter().all(|entry| !entry.chain.is_empty()) || keys > 0);
        drop(store.into_trusted());
    }
}

/// Lists of revoked certificates, in PEM or DER.
pub fn revocation_list(data: &[u8]) {
    drop(RevocationList::all_of(data));
}

/// ACLs and a question, word by word between line ends: what the index decides is what the ACLs say one by one.
pub fn acl(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let (Some(asked), acls) = (lines.next(), lines.take(64)) else { return };
    let mut image = Image::default();
    for (number, line) in acls.enumerate() {
        let mut words = line.splitn(5, '\t');
        let mut word = || words.next().unwrap_or_default();
        let codes: Vec<i8> = word().bytes().map(|digit| (digit as i8).wrapping_sub(b'0' as i8)).collect();
        let code = |at: usize| codes.get(at).copied().unwrap_or_default();
        let acl = Acl {
            resource_type: code(0),
            pattern_type: code(1),
            operation: code(2),
            permission: code(3),
            resource_name: Text::from(word()),
            principal: Text::from(word()),
            host: Text::from(word()),
        };
        drop(binding::check(&acl, MetadataVersion::LATEST));
        image.acls.insert(Uuid([number as u8; 16]), acl);
    }
    let mut words = asked.splitn(3, '\t');
    let mut word = || words.next().unwrap_or_default();
    let (principal, host, name) = (word(), Host::parse(word()), word());
    let authorizer = Authorizer::new(&image, SuperUsers::default(), false);
    let caller = authorizer.caller(principal, &host);
    for &resource_type in ResourceType::ALL_OF_THEM {
        for &operation in Operation::ALL_OF_THEM.iter().filter(|operation| **operation != Operation::All) {
            let question = Question { principal, host: &host, operation, resource_type, resource_name: name };
            let said: Vec<bool> = image.acls.values().filter_map(|acl| decides(acl, &question)).collect();
            let expected = said.contains(&true) && !said.contains(&false);
            let verdict = authorizer.decide(&caller, operation, resource_type, name);
            assert_eq!(verdict.is_allowed(), expected, "{question:?}");
            authorizer.allows_any(&caller, operation, resource_type);
        }
    }
}
