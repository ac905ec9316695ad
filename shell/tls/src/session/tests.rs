//! Two sessions that speak to each other in memory.

mod revoked;

use super::*;
use crate::{ClientTls, Reload, ServerTls, TlsSettings};
use bytes::BytesMut;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};
use std::collections::HashMap;

type Settings = HashMap<&'static str, String>;
type Issuer = CertifiedIssuer<'static, KeyPair>;

const NOW_S: i64 = 1_800_000_000;

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "Barnabas");
    name.push(DnType::CommonName, common);
    name
}

fn authority(common: &str) -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).expect("sound");
    params.distinguished_name = name(common);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed")
}

/// Key and chain as PEM; `until`: the last year.
fn leaf(issuer: &Issuer, common: &str, until: i32) -> (String, String) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("sound");
    params.distinguished_name = name(common);
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, issuer).expect("signed");
    (key.serialize_pem(), certificate.pem())
}

fn with_key(issuer: &Issuer, common: &str) -> Settings {
    let (key, chain) = leaf(issuer, common, 2100);
    HashMap::from([("ssl.keystore.key", key), ("ssl.keystore.certificate.chain", chain)])
}

fn trusting(mut settings: Settings, issuer: &Issuer) -> Settings {
    settings.insert("ssl.truststore.certificates", issuer.pem());
    settings
}

fn read(settings: &Settings) -> TlsSettings {
    TlsSettings::read(|key| settings.get(key).cloned()).expect("sound")
}

fn server(settings: &Settings) -> ServerTls {
    ServerTls::load(read(settings), false).expect("loads")
}

fn client(settings: &Settings) -> ClientTls {
    ClientTls::load(read(settings)).expect("loads")
}

fn meet(client: &ClientTls, server: &ServerTls) -> Result<(Session, Session), SessionError> {
    let mut dialling = client.connect("localhost")?;
    let mut accepting = server.accept()?;
    Session::meet(&mut dialling, &mut accepting)?;
    // The server's ticket.
    accepting.pass_to(&mut dialling)?;
    Ok((dialling, accepting))
}

/// Sends in the pieces given, and hands over `step` bytes of ciphertext at a time.
fn carry(from: &mut Session, to: &mut Session, pieces: &[&[u8]], step: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    for piece in pieces {
        with_out(|out| {
            let length = from.encrypt(piece, out).expect("encrypts");
            wire.extend_from_slice(&out[..length]);
        });
    }
    let mut got = BytesMut::new();
    let mut rest = &wire[..];
    while !rest.is_empty() || to.has_received() {
        let arrived = to.receive(step, &mut got, |buffer| {
            let count = rest.len().min(step).min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            Ok(Some(count))
        });
        assert!(arrived.expect("sound").is_some());
    }
    got.to_vec()
}

#[test]
fn records_torn_anywhere_come_out_whole() {
    let issuer = authority("ca");
    let (server, client) =
        (server(&with_key(&issuer, "broker")), client(&trusting(Settings::new(), &issuer)));
    let (mut dialling, mut accepting) = meet(&client, &server).expect("meet");
    let large: Vec<u8> = (0..100_000u32).map(|byte| byte as u8).collect();
    for step in [1, 5, 17, 1_000, 16_384, 16_406, 200_000] {
        let pieces: [&[u8]; 4] = [b"a", &large, b"", b"end"];
        let expected: Vec<u8> = pieces.concat();
        assert!(carry(&mut dialling, &mut accepting, &pieces, step) == expected, "{step}");
        assert!(carry(&mut accepting, &mut dialling, &pieces, step) == expected, "{step}");
        assert_eq!(accepting.held_bytes() + dialling.held_bytes(), 0, "idle sessions hold no buffer");
    }
    dialling.close();
    let mut ciphertext = dialling.out.bytes().to_vec();
    let mut got = BytesMut::new();
    let end = accepting.receive(10, &mut got, |buffer| {
        let count = ciphertext.len();
        buffer[..count].copy_from_slice(&ciphertext);
        Ok(Some(count))
    });
    assert!(end.expect("sound").expect("something").is_end);
    ciphertext[6] ^= 1;
    let (mut dialling, _) = meet(&client, &server).expect("meet");
    let damaged = dialling.receive(10, &mut got, |buffer| {
        buffer[..ciphertext.len()].copy_from_slice(&ciphertext);
        Ok(Some(ciphertext.len()))
    });
    assert!(damaged.is_err());
    assert!(dialling.has_out(), "an alert says so");
}

