//! The RFCs' exchanges, the two sides against each other, and exchanges that were tampered with.

use barnabas_base::TimestampMs;

use super::client::{Client, ClientFault};
use super::credential::{CredentialError, Decoy, ScramCredential, fresh_salt};
use super::mechanism::Mechanism;
use super::server::{Identity, Received};
use super::token::{Fingerprint, TokenKey};
use crate::{Login, Refusal, Secret};

const BOTH: [Mechanism; 2] = [Mechanism::Sha256, Mechanism::Sha512];

fn decoy() -> Decoy {
    Decoy::new(Secret::from("0123456789abcdef0123456789abcdef"), 4096)
}

fn credential(mechanism: Mechanism, password: &str) -> ScramCredential {
    ScramCredential::from_password(mechanism, &Secret::from(password), b"some salt".to_vec(), 4096).unwrap()
}

/// An exchange of our client with our server.
fn exchange(
    mechanism: Mechanism,
    user: &str,
    password: &str,
    found: Option<&ScramCredential>,
) -> Result<Login, Refusal> {
    let (first, client) = Client::new(mechanism, user, false, "clientnonce");
    let received = Received::new(mechanism, &first)?;
    assert_eq!(received.identity(), Identity::User(user));
    let (challenge, server) = received.challenge(found, &decoy(), "servernonce");
    let (proof, client) = client.answer(&challenge, &Secret::from(password)).unwrap();
    let (signature, login) = server.finish(&proof)?;
    client.verify(&signature).unwrap();
    Ok(login)
}

#[test]
fn exchange_of_rfc_7677_gives_its_bytes() {
    let nonces = ("rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");
    let salt = b"\x5b\x6d\x99\x68\x9d\x12\x35\x8e\xec\xa0\x4b\x14\x12\x36\xfa\x81".to_vec();
    let password = Secret::from("pencil");
    let stored = ScramCredential::from_password(Mechanism::Sha256, &password, salt, 4096).unwrap();
    let (first, client) = Client::new(Mechanism::Sha256, "user", false, nonces.0);
    assert_eq!(first, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
    let received = Received::new(Mechanism::Sha256, &first).unwrap();
    let (challenge, server) = received.challenge(Some(&stored), &decoy(), nonces.1);
    assert_eq!(
        String::from_utf8_lossy(&challenge),
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    );
    let (proof, client) = client.answer(&challenge, &password).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&proof),
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    );
    let (signature, login) = server.finish(&proof).unwrap();
    assert_eq!(String::from_utf8_lossy(&signature), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    client.verify(&signature).unwrap();
    assert_eq!(login, Login { name: "user".into(), expires: None, token: None });
}

#[test]
fn salted_passwords_are_those_of_published_vectors() {
    // PBKDF2-HMAC-SHA-256 and -512 of "password", "salt", 4096 rounds: the well-known extension of RFC 6070's table.
    let hex = |mechanism: Mechanism| -> String {
        let salted = mechanism.salted_password(&Secret::from("password"), b"salt", 4096);
        salted.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    };
    assert_eq!(hex(Mechanism::Sha256), "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a");
    assert_eq!(
        hex(Mechanism::Sha512),
        "d197b1b33db0143e018b12f3d1d1479e6cdebdcc97c5c0f87f6902e072f457b5\
         143f30602641b3d55cd335988cb36b84376060ecd532e039b742a239434af2d5"
    );
}

#[test]
fn right_password_logs_in_and_wrong_does_not() {
    for mechanism in BOTH {
        let stored = credential(mechanism, "pencil");
        for user in ["user", "a,b=c", "with space"] {
            assert_eq!(exchange(mechanism, user, "pencil", Some(&stored)).unwrap().name, user);
        }
        let refusal = exchange(mechanism, "user", "pencils", Some(&stored)).unwrap_err();
        assert_eq!(refusal, Refusal::hidden("Invalid client credentials"));
    }
}

