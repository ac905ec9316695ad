//! Lists of revoked certificates (CRLs, RFC 5280 §5): whose they are and until when they hold. Signatures are verified
//! with the authority's key in each handshake: shell/tls/src/stores/trust.rs.

use super::pem;
use crate::certificate::rfc2253;
use rustls_pki_types::CertificateRevocationListDer;
use x509_parser::prelude::{CertificateRevocationList, FromDer};

/// One authority's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevocationList {
    pub der: CertificateRevocationListDer<'static>,
    /// As Java prints it.
    pub issuer: String,
    /// Seconds since 1970: the authority has published another one by then.
    pub next_update_s: i64,
}

impl RevocationList {
    /// All lists of a file: one in DER, or those among the blocks of a PEM text.
    ///
    /// # Errors
    /// The file holds no list, or one that is damaged, in words.
    pub fn all_of(bytes: &[u8]) -> Result<Vec<Self>, String> {
        if bytes.first() == Some(&0x30) {
            return Ok(vec![Self::of(bytes.to_vec())?]);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "it is neither DER nor PEM text")?;
        let lists: Vec<Self> =
            pem::revocation_lists(text)?.into_iter().map(Self::of).collect::<Result<_, _>>()?;
        if lists.is_empty() { Err("it holds no block X509 CRL".to_owned()) } else { Ok(lists) }
    }

    fn of(der: Vec<u8>) -> Result<Self, String> {
        let (rest, parsed) = CertificateRevocationList::from_der(&der)
            .map_err(|error| format!("its revocation list is damaged: {error}"))?;
        if !rest.is_empty() {
            return Err("it holds bytes after its revocation list".to_owned());
        }
        if parsed.version().is_none_or(|version| version.0 == 0) {
            return Err("its revocation list is of version 1, which has no number. Make it with version 2 (openssl ca \
                        -gencrl with crlnumber in its configuration)"
                .to_owned());
        }
        let issuer = rfc2253(parsed.issuer().as_raw()).ok_or("the name of its issuer cannot be read")?;
        let next_update = parsed.next_update().ok_or("its revocation list has no time of the next update")?;
        let next_update_s = next_update.timestamp();
        Ok(Self { der: CertificateRevocationListDer::from(der), issuer, next_update_s })
    }
}