/// A certificate or list without its version, which makes it version 1; its signature no longer fits.
fn without_version(der: &[u8], version: &[u8]) -> Vec<u8> {
    let mut der = der.to_vec();
    let at = der.windows(version.len()).position(|bytes| bytes == version).expect("its version");
    der.drain(at..at + version.len());
    // The lengths of the whole and of what is signed of it, each of one or two bytes behind 0x81 or 0x82.
    let mut header = 0;
    for _ in 0..2 {
        let bytes = usize::from(der[header + 1] & 0x7f);
        let length = &mut der[header + 2..header + 2 + bytes];
        let value = length.iter().fold(0, |value, byte| value << 8 | usize::from(*byte)) - version.len();
        length.copy_from_slice(&value.to_be_bytes()[size_of::<usize>() - bytes..]);
        header += 2 + bytes;
    }
    der
}

fn as_version_1(chain: &str) -> String {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let der = CertificateDer::from_pem_slice(chain.as_bytes()).expect("a certificate");
    let der = without_version(&der, &[0xa0, 3, 2, 1, 2]);
    let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, der);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

#[test]
fn own_certificate_of_version_1_is_shown_and_named() {
    let issuer = authority("ca");
    let mut settings = with_key(&issuer, "broker");
    settings.entry("ssl.keystore.certificate.chain").and_modify(|chain| *chain = as_version_1(chain));
    let server = server(&settings);
    let warnings = server.warnings();
    assert!(
        warnings[0].starts_with("the certificate of CN=broker,O=Barnabas is of X.509 version 1"),
        "{warnings:?}"
    );
    let refused =
        meet(&client(&trusting(Settings::new(), &issuer)), &server).expect_err("not by our clients");
    assert!(refused.to_string().contains("is of X.509 version 1"), "{refused}");
    let (other, _) = leaf(&issuer, "other", 2100);
    settings.insert("ssl.keystore.key", other);
    let wrong = ServerTls::load(read(&settings), false).expect_err("another key");
    assert!(wrong.to_string().contains("belongs to another certificate"), "{wrong}");
}

#[test]
fn sessions_are_resumed_in_both_versions() {
    let issuer = authority("ca");
    for version in ["TLSv1.2", "TLSv1.3"] {
        let mut settings = trusting(with_key(&issuer, "broker"), &issuer);
        settings.insert("ssl.client.auth", "required".to_owned());
        let server = server(&settings);
        settings.insert("ssl.enabled.protocols", version.to_owned());
        let client = client(&settings);
        let resumed: Vec<bool> = (0..3)
            .map(|_| {
                let (mut dialling, mut accepting) = meet(&client, &server).expect("meet");
                assert_eq!(dialling.protocol(), version);
                carry(&mut accepting, &mut dialling, &[b"answer"], 4_096);
                let principal = server.principal(&accepting, NOW_S).expect("mapped");
                assert_eq!(principal.as_deref(), Some("CN=broker,O=Barnabas"), "known when resumed as well");
                assert!(server.principal(&accepting, i64::MAX).is_err(), "expiry is looked at again");
                accepting.is_resumed()
            })
            .collect();
        assert_eq!(resumed, [false, true, true], "{version}");
    }
}