#[test]
fn unknown_user_fails_where_a_wrong_password_fails() {
    for mechanism in BOTH {
        let stored = credential(mechanism, "pencil");
        let wrong = exchange(mechanism, "user", "wrong", Some(&stored)).unwrap_err();
        assert_eq!(exchange(mechanism, "nosuch", "pencil", None).unwrap_err(), wrong);
        let of_other = credential(if mechanism == Mechanism::Sha256 { BOTH[1] } else { BOTH[0] }, "pencil");
        assert_eq!(exchange(mechanism, "user", "pencil", Some(&of_other)).unwrap_err(), wrong);
    }
}

#[test]
fn decoys_have_the_counts_and_the_salts_of_real_users() {
    let of = |count: u32, users: usize| std::iter::repeat_n((Mechanism::Sha256, count), users);
    let decoy = decoy().with_counts(of(8192, 25).chain(of(4096, 75)).chain([(Mechanism::Sha512, 16384)]));
    let salts_and_counts = |mechanism: Mechanism, decoy: &Decoy| {
        let of = |number: usize| {
            let (first, _) = Client::new(mechanism, &format!("unknown{number}"), false, "c");
            let (challenge, _) = Received::new(mechanism, &first).unwrap().challenge(None, decoy, "s");
            let text = String::from_utf8(challenge).unwrap();
            let (salt, count) = text.split_once(",s=").unwrap().1.split_once(",i=").unwrap();
            (salt.len(), count.to_owned())
        };
        (0..400).map(of).collect::<Vec<_>>()
    };
    let told = salts_and_counts(Mechanism::Sha256, &decoy);
    let eights = told.iter().filter(|(_, count)| count == "8192").count();
    let fours = told.iter().filter(|(_, count)| count == "4096").count();
    assert!((60..140).contains(&eights) && eights + fours == 400, "{eights} {fours}");
    let of_other = salts_and_counts(Mechanism::Sha512, &decoy);
    assert!(of_other.iter().all(|(_, count)| count == "16384"));
    assert!(salts_and_counts(Mechanism::Sha256, &decoy.of_tokens()).iter().all(|(_, count)| count == "4096"));
    // Our tools' salts have their form: 26 digits, seldom one less.
    let real = fresh_salt([0xa5; 17]);
    assert!(real.iter().all(u8::is_ascii_alphanumeric));
    let real = super::message::to_base64(&real).len();
    assert!(told.iter().filter(|(salt, _)| *salt == real).count() > 200, "{real} {told:?}");
}

#[test]
fn decoys_challenge_repeats_for_a_name_and_differs_between_names() {
    let challenge = |user: &str, decoy: &Decoy| {
        let (first, _) = Client::new(Mechanism::Sha256, user, false, "c");
        Received::new(Mechanism::Sha256, &first).unwrap().challenge(None, decoy, "s").0
    };
    assert_eq!(challenge("a", &decoy()), challenge("a", &decoy()));
    assert_ne!(challenge("a", &decoy()), challenge("b", &decoy()));
    assert_ne!(challenge("a", &decoy()), challenge("a", &Decoy::new(Secret::from("other"), 4096)));
    let eight = Decoy::new(Secret::from("other"), 8192);
    assert!(challenge("a", &eight).ends_with(b",i=8192"));
}

#[test]
fn token_logs_in_as_its_owner() {
    let stored = credential(Mechanism::Sha512, "hmac");
    let (first, client) = Client::new(Mechanism::Sha512, "token-id", true, "c");
    let received = Received::new(Mechanism::Sha512, &first).unwrap();
    assert_eq!(received.identity(), Identity::Token("token-id"));
    let found = Some((&stored, "owner", TimestampMs(99)));
    let (challenge, server) = received.challenge_token(found, &decoy(), "s");
    let (proof, _) = client.answer(&challenge, &Secret::from("hmac")).unwrap();
    let login = server.finish(&proof).unwrap().1;
    assert_eq!(
        login,
        Login { name: "owner".into(), expires: Some(TimestampMs(99)), token: Some("token-id".into()) }
    );
}

