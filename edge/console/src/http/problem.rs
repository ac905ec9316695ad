//! Errors as RFC 9457 problem documents with Kafka's error name; under `/v3` also with the two fields that clients of
//! Confluent's API read (`error_code`, `message`).
//!
//! | what happened | status |
//! |---|---|
//! | no login, or a wrong one | 401 |
//! | the broker's authorizer refuses | 403 |
//! | no such topic, partition, group, config | 404 |
//! | another refusal of the broker | 400; 500 where it may pass (Confluent's 50003) |
//! | no broker can be reached | 503 |
//! | the broker does not answer in time | 504 |

use barnabas_base::ErrorCode;
use barnabas_client::ClientError;
use hyper::StatusCode;
use serde_json::{Value, json};

/// Confluent's code of an error that may pass.
const RETRIABLE: u32 = 50_003;

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub status: StatusCode,
    /// Where a broker refused.
    pub kafka: Option<ErrorCode>,
    pub detail: String,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, kafka: None, detail: detail.into() }
    }

    pub fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// A refusal as the broker worded it.
    pub fn refused(what: impl Into<String>, code: i16, message: Option<&str>) -> Self {
        ClientError::refused(what, code, message).into()
    }

    /// Confluent's `error_code`: five digits where Kafka's protocol refused, else the status.
    pub fn confluent_code(&self) -> u32 {
        let status = u32::from(self.status.as_u16());
        match (self.kafka, status) {
            (Some(code), 500) if code.is_retriable() => RETRIABLE,
            (Some(_), 400) => 40_002,
            (Some(_), 401 | 403) => status * 100 + 1,
            (Some(_), 404) => 40_403,
            _ => status,
        }
    }

    /// The document, with Confluent's fields where `is_confluent`.
    pub fn document(&self, is_confluent: bool) -> Value {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let mut document = json!({
            "type": "about:blank",
            "title": title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        if let Some(code) = self.kafka {
            document["kafka_error"] = code.name().into();
        }
        if is_confluent {
            document["error_code"] = self.confluent_code().into();
            document["message"] = self.detail.clone().into();
        }
        document
    }
}

impl From<ClientError> for Problem {
    fn from(error: ClientError) -> Self {
        let detail = error.to_string();
        match &error {
            ClientError::Refused { code, .. } => Self { status: status(*code), kafka: Some(*code), detail },
            ClientError::Login { .. } => Self {
                status: StatusCode::UNAUTHORIZED,
                kafka: Some(ErrorCode::SaslAuthenticationFailed),
                detail,
            },
            ClientError::Unsupported { .. } => Self {
                status: StatusCode::NOT_IMPLEMENTED,
                kafka: Some(ErrorCode::UnsupportedVersion),
                detail,
            },
            ClientError::Request(_) | ClientError::Invalid(_) => Self::bad(detail),
            ClientError::TimedOut { .. } => Self::new(StatusCode::GATEWAY_TIMEOUT, detail),
            ClientError::Unreachable { .. } | ClientError::Lost { .. } | ClientError::Tls { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            }
            ClientError::Garbled { .. } | ClientError::Records(..) | ClientError::TooLarge { .. } => {
                Self::new(StatusCode::BAD_GATEWAY, detail)
            }
        }
    }
}

fn status(code: ErrorCode) -> StatusCode {
    use ErrorCode as Code;
    match code {
        Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::TransactionalIdAuthorizationFailed
        | Code::DelegationTokenAuthorizationFailed => StatusCode::FORBIDDEN,
        Code::SaslAuthenticationFailed => StatusCode::UNAUTHORIZED,
        Code::UnknownTopicOrPartition | Code::UnknownTopicId | Code::GroupIdNotFound => StatusCode::NOT_FOUND,
        code if code.is_retriable() => StatusCode::INTERNAL_SERVER_ERROR,
        Code::UnknownServerError => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: ErrorCode) -> (u16, u32, String) {
        let problem = Problem::refused("topic t", code.code(), None);
        let document = problem.document(true);
        let name = document["kafka_error"].as_str().expect("a name").to_owned();
        (problem.status.as_u16(), problem.confluent_code(), name)
    }

    #[test]
    fn refusals_keep_kafkas_name() {
        for (code, status, confluent) in [
            (ErrorCode::TopicAuthorizationFailed, 403, 40_301),
            (ErrorCode::GroupAuthorizationFailed, 403, 40_301),
            (ErrorCode::ClusterAuthorizationFailed, 403, 40_301),
            (ErrorCode::UnknownTopicOrPartition, 404, 40_403),
            (ErrorCode::GroupIdNotFound, 404, 40_403),
            (ErrorCode::TopicAlreadyExists, 400, 40_002),
            (ErrorCode::InvalidConfig, 400, 40_002),
            (ErrorCode::PolicyViolation, 400, 40_002),
            (ErrorCode::NotController, 500, 50_003),
        ] {
            assert_eq!(told(code), (status, confluent, code.name().to_owned()));
        }
    }

    #[test]
    fn document_is_rfc_9457_and_confluents_fields_are_for_its_clients() {
        let problem = Problem::not_found("no route has this path");
        let document = problem.document(false);
        assert_eq!(document["status"], 404);
        assert_eq!(document["title"], "Not Found");
        assert!(document.get("error_code").is_none() && document.get("kafka_error").is_none());
        assert_eq!(problem.document(true)["error_code"], 404);
    }

    #[test]
    fn broker_that_cannot_be_reached_is_503() {
        let lost = ClientError::Unreachable { address: "h:1".to_owned(), why: "refused".to_owned() };
        assert_eq!(Problem::from(lost).status, StatusCode::SERVICE_UNAVAILABLE);
    }
}
