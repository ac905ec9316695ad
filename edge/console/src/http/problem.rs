//! Errors as RFC 9457 problem documents with Kafka's error name; under `/v3` also with the two fields that clients of
//! Confluent's API read (`error_code`, `message`). Answers of API v2 have those two alone, and Kafka's error name.
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

/// Confluent's codes of an error that may pass, and of one that does not.
const RETRIABLE: u32 = 50_003;
const KAFKA: u32 = 50_002;

/// Whose documents errors are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `/api/v1`: RFC 9457.
    Own,
    /// Confluent's API v3.
    V3,
    /// Confluent's API v2.
    V2,
}

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub status: StatusCode,
    /// Where a broker refused.
    pub kafka: Option<ErrorCode>,
    /// Confluent's `error_code`, where the route knows better than the status says.
    pub code: Option<u32>,
    pub detail: String,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, kafka: None, code: None, detail: detail.into() }
    }

    /// An error of Confluent's, whose first three digits are the status.
    pub fn coded(code: u32, detail: impl Into<String>) -> Self {
        let status = u16::try_from(code / 100).ok().and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { code: Some(code), ..Self::new(status, detail) }
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
            _ if self.code.is_some() => self.code.unwrap_or(status),
            (Some(code), 500) if code.is_retriable() => RETRIABLE,
            (Some(_), 500) => KAFKA,
            (Some(_), 400) => 40_002,
            (Some(_), 401 | 403) => status * 100 + 1,
            (Some(_), 404) => 40_403,
            _ => status,
        }
    }

    /// The document, as its readers expect it.
    pub fn document(&self, dialect: Dialect) -> Value {
        let mut document = match dialect {
            Dialect::V2 => json!({}),
            Dialect::Own | Dialect::V3 => json!({
                "type": "about:blank",
                "title": self.status.canonical_reason().unwrap_or("Error"),
                "status": self.status.as_u16(),
                "detail": self.detail,
            }),
        };
        if let Some(code) = self.kafka {
            document["kafka_error"] = code.name().into();
        }
        if dialect != Dialect::Own {
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
            ClientError::Refused { code, .. } => {
                Self { kafka: Some(*code), ..Self::new(status(*code), detail) }
            }
            ClientError::Login { .. } => Self {
                kafka: Some(ErrorCode::SaslAuthenticationFailed),
                ..Self::new(StatusCode::UNAUTHORIZED, detail)
            },
            ClientError::Unsupported { .. } => Self {
                kafka: Some(ErrorCode::UnsupportedVersion),
                ..Self::new(StatusCode::NOT_IMPLEMENTED, detail)
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
        let document = problem.document(Dialect::V3);
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
        let document = problem.document(Dialect::Own);
        assert_eq!(document["status"], 404);
        assert_eq!(document["title"], "Not Found");
        assert!(document.get("error_code").is_none() && document.get("kafka_error").is_none());
        assert_eq!(problem.document(Dialect::V3)["error_code"], 404);
    }

    #[test]
    fn v2_has_the_code_and_the_message_alone() {
        let problem = Problem::coded(40_401, "Topic t not found");
        let told = json!({ "error_code": 40_401, "message": "Topic t not found" });
        assert_eq!((problem.status.as_u16(), problem.document(Dialect::V2)), (404, told));
        let denied = Problem::refused("topic t", ErrorCode::TopicAuthorizationFailed.code(), None);
        assert_eq!(denied.document(Dialect::V2)["kafka_error"], "TOPIC_AUTHORIZATION_FAILED");
    }

    #[test]
    fn broker_that_cannot_be_reached_is_503() {
        let lost = ClientError::Unreachable { address: "h:1".to_owned(), why: "refused".to_owned() };
        assert_eq!(Problem::from(lost).status, StatusCode::SERVICE_UNAVAILABLE);
    }
}