#[test]
fn authzid_must_be_the_user() {
    let of = |message: &[u8]| Received::new(Mechanism::Sha256, message).map(drop);
    assert_eq!(of(b"n,a=user,n=user,r=abc"), Ok(()));
    assert_eq!(of(b"n,a=a=2Cb,n=a=2Cb,r=abc"), Ok(()));
    assert!(matches!(of(b"n,a=other,n=user,r=abc"), Err(Refusal::Told(_))));
}

/// The final message of a good exchange, and the server that waits for it.
fn good_final() -> (super::server::Challenged, String) {
    let stored = credential(Mechanism::Sha256, "pencil");
    let (first, client) = Client::new(Mechanism::Sha256, "user", false, "cnonce");
    let received = Received::new(Mechanism::Sha256, &first).unwrap();
    let (challenge, server) = received.challenge(Some(&stored), &decoy(), "snonce");
    let (proof, _) = client.answer(&challenge, &Secret::from("pencil")).unwrap();
    (server, String::from_utf8(proof).unwrap())
}

#[test]
fn tampered_final_messages_are_refused() {
    let check = |from: &str, to: &str, expected: &str| {
        let (server, proof) = good_final();
        let tampered = proof.replacen(from, to, 1);
        assert_ne!(tampered, proof);
        assert_eq!(
            server.finish(tampered.as_bytes()).unwrap_err(),
            Refusal::hidden(expected),
            "{from} → {to}"
        );
    };
    check("snonce", "", "Invalid client nonce in the final client message.");
    check("cnoncesnonce", "cnoncesnonceX", "Invalid client nonce in the final client message.");
    check("c=biws", "c=eSws", "Invalid channel binding in the final client message.");
    check(",p=", ",x=y,p=", "Invalid client credentials");
    check(",p=", ",p=AAAA", "Invalid SCRAM client final message format: the proof has another length");
    let (server, proof) = good_final();
    assert!(server.finish(proof.as_bytes()).is_ok());
}

