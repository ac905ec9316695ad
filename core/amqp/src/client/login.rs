//! SASL as a client: which mechanism, and its first words. ANONYMOUS, PLAIN and EXTERNAL end with them.
//!
//! # Source
//! AMQP 1.0 part 5, section 5.3; RFC 4505 (ANONYMOUS), RFC 4616 (PLAIN), RFC 4422 appendix A (EXTERNAL).

use crate::AmqpError;
use crate::performative::Sasl;
use bytes::{BufMut, Bytes, BytesMut};

/// Who logs in.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Login {
    /// No SASL layer at all.
    None,
    #[default]
    Anonymous,
    Plain {
        user: String,
        password: String,
    },
    /// By the certificate that TLS has shown.
    External,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Plain { user, .. } => write!(f, "Plain({user})"),
            Self::External => f.write_str("External"),
        }
    }
}

impl Login {
    fn mechanism(&self) -> &'static str {
        match self {
            Self::None | Self::Anonymous => "ANONYMOUS",
            Self::Plain { .. } => "PLAIN",
            Self::External => "EXTERNAL",
        }
    }

    /// The answer to the mechanisms that a peer offers.
    pub(super) fn init(&self, offered: &[String], hostname: Option<&str>) -> Result<Sasl, AmqpError> {
        let wanted = self.mechanism();
        if !offered.iter().any(|name| name == wanted) {
            return Err(AmqpError::Mechanism { offered: offered.join(", "), wanted });
        }
        let response = match self {
            Self::Plain { user, password } => {
                let mut token = BytesMut::with_capacity(2 + user.len() + password.len());
                token.put_u8(0);
                token.put_slice(user.as_bytes());
                token.put_u8(0);
                token.put_slice(password.as_bytes());
                token.freeze()
            }
            _ => Bytes::new(),
        };
        let hostname = hostname.map(str::to_owned);
        Ok(Sasl::Init { mechanism: wanted.to_owned(), response: Some(response), hostname })
    }
}
