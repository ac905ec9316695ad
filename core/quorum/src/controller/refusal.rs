//! A "no" for a client: Kafka's code, and a sentence of ours.

use barnabas_base::ErrorCode;

/// Why a request, or a part of it, is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
}

impl Refusal {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