#[test]
fn client_refuses_a_dishonest_server() {
    let answer = |challenge: &str| {
        let (_, client) = Client::new(Mechanism::Sha256, "user", false, "cnonce");
        client.answer(challenge.as_bytes(), &Secret::from("pencil")).map(|(_, client)| client)
    };
    let fault = |challenge: &str| answer(challenge).map(drop).unwrap_err();
    assert_eq!(fault("r=other,s=QSXC,i=4096"), ClientFault::Nonce);
    assert_eq!(fault("r=cnonce,s=QSXC,i=4096"), ClientFault::Nonce);
    assert_eq!(fault("r=cnonceS,s=QSXC,i=4095"), ClientFault::Iterations(4095));
    assert_eq!(fault("r=cnonceS,s=QSXC,i=16385"), ClientFault::Iterations(16385));
    assert_eq!(fault("nonsense"), ClientFault::Malformed);
    let verify = |last: &str| answer("r=cnonceS,s=QSXC,i=4096").unwrap().verify(last.as_bytes()).unwrap_err();
    assert_eq!(verify("e=unknown-user"), ClientFault::Refused("unknown-user".into()));
    assert_eq!(verify("v=AAAA"), ClientFault::Malformed);
    assert_eq!(verify("v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), ClientFault::ServerSignature);
}

#[test]
fn credentials_out_of_bounds_are_errors() {
    let make = |salt: &[u8], key: usize, iterations: i64| {
        let key = Secret::from(vec![1; key]);
        ScramCredential::new(Mechanism::Sha256, salt.to_vec(), key.clone(), key, iterations).map(drop)
    };
    assert_eq!(make(b"s", 32, 4096), Ok(()));
    assert_eq!(make(b"s", 32, 16384), Ok(()));
    for iterations in [i64::MIN, -1, 0, 4095, 16385, i64::MAX] {
        assert!(
            matches!(make(b"s", 32, iterations), Err(CredentialError::Iterations { .. })),
            "{iterations}"
        );
    }
    assert!(matches!(make(b"", 32, 4096), Err(CredentialError::NoSalt { .. })));
    assert!(matches!(make(b"s", 64, 4096), Err(CredentialError::KeyLength { given: 64, .. })));
    let shown = format!("{:?}", credential(Mechanism::Sha256, "x"));
    assert!(shown.contains("stored_key: [hidden], server_key: [hidden]"), "{shown}");
}

#[test]
fn mutated_messages_never_panic_or_log_in() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    let first = b"n,a=user,n=user,r=cnonce,tokenauth=true".to_vec();
    for _ in 0..3000 {
        let mut message = first.clone();
        mutate(&mut message, &mut random);
        if let Ok(received) = Received::new(Mechanism::Sha256, &message) {
            drop(received.challenge(None, &decoy(), "snonce"));
        }
        let (server, proof) = decoy_final();
        let mut last = proof.clone();
        mutate(&mut last, &mut random);
        assert!(server.finish(&last).is_err(), "{}", String::from_utf8_lossy(&last));
        let (_, client) = Client::new(Mechanism::Sha256, "user", false, "cnonce");
        let mut challenge = b"r=cnoncesnonce,s=QSXC,i=1".to_vec();
        mutate(&mut challenge, &mut random);
        drop(client.answer(&challenge, &Secret::from("p")));
    }
}

/// A final message against a decoy: nothing that is done to it may log in.
fn decoy_final() -> (super::server::Challenged, Vec<u8>) {
    let received = Received::new(Mechanism::Sha256, b"n,,n=user,r=cnonce").unwrap();
    let (_, server) = received.challenge(None, &decoy(), "snonce");
    (server, b"c=biws,r=cnoncesnonce,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_vec())
}

fn mutate(message: &mut Vec<u8>, random: &mut impl FnMut(usize) -> usize) {
    for _ in 0..=random(3) {
        let at = random(message.len() + 1);
        match random(4) {
            0 => message.insert(at, random(256) as u8),
            1 => message.truncate(at),
            2 if at < message.len() => message[at] = b",=np\0\xffrs"[random(8)],
            _ if at < message.len() => drop(message.remove(at)),
            _ => {}
        }
    }
}

/// The secret as Java's `Mac` makes it: HmacSHA512 of the id under the key.
#[test]
fn token_secret_is_kafkas() {
    let key = TokenKey::new("the-key").expect("a key");
    let hmac = key.hmac("Y8vh5FkyTdeETDzX9DxmHA");
    let text = super::message::to_base64(hmac.bytes());
    assert_eq!(
        text,
        "NN8IS2a7wgpTrYYUeB42b23tDHL8yzGtiz0XPhO6OnBNnKkaEQzIo8lFMZPx4X+AynvU81hIU7mGIk9KTZsJPw=="
    );
    assert_eq!(TokenKey::new(""), None);
    assert_eq!(Fingerprint::of(hmac.bytes()), Fingerprint::of(hmac.bytes()));
    assert_ne!(Fingerprint::of(hmac.bytes()), Fingerprint::of(&[1; 64]));
    assert!(!format!("{key:?}").contains("the-key"));
}

#[test]
fn token_credential_takes_the_secret_as_password() {
    let key = TokenKey::new("the-key").expect("a key");
    for mechanism in BOTH {
        let stored = key.credential(mechanism, "id");
        assert_eq!(stored, key.credential(mechanism, "id"), "each broker derives the same");
        assert_ne!(stored.salt(), key.credential(mechanism, "other").salt());
        assert_eq!(stored.iterations(), 4096);
        let password = super::message::to_base64(key.hmac("id").bytes());
        assert_eq!(exchange(mechanism, "id", &password, Some(&stored)).expect("logs in").name, "id");
        assert!(exchange(mechanism, "id", "wrong", Some(&stored)).is_err());
    }
}

#[test]
fn decoy_of_tokens_has_the_iterations_of_tokens() {
    let (first, _) = Client::new(Mechanism::Sha256, "id", true, "c");
    let decoy = Decoy::new(Secret::from("secret"), 8192).of_tokens();
    let (challenge, _) = Received::new(Mechanism::Sha256, &first).unwrap().challenge_token(None, &decoy, "s");
    assert!(challenge.ends_with(b",i=4096"));
}
