//! # IncrementalAlterConfigs, key 44, versions 0–1
//!
//! Changes single configs of topics, brokers and other resources: sets, unsets, appends to a list, subtracts from it.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-339) |
//! | 1 | flexible (KIP-482) |
//!
//! ## Left out
//! - Log levels (broker loggers): refused with INVALID_REQUEST.
//! - Policies of `alter.config.policy.class.name`.
//!
//! Source: Kafka 4.4 `KafkaApis.handleIncrementalAlterConfigsRequest`, `ControllerApis.handleIncrementalAlterConfigs`, `ConfigAdminManager`.

use barnabas_base::{ErrorCode, Map};
use barnabas_wire::Str;
use barnabas_wire::messages::incremental_alter_configs_request::{
    AlterConfigsResource, IncrementalAlterConfigsRequest,
};
use barnabas_wire::messages::incremental_alter_configs_response::{
    AlterConfigsResourceResponse, IncrementalAlterConfigsResponse,
};

use crate::altered::{Change, Operation, check_resource};
use crate::{Context, Plan, Refusal};

/// For the controller.
#[derive(Debug)]
pub struct Work {
    pub request: IncrementalAlterConfigsRequest,
    pub pending: Pending,
}

/// Every resource of the request in its order, and what was refused before the controller was asked.
#[derive(Debug)]
pub struct Pending {
    resources: Vec<(i8, Str, Option<Refusal>)>,
}

/// Checks what a broker can check, and leaves the rest to the controller.
pub fn plan(
    mut request: IncrementalAlterConfigsRequest,
    ctx: &Context<'_>,
) -> Plan<Work, IncrementalAlterConfigsResponse> {
    let mut times: Map<(i8, Str), u32> = Map::default();
    for resource in &request.resources {
        *times.entry((resource.resource_type, resource.resource_name.clone())).or_default() += 1;
    }
    let mut resources = Vec::with_capacity(request.resources.len());
    request.resources.retain(|resource| {
        let id = (resource.resource_type, resource.resource_name.clone());
        let refusal = if times.get(&id).is_some_and(|times| *times > 1) {
            Some(Refusal::new(ErrorCode::InvalidRequest, "Each resource must appear at most once."))
        } else {
            check(resource, ctx).err()
        };
        let is_fine = refusal.is_none();
        resources.push((id.0, id.1, refusal));
        is_fine
    });
    let pending = Pending { resources };
    if request.resources.is_empty() {
        return Plan::Answer(pending.respond(Ok(IncrementalAlterConfigsResponse::default())));
    }
    Plan::Work(Work { request, pending })
}

fn check(resource: &AlterConfigsResource, ctx: &Context<'_>) -> Result<(), Refusal> {
    let changes = resource.configs.iter().map(|config| Change {
        name: &config.name,
        operation: Operation::from_code(config.config_operation),
        value: config.value.as_ref(),
    });
    let changes: Vec<Change<'_>> = changes.collect();
    check_resource(resource.resource_type, &resource.resource_name, &changes, false, ctx)
}

impl Pending {
    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(
        self,
        outcome: Result<IncrementalAlterConfigsResponse, Refusal>,
    ) -> IncrementalAlterConfigsResponse {
        let mut decided: Map<(i8, Str), AlterConfigsResourceResponse> = Map::default();
        let (answered, why_not) = match outcome {
            Ok(response) => (response.responses, ErrorCode::UnknownServerError.into()),
            Err(refusal) => (Vec::new(), refusal),
        };
        for answer in answered {
            decided.insert((answer.resource_type, answer.resource_name.clone()), answer);
        }
        let responses = self.resources.into_iter().map(|(kind, name, refusal)| match refusal {
            Some(refusal) => refuse(kind, name, &refusal),
            None => decided.remove(&(kind, name.clone())).unwrap_or_else(|| refuse(kind, name, &why_not)),
        });
        IncrementalAlterConfigsResponse {
            responses: responses.collect(),
            ..IncrementalAlterConfigsResponse::default()
        }
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
