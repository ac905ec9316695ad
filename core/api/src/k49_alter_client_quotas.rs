//! # AlterClientQuotas, key 49, versions 0–1
//!
//! Sets and removes quotas of users, client ids and addresses.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-546) |
//! | 1 | flexible (KIP-482) |
//!
//! ## Left out
//! - Host names as addresses: a quota is for an IP address.
//!
//! What is decided: core/quorum's `controller/access/client_quotas.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleAlterClientQuotas`, `AlterClientQuotasRequest`.

use barnabas_wire::messages::alter_client_quotas_request::{AlterClientQuotasRequest, EntryData as Asked};
use barnabas_wire::messages::alter_client_quotas_response::{
    AlterClientQuotasResponse, EntityData, EntryData,
};

use crate::Refusal;

/// For the controller.
#[derive(Debug)]
pub struct Work {
    pub request: AlterClientQuotasRequest,
    pub pending: Pending,
}

/// What the answer needs of the request.
#[derive(Debug)]
pub struct Pending {
    entities: Vec<Vec<EntityData>>,
}

/// The controller's work: all of it.
pub fn plan(request: AlterClientQuotasRequest) -> Work {
    let pending = Pending { entities: request.entries.iter().map(entity).collect() };
    Work { request, pending }
}

fn entity(entry: &Asked) -> Vec<EntityData> {
    let parts = entry.entity.iter().map(|part| EntityData {
        entity_type: part.entity_type.clone(),
        entity_name: part.entity_name.clone(),
        ..EntityData::default()
    });
    parts.collect()
}

impl Pending {
    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(self, outcome: Result<AlterClientQuotasResponse, Refusal>) -> AlterClientQuotasResponse {
        outcome.unwrap_or_else(|refusal| {
            let refused = |entity| EntryData {
                error_code: refusal.code.code(),
                error_message: refusal.text(),
                entity,
                ..EntryData::default()
            };
            let entries = self.entities.into_iter().map(refused).collect();
            AlterClientQuotasResponse { entries, ..AlterClientQuotasResponse::default() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{carried, versions};
    use barnabas_base::ErrorCode;
    use barnabas_wire::messages::alter_client_quotas_request::EntityData as Part;

    #[test]
    fn without_a_controller_every_entity_is_refused() {
        let part = |kind: &str, name: Option<&str>| Part {
            entity_type: kind.into(),
            entity_name: name.map(Into::into),
            ..Part::default()
        };
        let entry = |entity| Asked { entity, ..Asked::default() };
        let entries = vec![entry(vec![part("user", Some("a")), part("client-id", None)]), entry(Vec::new())];
        let request = AlterClientQuotasRequest { entries, ..AlterClientQuotasRequest::default() };
        for version in versions::<AlterClientQuotasResponse>() {
            let work = plan(request.clone());
            let response = carried(work.pending.respond(Err(ErrorCode::RequestTimedOut.into())), version);
            let codes: Vec<i16> = response.entries.iter().map(|entry| entry.error_code).collect();
            assert_eq!(codes, [7, 7]);
            let named: Vec<_> =
                response.entries[0].entity.iter().map(|part| part.entity_name.as_deref()).collect();
            assert_eq!(named, [Some("a"), None]);
        }
    }
}
