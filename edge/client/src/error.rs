//! What can go wrong between a client and a broker, and what the user of the client does about it.

use barnabas_base::{ErrorCode, Offset};
use barnabas_wire::{DecodeError, EncodeError};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no broker answers at {address}: {why}. Is it running, and is this its advertised address?")]
    Unreachable { address: String, why: String },
    #[error("no login at {address}: {why}")]
    Login { address: String, why: String },
    #[error("no TLS with {address}: {why}")]
    Tls { address: String, why: String },
    #[error("the connection to {address} ended: {why}")]
    Lost { address: String, why: String },
    #[error(
        "UNSUPPORTED_VERSION: {address} does not support {api}, or no version of it that this client knows"
    )]
    Unsupported { address: String, api: &'static str },
    #[error("{address} sent an answer that is not Kafka's protocol: {source}")]
    Garbled { address: String, source: DecodeError },
    #[error("the request cannot be written: {0}")]
    Request(#[from] EncodeError),
    #[error("{what}: {code}{}", if message.is_empty() { String::new() } else { format!(": {message}") })]
    Refused { what: String, code: ErrorCode, message: String },
    #[error("{what} was not done within {after_ms} ms{}", if last.is_empty() { String::new() } else { format!("; last answer: {last}") })]
    TimedOut { what: String, after_ms: u64, last: String },
    #[error("{0}")]
    Invalid(String),
    #[error("records of {0} cannot be read: {1}")]
    Records(String, String),
    #[error(
        "records of {place} cannot be read at offset {at}: their batch inflates to more than {limit} bytes, which is \
         max.decompressed.batch.bytes of this consumer. Raise it, or read on behind the batch, at offset {next}"
    )]
    TooLarge { place: String, at: Offset, next: Offset, limit: usize },
}

impl ClientError {
    /// A refusal as the broker worded it.
    pub fn refused(what: impl Into<String>, code: i16, message: Option<&str>) -> Self {
        let code = ErrorCode::from_code(code);
        Self::Refused { what: what.into(), code, message: message.unwrap_or_default().to_owned() }
    }

    /// Whether the same request may succeed a little later, perhaps at another node.
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Lost { .. } => true,
            Self::Refused { code, .. } => code.is_retriable(),
            _ => false,
        }
    }

    /// The same error for another caller. Errors of the system cannot be copied, so some come as a sentence.
    pub(crate) fn repeated(&self) -> Self {
        match self {
            Self::Unreachable { address, why } => {
                Self::Unreachable { address: address.clone(), why: why.clone() }
            }
            Self::Lost { address, why } => Self::Lost { address: address.clone(), why: why.clone() },
            Self::Refused { what, code, message } => {
                Self::Refused { what: what.clone(), code: *code, message: message.clone() }
            }
            Self::TooLarge { place, at, next, limit } => {
                Self::TooLarge { place: place.clone(), at: *at, next: *next, limit: *limit }
            }
            other => Self::Invalid(other.to_string()),
        }
    }

    /// The broker's code, where a broker refused.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// `Ok` for code 0, the refusal otherwise.
///
/// # Errors
/// [`ClientError::Refused`].
pub fn check(what: impl Into<String>, code: i16, message: Option<&str>) -> Result<(), ClientError> {
    if code == 0 { Ok(()) } else { Err(ClientError::refused(what, code, message)) }
}
