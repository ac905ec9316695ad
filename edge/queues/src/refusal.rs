//! Kafka's errors as AMQP's conditions. The description has Kafka's name of the error.
//!
//! # Source
//! AMQP 1.0 part 2, section 2.8.14 to 2.8.18.

use barnabas_amqp::Condition;
use barnabas_base::ErrorCode;
use barnabas_client::ClientError;

pub const NOT_IMPLEMENTED: &str = "amqp:not-implemented";
pub const INVALID: &str = "amqp:invalid-field";
pub const LIMIT: &str = "amqp:resource-limit-exceeded";

pub fn condition(error: &ClientError) -> Condition {
    Condition::new(name(error), error.to_string())
}

fn name(error: &ClientError) -> &'static str {
    match error {
        ClientError::Refused { code, .. } => of_code(*code),
        ClientError::Login { .. } => "amqp:unauthorized-access",
        // What no later try cured in time.
        ClientError::TimedOut { last, .. } if last.contains(ErrorCode::UnknownTopicOrPartition.name()) => {
            "amqp:not-found"
        }
        _ => "amqp:internal-error",
    }
}

fn of_code(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::TopicAuthorizationFailed
        | ErrorCode::GroupAuthorizationFailed
        | ErrorCode::TransactionalIdAuthorizationFailed
        | ErrorCode::ClusterAuthorizationFailed => "amqp:unauthorized-access",
        ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId => "amqp:not-found",
        ErrorCode::InvalidTopicException | ErrorCode::InvalidGroupId => INVALID,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge => "amqp:link:message-size-exceeded",
        ErrorCode::GroupMaxSizeReached
        | ErrorCode::KafkaStorageError
        | ErrorCode::ThrottlingQuotaExceeded => LIMIT,
        ErrorCode::PolicyViolation | ErrorCode::InvalidRecord | ErrorCode::InvalidTimestamp => {
            "amqp:precondition-failed"
        }
        _ => "amqp:internal-error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_has_kafkas_name() {
        let refused = |code: ErrorCode| condition(&ClientError::refused("t-0", code.code(), None));
        let large = refused(ErrorCode::MessageTooLarge);
        assert_eq!(large.condition, "amqp:link:message-size-exceeded");
        assert!(large.description.contains("MESSAGE_TOO_LARGE"), "{large}");
        assert_eq!(refused(ErrorCode::TopicAuthorizationFailed).condition, "amqp:unauthorized-access");
        let last = "t: UNKNOWN_TOPIC_OR_PARTITION".to_owned();
        let late = ClientError::TimedOut { what: "finding t".to_owned(), after_ms: 1, last };
        assert_eq!(condition(&late).condition, "amqp:not-found");
    }
}
