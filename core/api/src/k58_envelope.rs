//! # Envelope, key 58, version 0
//!
//! A broker passes on what its client asked of the controller. On the controllers' listener only.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-590) |
//!
//! ## Left out
//! - Authorization: the client's name comes along, and is not looked at.
//!
//! Source: Kafka 4.4 `ControllerApis.handleEnvelopeRequest`, `EnvelopeUtils`; `ApiKeys.forwardable`.

use barnabas_base::ErrorCode;
use barnabas_wire::ApiKey;
use barnabas_wire::messages::EnvelopeResponse;
use bytes::Bytes;

/// What brokers pass on of what their clients ask.
pub fn is_forwarded(api: ApiKey) -> bool {
    matches!(
        api,
        ApiKey::CreateTopics
            | ApiKey::DeleteTopics
            | ApiKey::CreatePartitions
            | ApiKey::AlterConfigs
            | ApiKey::IncrementalAlterConfigs
            | ApiKey::ElectLeaders
            | ApiKey::CreateAcls
            | ApiKey::DeleteAcls
            | ApiKey::AlterClientQuotas
            | ApiKey::AlterUserScramCredentials
            | ApiKey::AlterPartitionReassignments
            | ApiKey::ListPartitionReassignments
            | ApiKey::UpdateFeatures
            | ApiKey::DescribeQuorum
            | ApiKey::UnregisterBroker
            | ApiKey::UnregisterController
            | ApiKey::AddRaftVoter
            | ApiKey::RemoveRaftVoter
    )
}

/// What brokers and controllers ask the active controller in their own names: it comes as it is, without an Envelope.
pub fn is_own(api: ApiKey) -> bool {
    matches!(
        api,
        ApiKey::BrokerRegistration
            | ApiKey::BrokerHeartbeat
            | ApiKey::AlterPartition
            | ApiKey::AllocateProducerIds
            | ApiKey::AssignReplicasToDirs
            | ApiKey::ControllerRegistration
    )
}

/// The client's answer, to be handed to it by its broker: header and body.
pub fn respond(response_data: Bytes) -> EnvelopeResponse {
    EnvelopeResponse { response_data: Some(response_data), ..EnvelopeResponse::default() }
}

/// The answer to the broker if the client's request was not read.
pub fn refuse(code: ErrorCode) -> EnvelopeResponse {
    EnvelopeResponse { error_code: code.code(), ..EnvelopeResponse::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k18_api_versions::{Listener, is_answered};

    #[test]
    fn what_is_passed_on_is_answered_on_both_listeners() {
        let forwarded = || ApiKey::ALL.iter().copied().filter(|key| is_forwarded(*key));
        assert!(forwarded().count() > 0);
        for key in forwarded() {
            assert!(is_answered(key, Listener::Broker), "{key} on a broker's listener");
            assert!(is_answered(key, Listener::Controller), "{key} on a controller's listener");
        }
    }
}
