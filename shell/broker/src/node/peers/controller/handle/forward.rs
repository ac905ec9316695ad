//! Requests for a controller that is another node: what a broker says in its own name goes as it is, what a client
//! asked goes in an Envelope with the client's name.
//!
//! Source: KIP-590; Kafka `ForwardingManagerImpl`, `NodeToControllerChannelManagerImpl`.

use super::{ActiveController, ControllerHandle, NotTaken};
use crate::node::cluster_events::ClusterEvents;
use crate::node::workers::repeated::Repeated;
use barnabas_api::k58_envelope;
use barnabas_base::ErrorCode;
use barnabas_net::links::{Address, Link, LinkError, LinkSettings};
use barnabas_quorum::controller::{Asked, AskingClient};
use barnabas_wire::messages::{EnvelopeRequest, EnvelopeResponse, RequestHeader};
use barnabas_wire::{ApiKey, EncodeError, RequestBody, ResponseBody, Str, decode_response, encode_request};
use bytes::Bytes;
use std::net::IpAddr;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

/// The least time that one try is given.
const TRY_MIN: Duration = Duration::from_millis(100);

impl ControllerHandle {
    /// Asks the active controller, which is another node. `None`: it is no longer, or cannot be reached; to be tried
    /// again.
    pub async fn ask_there(
        &self,
        active: &ActiveController,
        body: &RequestBody,
        asked: &Asked,
        until: Instant,
    ) -> Option<Result<ResponseBody, NotTaken>> {
        let link = self.link_to(active.address.as_ref()?);
        let patience = until.saturating_duration_since(barnabas_clock::now()).max(TRY_MIN);
        let answered = match &asked.client {
            None if k58_envelope::is_own(body.key()) => {
                link.send_body(body.clone(), None, patience).await.map(Unpacked::Answer)
            }
            // Authorized as this node's own principal.
            None => link.send_body(body.clone(), Some(asked.version), patience).await.map(Unpacked::Answer),
            Some(client) => forward(&link, body, asked.version, client, patience).await,
        };
        match answered {
            Ok(Unpacked::Answer(answer)) if is_not_controller(&answer) => None,
            Ok(Unpacked::Answer(answer)) => Some(Ok(answer)),
            Ok(Unpacked::Refused(code)) => {
                let (api, version) = (body.key(), asked.version);
                if let Some(unsaid) = self.shared.repeated.happened(Repeated::NotForwarded(api)) {
                    tracing::warn!(%api, version, code = code.name(), "the controller refused a forwarded \
                        request{unsaid}");
                }
                Some(Err(NotTaken::Refused(code)))
            }
            Err(
                error @ (LinkError::Request(_) | LinkError::Garbled { .. } | LinkError::Unsupported { .. }),
            ) => {
                let api = body.key();
                if let Some(unsaid) = self.shared.repeated.happened(Repeated::NotForwarded(api)) {
                    tracing::warn!(%error, %api, "a request could not be forwarded to the controller{unsaid}");
                }
                Some(Err(NotTaken::Busy))
            }
            Err(error) => {
                tracing::debug!(%error, api = %body.key(), "the controller did not answer");
                None
            }
        }
    }

    fn link_to(&self, address: &Address) -> Link {
        let mut known = self.shared.link.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = known.as_ref().filter(|link| link.address() == address) {
            return link.clone();
        }
        // A question about who is in sync that was given up is asked again, and may be refused then: its first copy
        // must not be granted after that, when its leader counts on the refusal.
        let settings = LinkSettings {
            in_flight_max: 64,
            is_cut_off: true,
            tls: self.shared.tls.clone(),
            login: self.shared.login.get().cloned(),
            ..LinkSettings::new("to-controller")
        };
        let link = Link::start(self.shared.links.handle(), address.clone(), settings);
        *known = Some(link.clone());
        link
    }
}

/// What came of an Envelope.
enum Unpacked {
    Answer(ResponseBody),
    /// The controller cannot read the content, and no retry helps: it does not support the version, or this broker
    /// may not forward requests.
    Refused(ErrorCode),
}

/// Sends a client's request in an Envelope, and takes the answer out of its. `version`: of the request as it is now,
/// whatever the client's was.
async fn forward(
    link: &Link,
    body: &RequestBody,
    version: i16,
    client: &AskingClient,
    patience: Duration,
) -> Result<Unpacked, LinkError> {
    let envelope = envelope(body, version, client)?;
    let answer = link.send_with(patience, |_| Some(envelope)).await?;
    unpack(answer, body.key(), version, link.address())
}

fn unpack(
    answer: EnvelopeResponse,
    api: ApiKey,
    version: i16,
    from: &Address,
) -> Result<Unpacked, LinkError> {
    let to = from.clone();
    match (ErrorCode::from_code(answer.error_code), answer.response_data) {
        (ErrorCode::None, Some(data)) => match decode_response(data, api, version) {
            Ok((_, body)) => Ok(Unpacked::Answer(body)),
            Err(source) => Err(LinkError::Garbled { to, api, source }),
        },
        (
            code @ (ErrorCode::UnsupportedVersion
            | ErrorCode::InvalidRequest
            | ErrorCode::ClusterAuthorizationFailed
            | ErrorCode::PrincipalDeserializationFailure),
            _,
        ) => Ok(Unpacked::Refused(code)),
        (code, _) => Err(LinkError::Lost { to, why: format!("it says {}", code.name()).into() }),
    }
}

fn is_not_controller(body: &ResponseBody) -> bool {
    let code = match body {
        ResponseBody::BrokerRegistration(response) => response.error_code,
        ResponseBody::BrokerHeartbeat(response) => response.error_code,
        ResponseBody::AlterPartition(response) => response.error_code,
        ResponseBody::AllocateProducerIds(response) => response.error_code,
        ResponseBody::AssignReplicasToDirs(response) => response.error_code,
        ResponseBody::ControllerRegistration(response) => response.error_code,
        // Only this node's own requests come without an Envelope.
        ResponseBody::CreateTopics(response) => response.topics.first().map_or(0, |topic| topic.error_code),
        _ => 0,
    };
    code == ErrorCode::NotController.code()
}

/// The request as its client sent it, and who that is.
fn envelope(body: &RequestBody, version: i16, client: &AskingClient) -> Result<EnvelopeRequest, EncodeError> {
    let header = RequestHeader {
        request_api_key: body.key().number(),
        request_api_version: version,
        correlation_id: 0,
        // The controller's quotas look at it.
        client_id: client.client_id.as_ref().map(Str::from),
        ..RequestHeader::default()
    };
    let address = match client.address {
        IpAddr::V4(v4) => Bytes::copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => Bytes::copy_from_slice(&v6.octets()),
    };
    Ok(EnvelopeRequest {
        request_data: encode_request(&header, body)?.into_bytes(),
        request_principal: Some(k58_envelope::principal(&client.principal, client.token_authenticated)?),
        client_host_address: address,
        ..EnvelopeRequest::default()
    })
}

/// What came of topics that the broker asked for in its own name.
pub fn log_unheard(response: &ResponseBody, events: &ClusterEvents) {
    let ResponseBody::CreateTopics(response) = response else { return };
    for topic in &response.topics {
        match topic.error_code {
            0 => events.created(topic.name.as_str()),
            // TOPIC_ALREADY_EXISTS: several clients named it at once.
            36 => {}
            code => {
                let why = topic.error_message.as_ref().map_or("", |text| text.as_str());
                events.not_created(topic.name.as_str(), ErrorCode::from_code(code), why);
            }
        }
    }
}

#[cfg(test)]
mod tests;
