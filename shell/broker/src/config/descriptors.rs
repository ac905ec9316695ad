//! How the process's descriptors are divided: so many for log files, so many for connections, the rest for all else.
//!
//! The soft limit is raised to the hard one first. core/storage's file pools and the gate in shell/net each keep to
//! the share set here: a node with `ulimit -n 1024` serves any number of partitions, and refuses connections beyond
//! its share with a line in the log.
//! How much each may have is decided by core/config/src/machine.rs.

use barnabas_config::machine::{LIMIT_MAX, Parts, Shares};
use barnabas_disk::SPARE;
use barnabas_metadata::config::BrokerConfig;
use barnabas_metrics::endpoint::CONNECTIONS_MAX;
use rustix::process::{Resource, getrlimit, setrlimit};

/// The console, where it listens: its clients, and a connection to a broker for each.
const CONSOLE_FILES: u64 = 2 * barnabas_console::CONNECTIONS_MAX as u64;

/// Raises the limit and divides it.
///
/// # Errors
/// The limit is too low for this node, in words for the operator.
pub fn share_out(config: &BrokerConfig, workers: usize, directories: usize) -> Result<Shares, String> {
    let limit = raise().min(LIMIT_MAX);
    let console = match barnabas_console::address(config.value(barnabas_console::KEY)) {
        Some(_) => CONSOLE_FILES,
        None => 0,
    };
    let kept = SPARE as u64 + CONNECTIONS_MAX as u64 + console;
    let parts = Parts { workers: workers as u64, directories: directories as u64, kept };
    let (shares, missed) = Shares::divide(config, limit, parts)?;
    if let Some(wanted) = missed {
        tracing::warn!(
            "log.open.files.max={wanted} is more than the process's limit of {limit} open files (ulimit -n) leaves for log files: \
             {} are used. Raise the limit, or lower the key",
            shares.log_files
        );
    }
    barnabas_disk::keep_spare().map_err(|error| format!("no descriptor can be kept in hand: {error}"))?;
    Ok(shares)
}

/// Returns the limit that is in force then.
fn raise() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "the limit of open files stays as it is");
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
