//! # PushTelemetry, key 72, version 0
//!
//! Takes the metrics of a client, which the metrics page then shows.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-714) |
//!
//! ## Left out
//! - Histograms and summaries in the metrics are counted and dropped. No known client pushes one.
//!
//! What is decided: core/telemetry's `clients.rs`, `payload.rs` and `series.rs`.
//!
//! Source: Kafka 4.4 `ClientMetricsManager.processPushTelemetryRequest`.

use barnabas_base::{ErrorCode, Uuid};
use barnabas_telemetry::Push;
use barnabas_wire::messages::{PushTelemetryRequest, PushTelemetryResponse};
use bytes::Bytes;

/// A push, and its metrics as they came.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    pub instance_id: Uuid,
    pub push: Push,
    pub metrics: Bytes,
}

/// What is to be checked, and then read.
pub fn plan(request: PushTelemetryRequest) -> Work {
    let push = Push {
        subscription_id: request.subscription_id,
        is_terminating: request.terminating,
        compression_type: request.compression_type,
        metrics_bytes: request.metrics.len(),
    };
    Work { instance_id: request.client_instance_id, push, metrics: request.metrics }
}

/// The answer.
pub fn respond(outcome: Result<(), ErrorCode>) -> PushTelemetryResponse {
    let error_code = outcome.err().map_or(0, ErrorCode::code);
    PushTelemetryResponse { error_code, ..PushTelemetryResponse::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_is_taken_apart_and_answered_with_its_code() {
        let request = PushTelemetryRequest {
            client_instance_id: Uuid([1; 16]),
            subscription_id: 9,
            terminating: true,
            compression_type: 4,
            metrics: Bytes::from_static(b"abc"),
            ..PushTelemetryRequest::default()
        };
        let push = Push { subscription_id: 9, is_terminating: true, compression_type: 4, metrics_bytes: 3 };
        let metrics = Bytes::from_static(b"abc");
        assert_eq!(plan(request), Work { instance_id: Uuid([1; 16]), push, metrics });
        assert_eq!(respond(Ok(())).error_code, 0);
        assert_eq!(respond(Err(ErrorCode::TelemetryTooLarge)).error_code, 118);
    }
}
