//! The authorizer beside the image: rebuilt by the quorum's thread when an image brings other ACLs, and
//! read by every request.
//!
//! Always true:
//! 1. with `authorizer.class.name` there is an authorizer from the first moment on. Until the first image is published
//!    it knows the super users alone
//! 2. an image is published after its authorizer: a change of ACLs counts when the request that made it is answered
//!
//! Source: Kafka 4.4 `StandardAuthorizer`, `AclPublisher`.

use crate::node::log_rate_limit::GroupedRateLimit;
use arc_swap::ArcSwap;
use barnabas_base::Text;
use barnabas_config::ConfigError;
use barnabas_metadata::Image;
use barnabas_metadata::access::Acls;
use barnabas_metadata::config::BrokerConfig;
use barnabas_security::{Authorizer, AuthorizerSettings, Operation, ResourceType, SuperUsers};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A denial as the log tells denials apart.
pub type Denial = (Operation, ResourceType, Text);

/// See the file's header. `None`: no authorizer is configured, and every client may do everything.
#[derive(Debug)]
pub struct Authority(Option<Standard>);

/// StandardAuthorizer.
#[derive(Debug)]
pub struct Standard {
    super_users: SuperUsers,
    allow_everyone: bool,
    /// Denials stand: it is not in shadow mode.
    pub enforces: bool,
    current: ArcSwap<Authorizer>,
    /// The first image was published.
    is_loaded: AtomicBool,
    /// The ACLs that `current` was made of.
    acls: Mutex<Acls>,
    /// Denials that the log has told, by principal.
    pub denials: GroupedRateLimit<Text, Denial>,
}

/// # Errors
/// `super.users` names no principals.
pub fn check(config: &BrokerConfig) -> Result<(), ConfigError> {
    let settings = configured(config)?;
    for warning in settings.iter().flat_map(AuthorizerSettings::warnings) {
        tracing::warn!("{warning}");
    }
    Ok(())
}

fn configured(config: &BrokerConfig) -> Result<Option<AuthorizerSettings>, ConfigError> {
    AuthorizerSettings::read(config).map_err(|error| {
        ConfigError::value("super.users", error.to_string(), "super.users=User:admin;User:CN=broker")
    })
}

impl Authority {
    /// # Panics
    /// If the configuration was not checked ([`check`]).
    pub fn new(config: &BrokerConfig) -> Self {
        let configured =
            configured(config).expect("invariant: authority::check has passed this configuration");
        Self(configured.map(|AuthorizerSettings { super_users, allow_everyone, is_shadow }| {
            // Only super users pass before the ACLs are known, whatever holds for resources without ACLs.
            let first = Authorizer::new(&Image::default(), super_users.clone(), false);
            Standard {
                super_users,
                allow_everyone,
                enforces: !is_shadow,
                current: ArcSwap::from_pointee(first),
                is_loaded: AtomicBool::new(false),
                acls: Mutex::default(),
                denials: GroupedRateLimit::default(),
            }
        }))
    }

    /// The authorizer, if one is configured.
    pub fn standard(&self) -> Option<&Standard> {
        self.0.as_ref()
    }

    /// Follows an image that is about to be published. Takes time only where its ACLs are others.
    pub fn follow(&self, image: &Image) {
        if let Some(standard) = &self.0 {
            standard.follow(image);
        }
    }
}

impl Standard {
    fn follow(&self, image: &Image) {
        let mut acls = self.acls.lock().unwrap_or_else(PoisonError::into_inner);
        let is_loaded = self.is_loaded.load(Ordering::Acquire);
        if is_loaded && acls.ptr_eq(&image.acls) {
            return;
        }
        let next = Authorizer::new(image, self.super_users.clone(), self.allow_everyone);
        self.current.store(Arc::new(next));
        *acls = image.acls.clone();
        if !is_loaded {
            tracing::info!(acls = acls.len(), "the authorizer is ready");
        }
        self.is_loaded.store(true, Ordering::Release);
    }

    /// The authorizer of now. Cheap: no lock, no count.
    pub fn current(&self) -> arc_swap::Guard<Arc<Authorizer>> {
        self.current.load()
    }

    /// Whether the ACLs are known. Until then only super users pass.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Acquire)
    }

    /// The ACLs of now, to explain a decision by.
    pub fn acls(&self) -> Acls {
        self.acls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
