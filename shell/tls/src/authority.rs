//! An authority of a cluster's own, which issues certificates of nodes and clients: for `barnabas security init`.
//!
//! It writes no file, and forgets nothing by itself: the key is handed out, to be kept by the operator.

use barnabas_base::Secret;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, Error,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use std::time::Duration;

/// A certificate is valid from so long before it was issued: clocks of machines differ.
const CLOCKS_DIFFER: Duration = Duration::from_secs(24 * 60 * 60);

/// From when until when a certificate is valid.
#[derive(Debug, Clone, Copy)]
pub struct Validity {
    /// Seconds since 1970.
    pub now_s: u64,
    pub days: u64,
}

/// See the file's header. ECDSA with P-256.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

/// A private key and its certificates, both PEM.
#[derive(Debug)]
pub struct Issued {
    pub key: Secret,
    pub chain: String,
}

impl Authority {
    /// A new key, and a certificate that it signs itself.
    ///
    /// # Errors
    /// `name` is none that a certificate can have.
    pub fn new(name: &str, validity: Validity) -> Result<Self, String> {
        let mut params = params(name, &[], validity)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(text)?;
        CertifiedIssuer::self_signed(params, key).map(Self).map_err(text)
    }

    /// The authority's certificate, PEM: what others trust.
    pub fn certificate(&self) -> String {
        self.0.pem()
    }

    /// PKCS#8, PEM.
    pub fn key(&self) -> Secret {
        Secret::from(self.0.key().serialize_pem())
    }

    /// A key and a certificate of `CN=name` for `hosts` (names or addresses), as a server and as a client.
    ///
    /// # Errors
    /// A host that is none.
    pub fn issue(&self, name: &str, hosts: &[String], validity: Validity) -> Result<Issued, String> {
        let mut params = params(name, hosts, validity)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(text)?;
        let chain = params.signed_by(&key, &self.0).map_err(text)?.pem();
        Ok(Issued { key: Secret::from(key.serialize_pem()), chain })
    }
}

fn params(name: &str, hosts: &[String], validity: Validity) -> Result<CertificateParams, String> {
    let mut params = CertificateParams::new(hosts).map_err(text)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let now = date_time_ymd(1970, 1, 1) + Duration::from_secs(validity.now_s);
    params.not_before = now - CLOCKS_DIFFER;
    params.not_after = now + Duration::from_secs(validity.days * 24 * 60 * 60);
    Ok(params)
}

fn text(error: Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_certificates::Facts;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    #[test]
    fn certificate_is_for_its_name_hosts_and_days() {
        let now_s = 1_800_000_000;
        let ca = Authority::new("a cluster", Validity { now_s, days: 10 }).expect("made");
        let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let issued = ca.issue("node-1", &hosts, Validity { now_s, days: 3 }).expect("issued");
        let certificate = CertificateDer::from_pem_slice(issued.chain.as_bytes()).expect("a certificate");
        let facts = Facts::of(&certificate).expect("readable");
        assert_eq!(facts.subject, "CN=node-1");
        assert_eq!(facts.names, ["dns:localhost", "ip:[127, 0, 0, 1]"]);
        assert_eq!(facts.not_after_s, now_s as i64 + 3 * 86_400);
        assert!(issued.key.text().unwrap_or_default().contains("PRIVATE KEY"));
        assert!(!format!("{issued:?} {ca:?}").contains("PRIVATE KEY"));
    }

    #[test]
    fn host_that_is_none_is_refused() {
        let ca = Authority::new("a cluster", Validity { now_s: 1_800_000_000, days: 10 }).expect("made");
        let hosts = ["ö".to_owned()];
        ca.issue("node-1", &hosts, Validity { now_s: 1_800_000_000, days: 3 }).expect_err("refused");
    }
}
