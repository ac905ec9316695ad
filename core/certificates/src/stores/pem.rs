//! PEM: certificates and at most one key, in the order in which they stand.
//!
//! The text may stand in one line of a properties file: white space counts for nothing, as in Kafka's `PemParser`. What
//! stands between the blocks is skipped. Kafka reads PKCS#8 keys alone; PKCS#1 and SEC 1 keys are read here as well.

use super::{KeyEntry, Store};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use zeroize::Zeroizing;

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";
const KEY_PASSWORD: &str = "ssl.key.password";

pub fn open(text: &str, key_password: Option<&str>) -> Result<Store, String> {
    read(text, (KEY_PASSWORD, key_password))
}

/// `password`: the setting that has it, and it.
fn read(text: &str, password: (&str, Option<&str>)) -> Result<Store, String> {
    let (mut key, mut certificates) = (None, Vec::new());
    let mut rest = text;
    while let Some(block) = next_block(&mut rest)? {
        let found = match block.label {
            "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE" => {
                certificates.push(CertificateDer::from(block.bytes.to_vec()));
                continue;
            }
            "PRIVATE KEY" => PrivatePkcs8KeyDer::from(block.bytes.to_vec()).into(),
            "ENCRYPTED PRIVATE KEY" => decrypt(&block.bytes, password)?,
            "RSA PRIVATE KEY" => PrivatePkcs1KeyDer::from(block.bytes.to_vec()).into(),
            "EC PRIVATE KEY" => PrivateSec1KeyDer::from(block.bytes.to_vec()).into(),
            _ => continue,
        };
        if key.replace(found).is_some() {
            return Err("it holds two private keys".to_owned());
        }
    }
    Ok(match key {
        Some(key) => Store { keys: vec![KeyEntry { key, chain: certificates }], trusted: Vec::new() },
        None => Store { keys: Vec::new(), trusted: certificates },
    })
}

/// The revocation lists of a PEM text, in DER.
///
/// # Errors
/// A block is damaged.
pub fn revocation_lists(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let (mut lists, mut rest) = (Vec::new(), text);
    while let Some(block) = next_block(&mut rest)? {
        if block.label == "X509 CRL" {
            lists.push(block.bytes.to_vec());
        }
    }
    Ok(lists)
}

/// The one private key of a PEM text, in PKCS#8. `password`: the setting that has it, and it.
///
/// # Errors
/// There is none, it is in another form, or the password is not its.
pub fn private_key(text: &str, password: (&str, Option<&str>)) -> Result<Zeroizing<Vec<u8>>, String> {
    let key = read(text, password)?.keys.into_iter().next().map(|entry| entry.key);
    match key {
        Some(PrivateKeyDer::Pkcs8(key)) => Ok(Zeroizing::new(key.secret_pkcs8_der().to_vec())),
        Some(_) => Err("its key is not in PKCS#8; openssl pkcs8 -topk8 converts it".to_owned()),
        None => Err("it holds no private key".to_owned()),
    }
}

struct Block<'a> {
    label: &'a str,
    bytes: Zeroizing<Vec<u8>>,
}

fn next_block<'a>(rest: &mut &'a str) -> Result<Option<Block<'a>>, String> {
    let Some((_, after)) = rest.split_once(BEGIN) else { return Ok(None) };
    let (label, after) = after.split_once(DASHES).ok_or("a BEGIN line has no end")?;
    let end = format!("-----END {label}-----");
    let (body, after) =
        after.split_once(end.as_str()).ok_or_else(|| format!("{BEGIN}{label}{DASHES} has no END line"))?;
    *rest = after;
    if body.contains(':') {
        return Err(format!(
            "the {label} is encrypted in OpenSSL's old way; openssl pkcs8 -topk8 converts it to PKCS#8"
        ));
    }
    let body: Zeroizing<String> = Zeroizing::new(body.split_whitespace().collect());
    let bytes =
        STANDARD.decode(body.as_bytes()).map_err(|error| format!("the {label} is damaged: {error}"))?;
    Ok(Some(Block { label, bytes: Zeroizing::new(bytes) }))
}

fn decrypt(
    bytes: &[u8],
    (setting, password): (&str, Option<&str>),
) -> Result<PrivateKeyDer<'static>, String> {
    let password = password.ok_or_else(|| format!("its key is encrypted, and {setting} is not set"))?;
    let info = EncryptedPrivateKeyInfoRef::try_from(bytes).map_err(|error| {
        format!(
            "the encryption of its key is not known ({error}); expected PBES2, which openssl pkcs8 -topk8 -v2 aes-256-cbc writes"
        )
    })?;
    let key = info
        .decrypt(password)
        .map_err(|_| format!("its key cannot be decrypted: {setting} is wrong, or the file is damaged"))?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}
