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
//! | stores/revocation_list.rs | lists of revoked certificates, in PEM or DER |
//!
//! The bytes come from shell/tls/src/stores.rs.

mod jks;
mod pem;
mod pkcs12;
mod revocation_list;
#[cfg(test)]
mod tests;

pub use pem::private_key;
pub use revocation_list::RevocationList;

use crate::settings::Source;
use barnabas_base::Secret;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

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

impl Store {
    /// `bytes`: what `source` says at this moment.
    ///
    /// # Errors
    /// The format is unknown or damaged, or a password is wrong, in words.
    pub fn open(bytes: &[u8], source: &Source, key_password: Option<&Secret>) -> Result<Self, String> {
        let password = match source {
            Source::File { password, .. } => password.as_ref(),
            Source::Inline(_) => None,
        };
        open(bytes, password.and_then(Secret::text), key_password.and_then(Secret::text))
    }

    /// The certificates that a trust store trusts. Java takes the first certificate of a key's chain for a trusted one,
    /// too.
    pub fn into_trusted(self) -> Vec<CertificateDer<'static>> {
        let of_keys = self.keys.into_iter().filter_map(|entry| entry.chain.into_iter().next());
        self.trusted.into_iter().chain(of_keys).collect()
    }
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
