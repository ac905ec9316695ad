//! # ApiVersions, key 18, as the quorum's leader asks it
//!
//! A node that is to become a voter says which levels of `kraft.version` it supports. What a node answers itself is
//! core/api's `k18_api_versions`.
//!
//! Source: Kafka `AddVoterHandler.handleApiVersionsResponse`.

use barnabas_base::ErrorCode;
use barnabas_metadata::features::name;
use barnabas_wire::messages::ApiVersionsResponse;

use crate::raft::message::Response;

pub fn read(answer: &ApiVersionsResponse) -> Response {
    let feature = answer.supported_features.iter().find(|feature| feature.name == *name::KRAFT);
    let kraft = feature.map(|feature| (feature.min_version, feature.max_version));
    Response::ApiVersions { error: ErrorCode::from_code(answer.error_code), kraft }
}
