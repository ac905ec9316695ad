//! What new connections of one listener or client get, and how another takes its place.
//!
//! Always true: what is in use was complete; one that is refused changes nothing.

use super::material::{Material, Reload};
use crate::suites;
use arc_swap::{ArcSwap, Guard};
use barnabas_certificates::{TlsError, TlsSettings};
use rustls::crypto::CryptoProvider;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Makes rustls' configuration, `C`.
pub type Make<C> = fn(&TlsSettings, &Material, &Arc<CryptoProvider>) -> Result<C, TlsError>;

#[derive(Debug)]
pub struct Loaded<C> {
    pub settings: TlsSettings,
    pub config: Arc<C>,
    pub material: Material,
}

impl<C> Loaded<C> {
    /// # Errors
    /// The key to change, and why.
    pub fn read(settings: TlsSettings, make: Make<C>) -> Result<Self, TlsError> {
        let provider = Arc::new(suites::provider(&settings)?);
        let material = Material::read(&settings, &provider)?;
        let config = make(&settings, &material, &provider)?;
        Ok(Self { settings, config: Arc::new(config), material })
    }

    /// What may take its place, of `settings`.
    ///
    /// # Errors
    /// What speaks against it, with the key.
    pub fn next(&self, settings: TlsSettings, make: Make<C>, now_s: i64) -> Result<Self, TlsError> {
        self.settings.check_stores_stay(&settings)?;
        let next = Self::read(settings, make)?;
        self.material.may_become(&next.material, &next.settings, now_s)?;
        Ok(next)
    }

    /// What is worth a line in the log.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = suites::warnings(&self.settings);
        warnings.extend(self.material.warnings.iter().cloned());
        warnings
    }
}

/// The one that is in use.
#[derive(Debug)]
pub struct Current<C> {
    loaded: ArcSwap<Loaded<C>>,
    /// When its stores were last found to be in order, in seconds since 1970.
    looked_s: AtomicI64,
}

impl<C> Current<C> {
    pub fn new(loaded: Loaded<C>) -> Self {
        Self { loaded: ArcSwap::from_pointee(loaded), looked_s: AtomicI64::new(0) }
    }

    pub fn get(&self) -> Guard<Arc<Loaded<C>>> {
        self.loaded.load()
    }

    /// Reads the stores again if they have changed; `next` judges them. A revocation list that ends counts as a change:
    /// sessions of before are not resumed after it.
    pub fn reload(
        &self,
        now_s: i64,
        next: impl FnOnce(&Loaded<C>, TlsSettings) -> Result<Loaded<C>, TlsError>,
    ) -> Reload {
        let old = self.get();
        let looked_s = self.looked_s.load(Ordering::Relaxed);
        let has_lapsed = old.material.lapses_within(looked_s, now_s);
        let reload = match old.material.has_changed(&old.settings) || has_lapsed {
            false => Reload::Unchanged,
            true => self.take(next(&old, old.settings.clone())),
        };
        if !matches!(reload, Reload::Kept(_)) {
            self.looked_s.store(now_s, Ordering::Relaxed);
        }
        reload
    }

    /// Takes `settings` if they are others; `next` judges them.
    pub fn reconfigure(
        &self,
        settings: &TlsSettings,
        next: impl FnOnce(&Loaded<C>, TlsSettings) -> Result<Loaded<C>, TlsError>,
    ) -> Reload {
        let old = self.get();
        if *settings == old.settings {
            return Reload::Unchanged;
        }
        self.take(next(&old, settings.clone()))
    }

    fn take(&self, checked: Result<Loaded<C>, TlsError>) -> Reload {
        match checked {
            Ok(next) => {
                self.loaded.store(Arc::new(next));
                Reload::Loaded
            }
            Err(error) => Reload::Kept(error),
        }
    }
}
