//! Kafka's errors as reason codes of MQ. The log has Kafka's words.

use barnabas_base::ErrorCode;
use barnabas_client::ClientError;
use barnabas_mq::reason;

pub fn reason_of(error: &ClientError) -> u32 {
    tracing::debug!(%error, "a call of an MQ client was refused");
    match error {
        ClientError::Refused { code, .. } => of_code(*code),
        ClientError::Login { .. } => reason::NOT_AUTHORIZED,
        // What no later try cured in time.
        ClientError::TimedOut { last, .. } if last.contains(ErrorCode::UnknownTopicOrPartition.name()) => {
            reason::UNKNOWN_OBJECT_NAME
        }
        ClientError::TimedOut { .. } => reason::Q_MGR_NOT_AVAILABLE,
        _ => reason::UNEXPECTED_ERROR,
    }
}

fn of_code(code: ErrorCode) -> u32 {
    match code {
        ErrorCode::TopicAuthorizationFailed
        | ErrorCode::GroupAuthorizationFailed
        | ErrorCode::TransactionalIdAuthorizationFailed
        | ErrorCode::ClusterAuthorizationFailed => reason::NOT_AUTHORIZED,
        ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId => reason::UNKNOWN_OBJECT_NAME,
        ErrorCode::InvalidTopicException | ErrorCode::InvalidGroupId => reason::OBJECT_NAME_ERROR,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge => reason::MSG_TOO_BIG_FOR_Q,
        ErrorCode::KafkaStorageError => reason::Q_SPACE_NOT_AVAILABLE,
        ErrorCode::GroupMaxSizeReached | ErrorCode::ThrottlingQuotaExceeded => reason::RESOURCE_PROBLEM,
        // What no later try cured in time.
        code if code.is_retriable() => reason::Q_MGR_NOT_AVAILABLE,
        _ => reason::UNEXPECTED_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_that_of_kafkas_error() {
        let of = |code: ErrorCode| reason_of(&ClientError::refused("t-0", code.code(), None));
        assert_eq!(of(ErrorCode::MessageTooLarge), 2030);
        assert_eq!(of(ErrorCode::TopicAuthorizationFailed), 2035);
        assert_eq!(of(ErrorCode::UnknownTopicOrPartition), 2085);
        let last = "t: UNKNOWN_TOPIC_OR_PARTITION".to_owned();
        let late = ClientError::TimedOut { what: "finding t".to_owned(), after_ms: 1, last };
        assert_eq!(reason_of(&late), 2085);
    }
}
