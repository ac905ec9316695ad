//! Why a tool stops.

use barnabas_client::ClientError;

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("{0}")]
    Usage(String),
    /// Printed already.
    #[error("it failed")]
    Reported,
    /// Printed already; the exit code says what it was.
    #[error("exit code {0}")]
    Code(u8),
    /// Printed as it is, since scripts look for Kafka's words.
    #[error("{0}")]
    Plain(String),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("standard input: {0}")]
    Input(#[source] std::io::Error),
    #[error("standard output: {0}")]
    Output(#[source] std::io::Error),
    #[error("signal {0}")]
    Stopped(u8),
    #[error("no runtime: {0}")]
    Runtime(#[source] std::io::Error),
}
