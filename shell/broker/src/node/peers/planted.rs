//! Mistakes that tests plant in a broker, to show that the stories told to it from outside would notice them.
//!
//! Only a build with debug assertions can make them, and only where `BARNABAS_PLANTED_MISTAKE` (or a test of this
//! crate) names one; in a release build nothing of this file is left.
//!
//! See tests/replication.rs, replica/tests.rs. The mistakes of the core crates are planted in their own tests.

#[cfg(debug_assertions)]
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(debug_assertions), allow(dead_code, reason = "made in tests only"))]
pub enum Mistake {
    /// `acks=all` is answered as `acks=1` is.
    AcksBeforeTheIsr,
    /// Who begins to follow cuts its log at its high watermark, as Kafka did before KIP-101.
    TruncatesToHighWatermark,
}

/// What is planted in one node.
#[derive(Debug, Default)]
pub struct Planted {
    #[cfg(debug_assertions)]
    mistake: OnceLock<Mistake>,
}

impl Planted {
    #[cfg(debug_assertions)]
    pub fn from_env() -> Self {
        let planted = Self::default();
        let mistake = match std::env::var("BARNABAS_PLANTED_MISTAKE").as_deref() {
            Ok("acks-before-the-isr") => Some(Mistake::AcksBeforeTheIsr),
            Ok("truncates-to-high-watermark") => Some(Mistake::TruncatesToHighWatermark),
            _ => None,
        };
        if let Some(mistake) = mistake {
            tracing::info!(mistake = %format_args!("{mistake:?}"), "planted: this broker is to be caught");
            planted.plant(mistake);
        }
        planted
    }

    #[cfg(not(debug_assertions))]
    pub fn from_env() -> Self {
        Self::default()
    }

    #[cfg(debug_assertions)]
    pub fn plant(&self, mistake: Mistake) {
        assert!(self.mistake.set(mistake).is_ok(), "planted once");
    }
}

#[cfg(debug_assertions)]
pub fn is(planted: &Planted, mistake: Mistake) -> bool {
    planted.mistake.get() == Some(&mistake)
}

#[cfg(not(debug_assertions))]
pub const fn is(_planted: &Planted, _mistake: Mistake) -> bool {
    false
}
