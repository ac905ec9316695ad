//! Controllers: each registers with the active one, so that brokers, tools and changes of features know of it; one that
//! will not come back is forgotten when its operator says so.
//!
//! Sources: KIP-919, KIP-1312; Kafka `ClusterControlManager.registerController`, `unregisterController`,
//! `QuorumController`.

use barnabas_base::{BrokerId, ErrorCode};
use barnabas_metadata::snapshot::controller_record;
use barnabas_metadata::{Controller, Endpoint, FeatureRange};
use barnabas_wire::messages::{
    ControllerRegistrationRequest, ControllerRegistrationResponse, UnregisterControllerRecord,
    UnregisterControllerRequest, UnregisterControllerResponse,
};

use super::{Case, Outcome, Refusal, error_fields, limits};

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
    if let Err(refusal) = check_size(case, request) {
        return refuse(refusal.code, refusal.message);
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

fn check_size(case: &Case<'_>, request: &ControllerRegistrationRequest) -> Result<(), Refusal> {
    let listeners = request.listeners.iter().flat_map(|listener| [&*listener.name, &*listener.host]);
    let texts = listeners.chain(request.features.iter().map(|feature| &*feature.name));
    limits::check_registration(request.listeners.len(), request.features.len(), 0, texts)?;
    let cluster = &case.image.cluster;
    if cluster.controller(BrokerId(request.controller_id)).is_none() {
        limits::check_new_node(case.config, cluster.controllers().count())?;
    }
    Ok(())
}

/// Removes a controller's registration. One that still runs registers again; whether it votes is up to the quorum.
pub(super) fn unregister(case: &Case<'_>, request: &UnregisterControllerRequest, me: BrokerId) -> Outcome {
    let id = BrokerId(request.controller_id);
    let refusal = why_kept(case, id, me);
    let (error_code, error_message) = error_fields(refusal.as_ref());
    let response =
        UnregisterControllerResponse { error_code, error_message, ..UnregisterControllerResponse::default() };
    if refusal.is_some() {
        return Outcome::new(Vec::new(), response);
    }
    let record =
        UnregisterControllerRecord { controller_id: id.get(), ..UnregisterControllerRecord::default() };
    Outcome::new(vec![record.into()], response)
}

fn why_kept(case: &Case<'_>, id: BrokerId, me: BrokerId) -> Option<Refusal> {
    if id == me {
        let message = format!("controller {id} is the active one: it cannot be forgotten by itself");
        return Some(Refusal::new(ErrorCode::InvalidRequest, message));
    }
    if !case.image.metadata_version().has_controller_unregistration() {
        let message = "controllers are unregistered from metadata.version 4.4-IV2 on";
        return Some(Refusal::new(ErrorCode::UnsupportedVersion, message));
    }
    if case.image.cluster.controller(id).is_none() {
        let message = format!("controller {id} is not registered");
        return Some(Refusal::new(ErrorCode::ControllerIdNotRegistered, message));
    }
    None
}
