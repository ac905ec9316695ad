//! Keys and trusted certificates, from whichever of the three formats their file has.
//!
//! A file's content says what it is, not `ssl.keystore.type`: the JVM as well opens PKCS#12 files under type JKS.
//! Nothing is verified here but the integrity of the file and that it can be read with the passwords given.
//!
//! | file | format |
//! |---|---|
//! | stores/jks.rs | Java's own, with Sun's key protection |
//! | stores/pem.rs | PEM files and PEM text in settings, PKCS#8 keys with and without a password |
//! | stores/pkcs12.rs | PKCS#12 as keytool and openssl write it |
//!
//! In stores/material.rs: a key store and a trust store together, ready for use; stores/trust.rs: who is accepted.

mod jks;
pub mod loaded;
pub mod material;
pub mod pem;
mod pkcs12;
#[cfg(test)]
mod tests;
pub mod trust;

use crate::settings::{Secret, Source};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;

/// Far above the size of any key store; a path that names something else is refused before it fills the memory.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A private key with its certificates, the key's own first.
#[derive(Debug)]
pub struct KeyEntry {
    pub key: PrivateKeyDer<'static>,
    pub chain: Vec<CertificateDer<'static>>,
}

/// What a store holds.
#[derive(Debug, Default)]
pub struct Store {
    pub keys: Vec<KeyEntry>,
    /// Certificates that stand by themselves.
    pub trusted: Vec<CertificateDer<'static>>,
}

/// What a store's source says at this moment. Compared to see whether it has changed.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(zeroize::Zeroizing<Vec<u8>>);

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Content({} bytes)", self.0.len())
    }
}

impl Content {
    /// # Errors
    /// The file cannot be read, in words.
    pub fn read(source: &Source) -> Result<Self, String> {
        let bytes = match source {
            Source::Inline(text) => text.expose().as_bytes().to_vec(),
            Source::File { path, .. } => read_file(path)?,
        };
        Ok(Self(zeroize::Zeroizing::new(bytes)))
    }

    /// # Errors
    /// The format is unknown or damaged, or a password is wrong, in words.
    pub fn open(&self, source: &Source, key_password: Option<&Secret>) -> Result<Store, String> {
        let password = match source {
            Source::File { password, .. } => password.as_ref(),
            Source::Inline(_) => None,
        };
        open(&self.0, password.map(Secret::expose), key_password.map(Secret::expose))
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let problem = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    let length = std::fs::metadata(path).map_err(problem)?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("{} has {length} bytes; no key store is so large", path.display()));
    }
    std::fs::read(path).map_err(problem)
}

fn open(bytes: &[u8], password: Option<&str>, key_password: Option<&str>) -> Result<Store, String> {
    match bytes {
        [0xfe, 0xed, 0xfe, 0xed, ..] => jks::open(bytes, password, key_password),
        [0xce, 0xce, 0xce, 0xce, ..] => {
            Err("it is a JCEKS file; keytool -importkeystore -deststoretype PKCS12 converts it".to_owned())
        }
        [0x30, ..] => pkcs12::open(bytes, password),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) if text.contains("-----BEGIN ") => pem::open(text, key_password),
            _ => Err("it is neither a JKS file nor a PKCS#12 file nor PEM text".to_owned()),
        },
    }
}
