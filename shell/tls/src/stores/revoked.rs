//! The lists of revoked certificates that a listener or client uses, read at one moment.
//!
//! webpki looks for each certificate of a chain in the list that its issuer has signed.

use super::Content;
use barnabas_certificates::{Expiring, Revocation, RevocationList, TlsError};
use rustls::pki_types::CertificateRevocationListDer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What [`Expiring::store`] is of a revocation list.
pub const STORE: &str = "crl";

/// Certificates that this process has refused for what lists say, or for want of one.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Certificates of clients and servers that this process has refused because a revocation list names them, or because
/// no valid list speaks about them.
pub fn refused_by_lists() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

pub(super) fn count_refused() {
    REFUSED.fetch_add(1, Ordering::Relaxed);
}

/// See the file's header.
#[derive(Debug, Clone)]
pub struct Lists {
    contents: Arc<[Content]>,
    pub ders: Arc<[CertificateRevocationListDer<'static>]>,
    /// The next update of each.
    pub ends: Vec<Expiring>,
    pub refuses_expired: bool,
    pub refuses_missing: bool,
}

impl Lists {
    /// # Errors
    /// A file that cannot be read, or that holds no list.
    pub fn read(revocation: &Revocation) -> Result<Self, TlsError> {
        let (mut contents, mut ders, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for path in &revocation.files {
            let content = Content::of_file(path).map_err(Revocation::wrong)?;
            let lists = RevocationList::all_of(content.bytes())
                .map_err(|problem| Revocation::wrong(format!("{}: {problem}", path.display())))?;
            contents.push(content);
            for list in lists {
                ends.push(Expiring { store: STORE, subject: list.issuer, not_after_s: list.next_update_s });
                ders.push(list.der);
            }
        }
        let Revocation { refuses_expired, refuses_missing, .. } = *revocation;
        Ok(Self { contents: contents.into(), ders: ders.into(), ends, refuses_expired, refuses_missing })
    }

    /// Whether the files say something else now. One that cannot be read counts as changed.
    pub fn has_changed(&self, revocation: &Revocation) -> bool {
        let read = revocation.files.iter().map(|path| Content::of_file(path).ok());
        !read.eq(self.contents.iter().cloned().map(Some))
    }

    /// Whether a list whose end counts ends after `from_s` and by `to_s`.
    pub fn lapses_within(&self, from_s: i64, to_s: i64) -> bool {
        self.refuses_expired
            && self.ends.iter().any(|end| from_s < end.not_after_s && end.not_after_s <= to_s)
    }
}
