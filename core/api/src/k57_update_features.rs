//! # UpdateFeatures, key 57, versions 0–2
//!
//! Changes the cluster's feature levels.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-584) |
//! | 1 | dry run, safe and unsafe downgrades (KIP-778) |
//! | 2 | one error for all, since all are changed or none (KIP-1022) |
//!
//! ## Left out
//! - Nothing: everything is the controller's.
//!
//! Source: Kafka 4.4 `ControllerApis.handleUpdateFeatures`, `UpdateFeaturesResponse`.

use barnabas_wire::Str;
use barnabas_wire::messages::update_features_request::UpdateFeaturesRequest;
use barnabas_wire::messages::update_features_response::{UpdatableFeatureResult, UpdateFeaturesResponse};

use crate::Refusal;

/// For the controller.
#[derive(Debug)]
pub struct Work {
    pub request: UpdateFeaturesRequest,
    /// The version that `request` is in the form of, and that its answer is to come in.
    pub version: i16,
    pub pending: Pending,
}

/// What the answer needs of the request.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    asked: Vec<Str>,
}

/// The controller's work: all of it, in the form of version 1 or later.
pub fn plan(mut request: UpdateFeaturesRequest, version: i16) -> Work {
    const UPGRADE: i8 = 1;
    const SAFE_DOWNGRADE: i8 = 2;
    if version == 0 {
        for update in &mut request.feature_updates {
            let downgrade = std::mem::take(&mut update.allow_downgrade);
            update.upgrade_type = if downgrade { SAFE_DOWNGRADE } else { UPGRADE };
        }
    }
    let asked = request.feature_updates.iter().map(|update| update.feature.clone()).collect();
    Work { request, version: version.max(1), pending: Pending { version, asked } }
}

impl Pending {
    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(self, outcome: Result<UpdateFeaturesResponse, Refusal>) -> UpdateFeaturesResponse {
        let mut response = outcome.unwrap_or_else(|refusal| UpdateFeaturesResponse {
            error_code: refusal.code.code(),
            error_message: refusal.text(),
            ..UpdateFeaturesResponse::default()
        });
        if self.version >= 2 {
            response.results.clear();
        } else if response.error_code == 0 && response.results.is_empty() {
            let done = |feature| UpdatableFeatureResult { feature, ..UpdatableFeatureResult::default() };
            response.results = self.asked.into_iter().map(done).collect();
        }
        response
    }
}

#[cfg(test)]
mod tests;
