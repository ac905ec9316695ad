//! # Envelope, key 58, version 0
//!
//! A broker passes on what its client asked of the controller. On the controllers' listener only.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-590) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `ControllerApis.handleEnvelopeRequest`, `EnvelopeUtils`; `ApiKeys.forwardable`.

use std::net::IpAddr;

use barnabas_base::{ErrorCode, Text};
use barnabas_wire::messages::{DefaultPrincipalData, EnvelopeResponse};
use barnabas_wire::{ApiKey, EncodeError, Message, Reader, Str, Writer};
use bytes::Bytes;

use crate::Client;

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
            | ApiKey::CreateDelegationToken
            | ApiKey::RenewDelegationToken
            | ApiKey::ExpireDelegationToken
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

/// The form of the principal, in front of it.
const PRINCIPAL_VERSION: i16 = 0;

/// The principal as an Envelope carries it.
///
/// # Errors
/// A name that is too long for the form.
///
/// # Source
/// Kafka `DefaultKafkaPrincipalBuilder.serialize`, `MessageUtil.toVersionPrefixedByteBuffer`.
pub fn principal(principal: &str, token_authenticated: bool) -> Result<Bytes, EncodeError> {
    let (kind, name) = principal.split_once(':').unwrap_or(("User", principal));
    let data = DefaultPrincipalData {
        r#type: Str::from(kind),
        name: Str::from(name),
        token_authenticated,
        ..DefaultPrincipalData::default()
    };
    let mut w = Writer::new();
    w.int16(PRINCIPAL_VERSION);
    data.encode(&mut w, PRINCIPAL_VERSION)?;
    Ok(w.into_bytes())
}

/// The client for which a broker asks, on the listener that the Envelope came in by.
///
/// # Errors
/// PRINCIPAL_DESERIALIZATION_FAILURE; INVALID_REQUEST for an address that is none.
pub fn client(
    principal: Option<Bytes>,
    address: &[u8],
    client_id: Option<&str>,
    listener: &Text,
) -> Result<Client, ErrorCode> {
    let read = principal.and_then(|bytes| {
        let mut r = Reader::new(bytes);
        let version = r
            .int16("principalVersion")
            .ok()
            .filter(|version| DefaultPrincipalData::VERSIONS.contains(*version))?;
        DefaultPrincipalData::decode(&mut r, version).ok()
    });
    let Some(data) = read else { return Err(ErrorCode::PrincipalDeserializationFailure) };
    let address = match (<[u8; 4]>::try_from(address), <[u8; 16]>::try_from(address)) {
        (Ok(v4), _) => IpAddr::from(v4),
        (_, Ok(v6)) => IpAddr::from(v6),
        _ => return Err(ErrorCode::InvalidRequest),
    };
    Ok(Client {
        listener: listener.clone(),
        client_id: client_id.map(Text::from),
        host: Text::from(format!("/{}", address.to_canonical())),
        principal: Text::from(format!("{}:{}", data.r#type, data.name)),
        is_authenticated: true,
        token_authenticated: data.token_authenticated,
    })
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
    fn principal_and_address_arrive_as_they_were_sent() {
        let listener = Text::from("CONTROLLER");
        for (name, by_token) in [("User:CN=a:b,O=c", true), ("Group:ops", false)] {
            let sent = principal(name, by_token).unwrap();
            let read = client(Some(sent), &[10, 0, 0, 7], Some("c"), &listener).unwrap();
            assert_eq!(
                (&*read.principal, read.token_authenticated, &*read.host),
                (name, by_token, "/10.0.0.7")
            );
        }
    }

    #[test]
    fn envelope_without_client_is_refused() {
        let listener = Text::from("CONTROLLER");
        let good = principal("User:a", false).unwrap();
        let no_principal = ErrorCode::PrincipalDeserializationFailure;
        for bad in [None, Some(Bytes::new()), Some(Bytes::from_static(&[0, 9])), Some(good.slice(..3))] {
            assert_eq!(client(bad, &[1; 4], None, &listener), Err(no_principal));
        }
        for address in [&[][..], &[1; 3], &[1; 17]] {
            assert_eq!(client(Some(good.clone()), address, None, &listener), Err(ErrorCode::InvalidRequest));
        }
        assert_eq!(&*client(Some(good), &[0; 16], None, &listener).unwrap().host, "/::");
    }

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
