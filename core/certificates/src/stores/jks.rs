//! Java's key stores of type JKS.
//!
//! ```text
//! u32 0xFEEDFEED | u32 version 1 or 2 | u32 count | entries | 20 bytes SHA-1
//! entry: u32 tag | alias | u64 creation time | …
//!   tag 1, a key:         u32 length | EncryptedPrivateKeyInfo | u32 count | certificates
//!   tag 2, a certificate: certificate
//! certificate: (version 2: type, "X.509") | u32 length | DER
//! alias, type: u16 length | bytes
//! ```
//! The SHA-1 at the end covers the password in UTF-16, the words "Mighty Aphrodite" and all bytes before it. A key is
//! XORed with a chain of SHA-1 digests of its password; the first 20 bytes are the salt, the last 20 a digest of the
//! key. Both are weak by today's measure; the file's mode is what protects it.
//!
//! Source: the behaviour of Java's `KeyStore.getInstance("JKS")`; files made by keytool are in the tests.

use super::{KeyEntry, Store};
use crate::certificate::tlv::Tlv;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const DIGEST_BYTES: usize = 20;
const WHITENER: &[u8] = b"Mighty Aphrodite";
/// The object identifier of Sun's key protection, 1.3.6.1.4.1.42.2.17.1.1, as DER has it.
const KEY_PROTECTION: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x2a, 0x02, 0x11, 0x01, 0x01];

pub fn open(bytes: &[u8], password: Option<&str>, key_password: Option<&str>) -> Result<Store, String> {
    if let Some(password) = password {
        check_integrity(bytes, password)?;
    }
    let end = bytes.len().checked_sub(DIGEST_BYTES).ok_or_else(truncated)?;
    let mut input = Input(bytes.get(4..end).ok_or_else(truncated)?);
    let version = input.u32()?;
    if !matches!(version, 1 | 2) {
        return Err(format!("version {version} of JKS is not known"));
    }
    let mut store = Store::default();
    for _ in 0..input.u32()? {
        let tag = input.u32()?;
        input.text()?;
        input.take(8)?;
        match tag {
            1 => {
                let key = input.long_bytes()?;
                let mut chain = Vec::new();
                for _ in 0..input.u32()? {
                    chain.push(input.certificate(version)?);
                }
                let password = key_password.or(password);
                let password = password.ok_or("it holds a key, and ssl.keystore.password is not set")?;
                let key = PrivatePkcs8KeyDer::from(unprotect(key, password)?);
                store.keys.push(KeyEntry { key: PrivateKeyDer::Pkcs8(key), chain });
            }
            2 => store.trusted.push(input.certificate(version)?),
            other => return Err(format!("it holds an entry of the unknown kind {other}")),
        }
    }
    Ok(store)
}

fn truncated() -> String {
    "the file is cut off".to_owned()
}

/// As Java's key stores see a password.
fn utf16(password: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(password.encode_utf16().flat_map(u16::to_be_bytes).collect())
}

fn check_integrity(bytes: &[u8], password: &str) -> Result<(), String> {
    let at = bytes.len().checked_sub(DIGEST_BYTES).ok_or_else(truncated)?;
    let (data, expected) = bytes.split_at(at);
    let found =
        Sha1::new().chain_update(&*utf16(password)).chain_update(WHITENER).chain_update(data).finalize();
    if bool::from(found.as_slice().ct_eq(expected)) {
        return Ok(());
    }
    Err("the password of the store is wrong, or the file is damaged".to_owned())
}

fn unprotect(bytes: &[u8], password: &str) -> Result<Vec<u8>, String> {
    let damaged = || "its key cannot be read: the file is damaged".to_owned();
    let outer = Tlv::read(bytes).ok_or_else(damaged)?.0;
    let mut parts = outer.children();
    let (algorithm, data) = (parts.next().ok_or_else(damaged)?, parts.next().ok_or_else(damaged)?);
    if algorithm.children().next().map(|oid| oid.content) != Some(KEY_PROTECTION) {
        return Err("its key is protected in another way than Java's key stores do".to_owned());
    }
    let data = data.content;
    if data.len() < 2 * DIGEST_BYTES {
        return Err(damaged());
    }
    let (salt, rest) = data.split_at(DIGEST_BYTES);
    let (hidden, check) = rest.split_at(rest.len() - DIGEST_BYTES);
    let password = utf16(password);
    let mut digest: [u8; DIGEST_BYTES] = salt.try_into().expect("split there");
    let mut key = Zeroizing::new(Vec::with_capacity(hidden.len()));
    for block in hidden.chunks(DIGEST_BYTES) {
        digest = Sha1::new().chain_update(&*password).chain_update(digest).finalize().into();
        key.extend(block.iter().zip(digest).map(|(byte, mask)| byte ^ mask));
    }
    let found = Sha1::new().chain_update(&*password).chain_update(&*key).finalize();
    if !bool::from(found.as_slice().ct_eq(check)) {
        return Err("the password of its key (ssl.key.password) is wrong".to_owned());
    }
    Ok(key.to_vec())
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, String> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes(bytes.try_into().expect("four bytes")))
    }

    fn text(&mut self) -> Result<&'a [u8], String> {
        let length = self.take(2)?;
        self.take(u16::from_be_bytes([length[0], length[1]]).into())
    }

    fn long_bytes(&mut self) -> Result<&'a [u8], String> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    fn certificate(&mut self, version: u32) -> Result<CertificateDer<'static>, String> {
        if version == 2 && self.text()? != b"X.509" {
            return Err("it holds a certificate that is no X.509 certificate".to_owned());
        }
        Ok(CertificateDer::from(self.long_bytes()?.to_vec()))
    }
}
