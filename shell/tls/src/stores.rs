//! The bytes of key and trust stores, and what is made of them.
//!
//! | file | answers |
//! |---|---|
//! | stores/material.rs | a key store and a trust store together, ready for use |
//! | stores/loaded.rs | the configuration that new connections get, and how another takes its place |
//! | stores/trust.rs | who is accepted |
//! | stores/revoked.rs | the lists of revoked certificates |
//!
//! core/certificates/src/stores.rs reads the formats.

pub mod loaded;
pub mod material;
pub mod revoked;
pub mod trust;

use barnabas_base::Secret;
use barnabas_certificates::{Source, Store};
use std::path::Path;

/// Far above the size of any key store and most revocation lists; a path that names something else is refused before
/// it fills the memory.
const FILE_BYTES_MAX: u64 = 16 << 20;

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
            Source::Inline(text) => text.bytes().to_vec(),
            Source::File { path, .. } => read_file(path)?,
        };
        Ok(Self(zeroize::Zeroizing::new(bytes)))
    }

    /// # Errors
    /// The file cannot be read, in words.
    pub fn of_file(path: &Path) -> Result<Self, String> {
        Ok(Self(zeroize::Zeroizing::new(read_file(path)?)))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// # Errors
    /// The format is unknown or damaged, or a password is wrong, in words.
    pub fn open(&self, source: &Source, key_password: Option<&Secret>) -> Result<Store, String> {
        Store::open(&self.0, source, key_password)
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let problem = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    let length = std::fs::metadata(path).map_err(problem)?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("{} has {length} bytes, and {FILE_BYTES_MAX} at most are read", path.display()));
    }
    std::fs::read(path).map_err(problem)
}
