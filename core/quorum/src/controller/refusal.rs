//! A "no" for a client: Kafka's code, and a sentence of ours.

use barnabas_base::ErrorCode;

/// A sentence is cut where it would be longer: it may hold a name that a client chose, once for each of many partitions.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Why a request, or a part of it, is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
}

impl Refusal {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE_BYTES_MAX {
            message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
            message.push('…');
        }
        Self { code, message }
    }
}
