//! The signals that end a tool which works until it is stopped.

use crate::ToolError;
use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGINT or SIGTERM: its number.
///
/// # Errors
/// The process takes no signal handlers.
pub async fn stopped() -> Result<u8, ToolError> {
    let listen = |kind| signal(kind).map_err(ToolError::Runtime);
    let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
    let (mut interrupted, mut terminated) = (listen(interrupt)?, listen(terminate)?);
    let kind = tokio::select! {
        _ = interrupted.recv() => interrupt,
        _ = terminated.recv() => terminate,
    };
    Ok(kind.as_raw_value().unsigned_abs() as u8)
}
