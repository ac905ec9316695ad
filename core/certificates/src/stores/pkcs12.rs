//! PKCS#12, as keytool and openssl write it: PBES1 and PBES2, with a password for the file and its keys alike.
//!
//! In a Java trust store each trusted certificate carries an attribute that says so. openssl writes none: in a file
//! without a key every certificate counts as trusted then. In Java such a file trusts no certificate, and the start
//! fails.

use super::{KeyEntry, Store};
use p12_keystore::{CertificateBag, Pkcs12Archive, PrivateKeyBag};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

pub fn open(bytes: &[u8], password: Option<&str>) -> Result<Store, String> {
    let archive =
        Pkcs12Archive::from_pkcs12(bytes, password.unwrap_or_default()).map_err(|error| match password {
            Some(_) => format!(
                "the PKCS#12 file cannot be opened: the password is wrong, or it is damaged ({error})"
            ),
            None => format!("the PKCS#12 file cannot be opened, and its password is not set ({error})"),
        })?;
    let der = |bag: &CertificateBag| CertificateDer::from(bag.cert.as_der().to_vec());
    let has_marks = archive.certs.iter().any(|bag| bag.trusted);
    let is_trusted = |bag: &&CertificateBag| if has_marks { bag.trusted } else { archive.keys.is_empty() };
    let trusted = archive.certs.iter().filter(is_trusted).map(der).collect();
    let keys = archive.keys.iter().map(|bag| {
        let chain = chain(bag, &archive.certs);
        let key = PrivatePkcs8KeyDer::from(bag.key.as_der().to_vec());
        KeyEntry { key: PrivateKeyDer::Pkcs8(key), chain: chain.into_iter().map(der).collect() }
    });
    Ok(Store { keys: keys.collect(), trusted })
}

/// The key's certificate, the one of its issuer, and so on.
fn chain<'a>(key: &PrivateKeyBag, all: &'a [CertificateBag]) -> Vec<&'a CertificateBag> {
    let own = all.iter().find(|bag| is_of(bag, key));
    let mut chain: Vec<&CertificateBag> = own.into_iter().collect();
    while let Some(last) = chain.last()
        && last.cert.issuer() != last.cert.subject()
        && let Some(issuer) = all.iter().find(|bag| bag.cert.subject() == last.cert.issuer())
        && !chain.iter().any(|known| known.cert == issuer.cert)
    {
        chain.push(issuer);
    }
    chain
}

/// Key and certificate carry the same id.
fn is_of(bag: &CertificateBag, key: &PrivateKeyBag) -> bool {
    let (of_bag, of_key) = (bag.local_key_id.as_deref(), key.local_key_id.as_ref());
    of_bag.is_some() && of_bag == of_key.map(AsRef::as_ref)
}
