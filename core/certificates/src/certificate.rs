//! What a certificate says: for whom it is, for which names, and how long.
//!
//! It verifies no chain: shell/tls/src/trust.rs does.

mod distinguished_name;
mod expiry;
mod mapping_rules;
mod replacement;
#[cfg(test)]
mod tests;
pub(crate) mod tlv;

pub use distinguished_name::rfc2253;
pub use expiry::{Expiring, Expiry};
pub use mapping_rules::MappingRules;
pub use replacement::check_replacement;

use rustls_pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;

/// See the file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// As Java prints it.
    pub subject: String,
    /// Seconds since 1970.
    pub not_before_s: i64,
    pub not_after_s: i64,
    /// Alternative names: `dns:`, `ip:` and others, in no order that counts.
    pub names: Vec<String>,
    /// Of X.509: 1 or 3. Version 1 has no alternative names.
    pub version: u32,
}

/// The SubjectPublicKeyInfo of a certificate, as DER. `None`: it is no certificate.
pub fn public_key<'a>(certificate: &'a CertificateDer<'_>) -> Option<&'a [u8]> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(parsed.tbs_certificate.subject_pki.raw)
}

impl Facts {
    /// `None`: it is no certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
        let subject = rfc2253(parsed.subject().as_raw())?;
        let validity = parsed.validity();
        let names = parsed.subject_alternative_name().ok().flatten();
        let names = names.map(|names| names.value.general_names.iter().map(shown).collect());
        Some(Self {
            subject,
            not_before_s: validity.not_before.timestamp(),
            not_after_s: validity.not_after.timestamp(),
            names: names.unwrap_or_default(),
            version: parsed.version().0 + 1,
        })
    }
}

fn shown(name: &GeneralName<'_>) -> String {
    match name {
        GeneralName::DNSName(name) => format!("dns:{}", name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => format!("ip:{bytes:?}"),
        GeneralName::RFC822Name(name) => format!("email:{name}"),
        GeneralName::URI(name) => format!("uri:{name}"),
        other => format!("{other:?}"),
    }
}