#[test]
fn client_certificates_are_judged_as_asked() {
    let (issuer, other) = (authority("ca"), authority("other"));
    let alone = trusting(Settings::new(), &issuer);
    let own = trusting(with_key(&issuer, "alice"), &issuer);
    let foreign = trusting(with_key(&other, "mallory"), &issuer);
    let (key, chain) = leaf(&issuer, "late", 2021);
    let late = trusting(
        HashMap::from([("ssl.keystore.key", key), ("ssl.keystore.certificate.chain", chain)]),
        &issuer,
    );
    let outcome = |auth: &str, settings: &Settings| {
        let mut of_server = trusting(with_key(&issuer, "broker"), &issuer);
        of_server.insert("ssl.client.auth", auth.to_owned());
        let server = server(&of_server);
        let (_, accepting) = meet(&client(settings), &server).map_err(|error| error.to_string())?;
        server.principal(&accepting, NOW_S).map_err(|error| error.to_string())
    };
    assert_eq!(outcome("none", &own), Ok(None));
    assert_eq!(outcome("requested", &alone), Ok(None));
    assert_eq!(outcome("requested", &own), Ok(Some("CN=alice,O=Barnabas".to_owned())));
    assert_eq!(outcome("required", &own), Ok(Some("CN=alice,O=Barnabas".to_owned())));
    assert!(outcome("required", &alone).is_err());
    for auth in ["requested", "required"] {
        let refused = outcome(auth, &foreign).expect_err("refused");
        assert!(refused.contains("CN=mallory,O=Barnabas"), "{refused}");
        let refused = outcome(auth, &late).expect_err("refused");
        assert!(refused.contains("expired") && refused.contains("CN=late"), "{refused}");
    }
}

#[test]
fn host_names_are_checked_unless_switched_off() {
    let issuer = authority("ca");
    let server = server(&with_key(&issuer, "broker"));
    let mut settings = trusting(Settings::new(), &issuer);
    let reach = |settings: &Settings, host: &str| {
        let mut dialling = client(settings).connect(host)?;
        Session::meet(&mut dialling, &mut server.accept()?)
    };
    reach(&settings, "localhost").expect("its name");
    assert!(reach(&settings, "other.example.com").is_err());
    assert!(reach(&settings, "127.0.0.1").is_err());
    settings.insert("ssl.endpoint.identification.algorithm", String::new());
    reach(&settings, "other.example.com").expect("not checked");
    let foreign = trusting(settings, &authority("other"));
    assert!(reach(&foreign, "localhost").is_err(), "whom to trust is checked all the same");
}

#[test]
fn certificate_that_is_trusted_itself_is_accepted() {
    // As openssl req -x509 makes it: an authority by its extensions, used by a server.
    let own = authority("self-signed");
    let settings = HashMap::from([
        ("ssl.keystore.key", own.key().serialize_pem()),
        ("ssl.keystore.certificate.chain", own.pem()),
        ("ssl.truststore.certificates", own.pem()),
        ("ssl.endpoint.identification.algorithm", String::new()),
        ("ssl.client.auth", "required".to_owned()),
    ]);
    meet(&client(&settings), &server(&settings)).expect("meet");
}

