//! # GetTelemetrySubscriptions, key 71, version 0
//!
//! Tells a client which of its metrics to push, how often, and compressed how.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-714) |
//!
//! ## Left out
//! - Kafka answers it only with a plug-in that takes the metrics. Here the node itself takes them, and always answers.
//! - No subscription matches librdkafka 2.5.0 to 2.5.2, which aborts when it has none of the metrics (librdkafka#4833).
//!
//! What is decided: core/telemetry's `clients.rs` and `subscriptions.rs`.
//!
//! Source: Kafka 4.4 `ClientMetricsManager.processGetTelemetrySubscriptionRequest`.

use barnabas_base::{ErrorCode, Uuid};
use barnabas_telemetry::{ACCEPTED_CODECS, Offer};
use barnabas_wire::Str;
use barnabas_wire::messages::{GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse};

/// The id that the client goes by. `None`: it has none yet, and is given a random one.
pub fn instance_id(request: &GetTelemetrySubscriptionsRequest) -> Option<Uuid> {
    Some(request.client_instance_id).filter(|id| !id.is_zero())
}

/// The answer. `push_bytes_max`: `telemetry.max.bytes`.
pub fn respond(
    instance_id: Uuid,
    outcome: Result<Offer, ErrorCode>,
    push_bytes_max: usize,
) -> GetTelemetrySubscriptionsResponse {
    let offer = match outcome {
        Ok(offer) => offer,
        Err(code) => {
            return GetTelemetrySubscriptionsResponse {
                error_code: code.code(),
                ..GetTelemetrySubscriptionsResponse::default()
            };
        }
    };
    GetTelemetrySubscriptionsResponse {
        client_instance_id: instance_id,
        subscription_id: offer.subscription_id,
        accepted_compression_types: ACCEPTED_CODECS.iter().map(|codec| codec.id() as i8).collect(),
        push_interval_ms: offer.push_interval_ms,
        telemetry_max_bytes: i32::try_from(push_bytes_max).unwrap_or(i32::MAX),
        // Differences add up on whichever broker a client pushes to.
        delta_temporality: true,
        requested_metrics: offer.metrics.iter().map(Str::from).collect(),
        ..GetTelemetrySubscriptionsResponse::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::Text;

    #[test]
    fn client_without_an_id_is_given_one() {
        let asked = |client_instance_id| GetTelemetrySubscriptionsRequest {
            client_instance_id,
            ..GetTelemetrySubscriptionsRequest::default()
        };
        assert_eq!(instance_id(&asked(Uuid::ZERO)), None);
        assert_eq!(instance_id(&asked(Uuid([1; 16]))), Some(Uuid([1; 16])));
    }

    #[test]
    fn offer_is_answered_with_the_codecs_best_first() {
        let metrics = ["org.apache.kafka.producer.".into()].into_iter().collect::<Vec<Text>>().into();
        let offer = Offer { subscription_id: -5, metrics, push_interval_ms: 1000 };
        let response = respond(Uuid([1; 16]), Ok(offer), 1 << 20);
        assert_eq!(response.error_code, 0);
        assert_eq!((response.client_instance_id, response.subscription_id), (Uuid([1; 16]), -5));
        assert_eq!(response.accepted_compression_types, [4, 3, 1, 2]);
        assert_eq!((response.push_interval_ms, response.telemetry_max_bytes), (1000, 1 << 20));
        assert!(response.delta_temporality);
        assert_eq!(response.requested_metrics, [Str::from("org.apache.kafka.producer.")]);
    }

    #[test]
    fn refusal_names_the_code_alone() {
        let response = respond(Uuid([1; 16]), Err(ErrorCode::ThrottlingQuotaExceeded), 1 << 20);
        let expected = GetTelemetrySubscriptionsResponse { error_code: 89, ..Default::default() };
        assert_eq!(response, expected);
    }
}
