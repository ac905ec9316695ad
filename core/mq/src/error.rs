//! What ends a connection.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MqError {
    #[error("the peer speaks EBCDIC. Only ASCII clients are taken: set the client's CCSID to 1208 or 819")]
    Ebcdic,
    #[error("the peer began with {0:02x?}; a segment of MQ begins with TSH, TSHM or TSHC")]
    NotMq([u8; 4]),
    #[error("a segment of {bytes} bytes; the most is {bytes_max}")]
    SegmentTooLarge { bytes: usize, bytes_max: usize },
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    #[error("the queue manager refuses the channel: {0}. Is mq.channel.name a SVRCONN channel of it?")]
    Refused(String),
    #[error("the peer sent nothing for {0} s")]
    Silent(u64),
}

impl MqError {
    pub(crate) fn protocol(words: impl Into<String>) -> Self {
        Self::Protocol(words.into())
    }
}