#[test]
fn reload_takes_only_what_verifies() {
    let folder = std::env::temp_dir().join(format!("barnabas-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("writes");
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (issuer, other) = (authority("ca"), authority("other"));
    let pair = |issuer: &Issuer, common: &str, until| {
        let (key, chain) = leaf(issuer, common, until);
        format!("{key}{chain}")
    };
    write("own.pem", &pair(&issuer, "broker", 2100));
    write("ca.pem", &issuer.pem());
    let settings = HashMap::from([
        ("ssl.keystore.type", "PEM".to_owned()),
        ("ssl.keystore.location", path("own.pem")),
        ("ssl.truststore.location", path("ca.pem")),
    ]);
    let server = ServerTls::load(read(&settings), true).expect("loads");
    let dialling = client(&settings);
    assert_eq!((server.reload(NOW_S), dialling.reload(NOW_S)), (Reload::Unchanged, Reload::Unchanged));
    let kept = |why: &str| match server.reload(NOW_S) {
        Reload::Kept(error) => assert!(error.to_string().contains(why), "{error}"),
        other => panic!("{other:?}"),
    };
    write("own.pem", "-----BEGIN PRIV");
    kept("no end");
    write("own.pem", &pair(&issuer, "another", 2100));
    kept("ssl.allow.dn.changes");
    write("own.pem", &pair(&issuer, "broker", 2021));
    kept("expired");
    write("own.pem", &pair(&other, "broker", 2100));
    kept("cannot connect");
    match dialling.reload(NOW_S) {
        Reload::Kept(error) => assert!(error.to_string().contains("other nodes would refuse it"), "{error}"),
        other => panic!("{other:?}"),
    }
    std::fs::remove_file(folder.join("own.pem")).expect("removes");
    kept("cannot be read");
    let with_trust = client(&trusting(Settings::new(), &issuer));
    meet(&with_trust, &server).expect("the old one is still in use");
    write("own.pem", &pair(&issuer, "broker", 2099));
    assert_eq!((server.reload(NOW_S), dialling.reload(NOW_S)), (Reload::Loaded, Reload::Loaded));
    assert_eq!(server.reload(NOW_S), Reload::Unchanged);
    meet(&with_trust, &server).expect("the new one");
    std::fs::remove_dir_all(&folder).expect("removes");
}

/// Clients' certificates are of another authority than servers' are: the trust store cannot judge its own certificate.
#[test]
fn clients_of_an_authority_of_their_own_are_reloaded() {
    let folder = std::env::temp_dir().join(format!("barnabas-tls-own-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("own.pem");
    let (of_clients, of_servers) = (authority("clients"), authority("servers"));
    let write = |until| {
        let (key, chain) = leaf(&of_clients, "client", until);
        std::fs::write(&path, format!("{key}{chain}")).expect("writes");
    };
    write(2100);
    let settings = HashMap::from([
        ("ssl.keystore.type", "PEM".to_owned()),
        ("ssl.keystore.location", path.to_string_lossy().into_owned()),
    ]);
    let client = client(&trusting(settings, &of_servers));
    write(2099);
    assert_eq!(client.reload(NOW_S), Reload::Loaded);
    std::fs::remove_dir_all(&folder).expect("removes");
}

#[test]
fn names_on_the_wire_are_mapped() {
    let issuer = authority("ca");
    let mut settings = trusting(with_key(&issuer, "Alice"), &issuer);
    settings.insert("ssl.client.auth", "required".to_owned());
    settings.insert("ssl.principal.mapping.rules", "RULE:^CN=([^,]+),.*$/$1/L".to_owned());
    let of_alice = server(&settings);
    let (_, accepting) = meet(&client(&settings), &of_alice).expect("meet");
    assert_eq!(of_alice.principal(&accepting, NOW_S).expect("mapped").as_deref(), Some("alice"));
    settings.insert("ssl.principal.mapping.rules", "RULE:^CN=x$/x/".to_owned());
    let strict = server(&settings);
    let (_, accepting) = meet(&client(&settings), &strict).expect("meet");
    assert!(strict.principal(&accepting, NOW_S).is_err());
}

#[test]
fn settings_change_for_new_connections_alone() {
    let issuer = authority("ca");
    let mut settings = trusting(with_key(&issuer, "Alice"), &issuer);
    let server = server(&settings);
    let alone = client(&trusting(Settings::new(), &issuer));
    assert_eq!(server.reconfigure(&read(&settings), NOW_S), Reload::Unchanged);
    let (mut dialling, mut accepting) = meet(&alone, &server).expect("nothing is asked for");
    settings.insert("ssl.client.auth", "required".to_owned());
    settings.insert("ssl.enabled.protocols", "TLSv1.2".to_owned());
    settings.insert("ssl.principal.mapping.rules", "RULE:^CN=([^,]+),.*$/$1/L".to_owned());
    assert_eq!(server.check(&read(&settings), NOW_S), Ok(()));
    assert_eq!(server.reconfigure(&read(&settings), NOW_S), Reload::Loaded);
    assert!(server.requires_clients() && meet(&alone, &server).is_err());
    let (_, with_certificate) = meet(&client(&settings), &server).expect("meet");
    assert_eq!(with_certificate.protocol(), "TLSv1.2");
    assert_eq!(server.principal(&with_certificate, NOW_S).expect("mapped").as_deref(), Some("alice"));
    assert_eq!(carry(&mut dialling, &mut accepting, &[b"goes on"], 100), b"goes on");
    settings.insert("ssl.enabled.protocols", "TLSv1.1".to_owned());
    assert_eq!(server.check(&read(&settings), NOW_S).expect_err("none").key, "ssl.enabled.protocols");
    assert!(matches!(server.reconfigure(&read(&settings), NOW_S), Reload::Kept(_)));
    meet(&client(&trusting(with_key(&issuer, "Bob"), &issuer)), &server).expect("as before");
}

/// rustls-webpki follows at most six authorities; a message past `INCOMING_MAX` is not collected.
#[test]
fn chain_of_a_hundred_certificates_is_refused_and_holds_little() {
    let root = authority("ca");
    let server = server(&{
        let mut settings = trusting(with_key(&root, "broker"), &root);
        settings.insert("ssl.client.auth", "required".to_owned());
        settings
    });
    let mut issuer = root;
    let mut above = issuer.pem();
    for length in [2, 100] {
        let mut pems = Vec::new();
        for number in 0..length - 1 {
            let mut params = CertificateParams::new(Vec::new()).expect("sound");
            params.distinguished_name = name(&format!("ca {number}"));
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().expect("a key");
            issuer = CertifiedIssuer::signed_by(params, key, &issuer).expect("signed");
            pems.insert(0, issuer.pem());
        }
        let (key, leaf) = leaf(&issuer, "stranger", 2100);
        let mut settings = Settings::from([("ssl.keystore.key", key)]);
        settings.insert("ssl.keystore.certificate.chain", leaf + &pems.concat() + &above);
        settings.insert("ssl.endpoint.identification.algorithm", String::new());
        above = pems.concat() + &above;
        settings.insert("ssl.truststore.certificates", root_of(&above));
        let (mut dialling, mut accepting) =
            (client(&settings).connect("localhost").expect("a name"), server.accept().expect("accepts"));
        let met = Session::meet(&mut dialling, &mut accepting);
        assert_eq!(met.is_ok() && !accepting.is_handshaking(), length == 2, "{length}");
        assert!(accepting.held_bytes() < 2 * INCOMING_MAX, "{length}: {}", accepting.held_bytes());
    }
}

/// The last certificate of a chain.
fn root_of(chain: &str) -> String {
    chain[chain.rfind("-----BEGIN").expect("one")..].to_owned()
}

/// A bit of the wire flips, or the wire is cut, at every stage: the session ends with an error, and neither then nor
/// afterwards does rustls meet bytes that it does not expect.
#[test]
fn damaged_ciphertext_ends_the_session_alone() {
    let issuer = authority("ca");
    let (server, client) =
        (server(&with_key(&issuer, "broker")), client(&trusting(Settings::new(), &issuer)));
    let mut failed = 0;
    for round in 0..400usize {
        let (mut dialling, mut accepting) =
            (client.connect("localhost").expect("a name"), server.accept().expect("accepts"));
        dialling.begin().expect("greets");
        for turn in 0..6 {
            let mut wire = dialling.out.bytes().to_vec();
            dialling.out = Received::default();
            if !dialling.is_handshaking() {
                with_out(|out| {
                    let length = dialling.encrypt(&[7; 300], out).unwrap_or(0);
                    wire.extend_from_slice(&out[..length]);
                });
            }
            if turn == round % 3 && !wire.is_empty() {
                let at = round * 7919 % wire.len();
                wire[at] ^= 1 << (round % 8);
            }
            let mut fed = 0;
            let step = 1 + round * 31 % 700;
            while fed < wire.len() {
                let end = wire.len().min(fed + step);
                let part = &wire[fed..end];
                fed = end;
                let mut got = BytesMut::new();
                let read = |buffer: &mut [u8]| {
                    buffer[..part.len()].copy_from_slice(part);
                    Ok(Some(part.len()))
                };
                failed += usize::from(accepting.read(part.len(), &mut got, read).is_err());
            }
            with_out(|out| accepting.encrypt(b"x", out)).ok();
            accepting.close();
            std::mem::swap(&mut dialling, &mut accepting);
        }
    }
    assert!(failed > 100, "{failed}");
}
