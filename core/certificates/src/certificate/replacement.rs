//! Whether a certificate may replace the one that a listener shows.
//!
//! Source: Kafka `SslFactory.CertificateEntries`; `ssl.allow.dn.changes`, `ssl.allow.san.changes`.

use super::Facts;
use crate::TlsError;
use crate::settings::{KEY_STORE, TlsSettings};

/// `old`, `new`: the certificate of the first key; `None`: the store holds no key, or its certificate cannot be read.
///
/// # Errors
/// What speaks against it, with the key that allows it.
pub fn check_replacement(
    old: Option<&Facts>,
    new: Option<&Facts>,
    settings: &TlsSettings,
    now_s: i64,
) -> Result<(), TlsError> {
    if let Some(facts) = new.filter(|facts| facts.not_after_s < now_s) {
        return Err(KEY_STORE.wrong(format!("the new certificate of {} has expired", facts.subject)));
    }
    let (Some(old), Some(new)) = (old, new) else { return Ok(()) };
    if !settings.allows_dn_changes && old.subject != new.subject {
        return Err(TlsError::new(
            "ssl.allow.dn.changes",
            format!("the new certificate is for {}, the old one for {}", new.subject, old.subject),
            "ssl.allow.dn.changes=true",
        ));
    }
    let lost = old.names.iter().find(|name| !new.names.contains(name));
    if let Some(lost) = lost.filter(|_| !settings.allows_san_changes) {
        return Err(TlsError::new(
            "ssl.allow.san.changes",
            format!("the new certificate lacks the alternative name {lost} of the old one"),
            "ssl.allow.san.changes=true",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_000;

    fn facts(subject: &str, names: &[&str], not_after_s: i64) -> Facts {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Facts { subject: subject.to_owned(), not_before_s: 0, not_after_s, names, version: 3 }
    }

    fn refused(new: &Facts, allowed: &[&str]) -> Option<String> {
        let get = |key: &str| allowed.contains(&key).then(|| "true".to_owned());
        let settings = TlsSettings::read(get).expect("sound");
        let old = facts("CN=a", &["dns:a", "dns:b"], 0);
        check_replacement(Some(&old), Some(new), &settings, NOW_S).err().map(|error| error.key)
    }

    #[test]
    fn same_name_and_more_hosts_may_replace() {
        assert_eq!(refused(&facts("CN=a", &["dns:b", "dns:a", "dns:c"], NOW_S), &[]), None);
        let settings = TlsSettings::read(|_| None).expect("sound");
        check_replacement(None, Some(&facts("CN=b", &[], NOW_S)), &settings, NOW_S).expect("the first one");
    }

    #[test]
    fn expired_certificate_is_refused_whatever_is_allowed() {
        let late = facts("CN=a", &["dns:a", "dns:b"], NOW_S - 1);
        let all = ["ssl.allow.dn.changes", "ssl.allow.san.changes"];
        assert_eq!(refused(&late, &all).as_deref(), Some("ssl.keystore.location"));
    }

    #[test]
    fn other_name_or_lost_host_needs_its_key() {
        let (other, fewer) = (facts("CN=b", &["dns:a", "dns:b"], NOW_S), facts("CN=a", &["dns:a"], NOW_S));
        assert_eq!(refused(&other, &[]).as_deref(), Some("ssl.allow.dn.changes"));
        assert_eq!(refused(&other, &["ssl.allow.dn.changes"]), None);
        assert_eq!(refused(&fewer, &["ssl.allow.dn.changes"]).as_deref(), Some("ssl.allow.san.changes"));
        assert_eq!(refused(&fewer, &["ssl.allow.san.changes"]), None);
    }
}
