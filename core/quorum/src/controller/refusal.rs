//! A "no" for a client: Kafka's code, and a sentence of ours.

use barnabas_base::ErrorCode;
use barnabas_wire::sentence;

/// Why a request, or a part of it, is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
}

impl Refusal {
    /// A long message is cut: it may hold a name that a client chose, once for each of many partitions.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: sentence(message.into()).into_owned() }
    }
}
