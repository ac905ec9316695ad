//! # AlterConfigs, key 33, versions 0–2
//!
//! Sets the whole configuration of topics, brokers and other resources: a config that is not named is unset. Newer
//! clients use IncrementalAlterConfigs.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-133) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | flexible (KIP-482) |
//!
//! ## Left out
//! - Policies of `alter.config.policy.class.name`.
//!
//! Source: Kafka 4.4 `KafkaApis.handleAlterConfigsRequest`, `ControllerApis.handleLegacyAlterConfigs`,
//! `ConfigAdminManager`.

use barnabas_base::{BrokerId, ErrorCode};
use barnabas_metadata::config::BrokerConfig;
use barnabas_wire::Str;
use barnabas_wire::messages::alter_configs_request::{AlterConfigsRequest, AlterConfigsResource};
use barnabas_wire::messages::alter_configs_response::{AlterConfigsResourceResponse, AlterConfigsResponse};

use crate::altered::{self, Change, Operation, Resources, Route, check_resource};
use crate::{Context, Plan, Refusal};

/// For the controller.
#[derive(Debug)]
pub struct Work {
    pub request: AlterConfigsRequest,
    pub pending: Pending,
}

/// What is to be answered.
#[derive(Debug)]
pub struct Pending {
    resources: Resources,
}

/// Checks what a broker can check, and leaves the rest to the controller.
pub fn plan(
    mut request: AlterConfigsRequest,
    route: Route,
    ctx: &Context<'_>,
) -> Plan<Work, AlterConfigsResponse> {
    let id = |resource: &AlterConfigsResource| (resource.resource_type, resource.resource_name.clone());
    let resources = Resources::sift(&mut request.resources, id, |resource| check(resource, route, ctx));
    let pending = Pending { resources };
    if request.resources.is_empty() {
        return Plan::Answer(pending.respond(Ok(AlterConfigsResponse::default())));
    }
    Plan::Work(Work { request, pending })
}

impl Work {
    /// This broker's configuration as the request would have it, where it changes its TLS or its logins.
    pub fn security_after(&self, ctx: &Context<'_>) -> Option<BrokerConfig> {
        self.request.resources.iter().find_map(|resource| {
            let id = (resource.resource_type, &*resource.resource_name);
            altered::security_after(id, &changes_of(resource), true, ctx)
        })
    }

    /// Refuses the changes of the broker itself: its TLS or its logins could not be used so.
    pub fn refuse_own(&mut self, node: BrokerId, why: String) {
        let id = |resource: &AlterConfigsResource| (resource.resource_type, resource.resource_name.clone());
        let refusal = Refusal::new(ErrorCode::InvalidRequest, why);
        self.pending.resources.refuse_own(&mut self.request.resources, id, node, &refusal);
    }
}

fn changes_of(resource: &AlterConfigsResource) -> Vec<Change<'_>> {
    let changes = resource.configs.iter().map(|config| Change {
        name: &config.name,
        operation: Some(Operation::Set),
        value: config.value.as_ref(),
    });
    changes.collect()
}

fn check(resource: &AlterConfigsResource, route: Route, ctx: &Context<'_>) -> Result<(), Refusal> {
    let changes = changes_of(resource);
    check_resource(resource.resource_type, &resource.resource_name, &changes, true, route, ctx)
}

impl Pending {
    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(self, outcome: Result<AlterConfigsResponse, Refusal>) -> AlterConfigsResponse {
        let id = |answer: &AlterConfigsResourceResponse| (answer.resource_type, answer.resource_name.clone());
        let responses = self.resources.answer(outcome.map(|response| response.responses), id, refuse);
        AlterConfigsResponse { responses, ..AlterConfigsResponse::default() }
    }
}

fn refuse(resource_type: i8, resource_name: Str, refusal: &Refusal) -> AlterConfigsResourceResponse {
    AlterConfigsResourceResponse {
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        resource_type,
        resource_name,
        ..AlterConfigsResourceResponse::default()
    }
}

#[cfg(test)]
mod tests;
