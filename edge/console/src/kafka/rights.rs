//! What the caller may do to a topic, as Metadata says it: for changes that the broker cannot be asked to try.
//!
//! Source: KIP-430. The number of an operation in Kafka's `AclOperation` is its bit.

use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::MetadataRequest;
use barnabas_wire::messages::metadata_request::MetadataRequestTopic;

/// `AclOperation.READ` and `DELETE`.
pub const READ: u32 = 3;
pub const DELETE: u32 = 6;
/// What a broker gives that does not say.
const UNKNOWN: i32 = i32::MIN;

/// # Errors
/// `TOPIC_AUTHORIZATION_FAILED`: the caller may not do it.
pub async fn check_topic(cluster: &mut Cluster, name: &str, operation: u32) -> Result<(), ClientError> {
    let request = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic { name: Some(name.into()), ..Default::default() }]),
        allow_auto_topic_creation: false,
        include_topic_authorized_operations: true,
        ..Default::default()
    };
    let answer = cluster.ask_any(&request).await?;
    let what = format!("topic {name}");
    let missing = || ClientError::refused(&what, ErrorCode::UnknownTopicOrPartition.code(), None);
    let topic = answer.topics.first().ok_or_else(missing)?;
    check(what.clone(), topic.error_code, None)?;
    if is_allowed(topic.topic_authorized_operations, operation) {
        return Ok(());
    }
    Err(ClientError::refused(what, ErrorCode::TopicAuthorizationFailed.code(), None))
}

fn is_allowed(operations: i32, operation: u32) -> bool {
    operations == UNKNOWN || (operations.cast_unsigned() >> operation) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_is_a_bit_and_silence_is_no_refusal() {
        assert!(is_allowed(1 << 6, DELETE) && is_allowed(i32::MIN, DELETE));
        assert!(!is_allowed(1 << 3, DELETE) && !is_allowed(0, READ));
    }
}
