//! AllocateProducerIds: blocks of ids that no other broker has.
//!
//! Source: KIP-730; Kafka `ProducerIdControlManager`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::{AllocateProducerIdsRequest, AllocateProducerIdsResponse, ProducerIdsRecord};

use super::brokers::check_epoch;
use super::{Case, Outcome};

/// Ids in a block.
pub const BLOCK: i64 = 1000;

pub(super) fn allocate(case: &Case<'_>, request: &AllocateProducerIdsRequest) -> Outcome {
    let refuse = |code: ErrorCode| {
        let error_code = code.code();
        let response = AllocateProducerIdsResponse { error_code, ..AllocateProducerIdsResponse::default() };
        Outcome::new(Vec::new(), response)
    };
    if let Err(refusal) = check_epoch(case.image, request.broker_id, request.broker_epoch) {
        return refuse(refusal.code);
    }
    let first = case.image.next_producer_id.get().max(0);
    let Some(next) = first.checked_add(BLOCK) else { return refuse(ErrorCode::UnknownServerError) };
    let record = ProducerIdsRecord {
        broker_id: request.broker_id,
        broker_epoch: request.broker_epoch,
        next_producer_id: next,
        ..ProducerIdsRecord::default()
    };
    let response = AllocateProducerIdsResponse {
        producer_id_start: first,
        producer_id_len: BLOCK as i32,
        ..AllocateProducerIdsResponse::default()
    };
    Outcome::new(vec![record.into()], response)
}
