//! Controllers: each registers with the active one, so that brokers, tools and changes of features know of it.
//!
//! Source: KIP-919; Kafka `ClusterControlManager.registerController`.

use barnabas_base::{BrokerId, ErrorCode};
use barnabas_metadata::snapshot::controller_record;
use barnabas_metadata::{Controller, Endpoint, FeatureRange};
use barnabas_wire::messages::{ControllerRegistrationRequest, ControllerRegistrationResponse};

use super::{Case, Outcome};

pub(super) fn register(case: &Case<'_>, request: &ControllerRegistrationRequest) -> Outcome {
    let refuse = |code: ErrorCode, message: String| {
        let response = ControllerRegistrationResponse {
            error_code: code.code(),
            error_message: Some(message.into()),
            ..ControllerRegistrationResponse::default()
        };
        Outcome::new(Vec::new(), response)
    };
    if !case.image.metadata_version().has_controller_registration() {
        let message = "controllers register from metadata.version 3.7-IV0 on".to_owned();
        return refuse(ErrorCode::UnsupportedVersion, message);
    }
    if request.listeners.is_empty() {
        return refuse(ErrorCode::InvalidRegistration, "no listener is named".to_owned());
    }
    let controller = Controller {
        id: BrokerId(request.controller_id),
        incarnation: request.incarnation_id,
        zk_migration_ready: request.zk_migration_ready,
        endpoints: request
            .listeners
            .iter()
            .map(|listener| Endpoint {
                listener: listener.name.text(),
                host: listener.host.text(),
                port: listener.port,
                security_protocol: listener.security_protocol,
            })
            .collect(),
        features: request
            .features
            .iter()
            .map(|feature| FeatureRange {
                name: feature.name.text(),
                min: feature.min_supported_version,
                max: feature.max_supported_version,
            })
            .collect(),
    };
    let known = case.image.cluster.controller(controller.id);
    let records = if known.is_some_and(|known| **known == controller) {
        Vec::new()
    } else {
        vec![controller_record(&controller)]
    };
    Outcome::new(records, ControllerRegistrationResponse::default())
}
