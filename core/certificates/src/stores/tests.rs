//! Files made by keytool and openssl (lab/compat/golden/tls/stores), and files that are none.

use super::{Store, open};
use crate::certificate::Facts;
use rustls::crypto::aws_lc_rs::default_provider as provider;
use rustls::sign::CertifiedKey;

macro_rules! file {
    ($name:literal) => {
        include_bytes!(concat!("../../testdata/", $name))
    };
}

const STORE: Option<&str> = Some("storepass");
const KEY: Option<&str> = Some("keypass1");

/// The store has one key that signs for its certificate, and the authority behind it.
fn holds_key(bytes: &[u8], password: Option<&str>, key_password: Option<&str>, subject: &str) {
    let Store { mut keys, .. } = open(bytes, password, key_password).expect("opens");
    let entry = keys.pop().expect("a key");
    assert!(keys.is_empty());
    let subjects: Vec<String> =
        entry.chain.iter().map(|of| Facts::of(of).expect("a certificate").subject).collect();
    assert_eq!(subjects, [subject, "CN=Test CA,O=Barnabas"]);
    let key = provider().key_provider.load_private_key(entry.key).expect("a key");
    CertifiedKey::new(entry.chain, key).keys_match().expect("of the certificate");
}

const RSA: &str = "CN=rsa broker,OU=Test,O=Barnabas";

#[test]
fn keys_are_read_from_every_format() {
    holds_key(file!("rsa.jks"), STORE, KEY, RSA);
    holds_key(file!("ec.jks"), STORE, KEY, "CN=ec broker,OU=Test,O=Barnabas");
    holds_key(file!("rsa.p12"), STORE, None, RSA);
    holds_key(file!("ec.p12"), STORE, None, "CN=ec broker,OU=Test,O=Barnabas");
    holds_key(file!("legacy.p12"), STORE, None, RSA);
    holds_key(file!("openssl.p12"), STORE, None, RSA);
    holds_key(file!("plain.pem"), None, None, RSA);
    holds_key(file!("aes.pem"), None, KEY, RSA);
    holds_key(file!("des3.pem"), None, KEY, RSA);
    holds_key(file!("traditional.pem"), None, None, RSA);
}

#[test]
fn trusted_certificates_are_read_from_every_format() {
    let trusted = |bytes: &[u8], password| {
        let store = open(bytes, password, None).expect("opens");
        assert!(store.keys.is_empty());
        store.trusted.iter().map(|of| Facts::of(of).expect("a certificate").subject).collect::<Vec<_>>()
    };
    let expected = ["CN=Test CA,O=Barnabas"];
    assert_eq!(trusted(file!("trust.jks"), STORE), expected);
    assert_eq!(trusted(file!("trust.jks"), None), expected, "without a password it is not checked");
    assert_eq!(trusted(file!("trust.p12"), STORE), expected);
    assert_eq!(trusted(file!("trust-openssl.p12"), STORE), expected);
    assert_eq!(trusted(file!("ca.pem"), None), expected);
    let beside = open(file!("rsa.jks"), STORE, KEY).expect("opens");
    assert_eq!(beside.trusted.len(), 1);
}

#[test]
fn wrong_password_is_named() {
    let refused = |bytes: &[u8], password, key| open(bytes, password, key).expect_err("refused");
    assert!(refused(file!("rsa.jks"), Some("wrong"), KEY).contains("password of the store"));
    assert!(refused(file!("rsa.jks"), STORE, Some("wrong")).contains("ssl.key.password"));
    assert!(refused(file!("rsa.jks"), None, None).contains("ssl.keystore.password"));
    assert!(refused(file!("rsa.p12"), Some("wrong"), None).contains("password is wrong"));
    assert!(refused(file!("aes.pem"), None, Some("wrong")).contains("ssl.key.password"));
    assert!(refused(file!("aes.pem"), None, None).contains("ssl.key.password is not set"));
}

#[test]
fn one_line_of_a_properties_file_is_pem_too() {
    let text = String::from_utf8_lossy(file!("plain.pem")).replace('\n', " ");
    holds_key(text.as_bytes(), None, None, RSA);
}

#[test]
fn damaged_files_are_errors() {
    let files: [(&[u8], usize); 4] = [
        (file!("rsa.jks"), 7),
        // Each try derives keys.
        (file!("trust-openssl.p12"), 29),
        (file!("plain.pem"), 7),
        (file!("trust.jks"), 7),
    ];
    for (file, step) in files {
        for length in (0..file.len()).step_by(step) {
            let _ = open(&file[..length], None, KEY);
            assert!(open(&file[..length], STORE, KEY).is_err() || file[0] == b'-', "{length}");
        }
        for at in (0..file.len()).step_by(step + 1) {
            let mut damaged = file.to_vec();
            damaged[at] ^= 0x41;
            let _ = open(&damaged, None, KEY);
            let _ = open(&damaged, STORE, KEY);
        }
    }
    assert!(open(b"hello", None, None).expect_err("refused").contains("neither"));
    assert!(open(&[], None, None).is_err());
    assert!(open(&[0xce, 0xce, 0xce, 0xce, 0], None, None).expect_err("refused").contains("JCEKS"));
}
