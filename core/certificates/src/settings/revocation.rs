//! `ssl.crl.*`: lists of certificates that their authorities have revoked, and what becomes of certificates that no
//! valid list speaks about. Without `ssl.crl.location` nothing is checked, as in Kafka.
//!
//! Kafka has no such keys: a JVM checks lists where `com.sun.net.ssl.checkRevocation` is true, and only for what it
//! fetches itself.

use crate::TlsError;
use std::path::PathBuf;

const LOCATION: &str = "ssl.crl.location";
const EXPIRED: &str = "ssl.crl.expired";
const MISSING: &str = "ssl.crl.missing";
const EXAMPLE: &str = "ssl.crl.location=/etc/barnabas/revoked.pem";

/// Where the lists are, and what is accepted without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// Each holds one list in DER, or any number in PEM.
    pub files: Vec<PathBuf>,
    /// Whether a certificate is refused whose authority's list is past its next update.
    pub refuses_expired: bool,
    /// Whether a certificate is refused whose authority has no list.
    pub refuses_missing: bool,
}

impl Revocation {
    /// What is wrong with the lists.
    pub fn wrong(problem: impl Into<String>) -> TlsError {
        TlsError::new(LOCATION, problem, EXAMPLE)
    }
}

pub(super) fn read(given: &impl Fn(&str) -> Option<String>) -> Result<Option<Revocation>, TlsError> {
    let (refuses_expired, refuses_missing) = (refuses(EXPIRED, given)?, refuses(MISSING, given)?);
    let Some(location) = given(LOCATION) else { return Ok(None) };
    let files = location.split(',').map(str::trim).filter(|file| !file.is_empty());
    let files: Vec<PathBuf> = files.map(PathBuf::from).collect();
    if files.is_empty() {
        return Err(Revocation::wrong("names no file"));
    }
    Ok(Some(Revocation { files, refuses_expired, refuses_missing }))
}

fn refuses(key: &str, given: &impl Fn(&str) -> Option<String>) -> Result<bool, TlsError> {
    match given(key).as_deref() {
        None | Some("refuse") => Ok(true),
        Some("accept") => Ok(false),
        Some(other) => {
            let problem = format!("'{other}' is none of refuse, accept");
            Err(TlsError::new(key, problem, format!("{key}=refuse")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_of(pairs: &[(&str, &str)]) -> Result<Option<Revocation>, TlsError> {
        read(&|key| pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn lists_refuse_what_they_do_not_know_by_default() {
        assert_eq!(read_of(&[]).expect("sound"), None);
        let read = read_of(&[(LOCATION, "/a.pem, /b.crl")]).expect("sound").expect("given");
        assert_eq!(read.files, [PathBuf::from("/a.pem"), PathBuf::from("/b.crl")]);
        assert!(read.refuses_expired && read.refuses_missing);
        let read = read_of(&[(LOCATION, "/a"), (EXPIRED, "accept"), (MISSING, "accept")]);
        let read = read.expect("sound").expect("given");
        assert!(!read.refuses_expired && !read.refuses_missing);
    }

    #[test]
    fn misspelled_verdict_names_its_key() {
        assert_eq!(read_of(&[(LOCATION, "/a"), (EXPIRED, "yes")]).expect_err("none").key, EXPIRED);
        assert_eq!(read_of(&[(MISSING, "ignore")]).expect_err("none").key, MISSING);
        assert_eq!(read_of(&[(LOCATION, ",")]).expect_err("no file").key, LOCATION);
    }
}
