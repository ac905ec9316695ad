//! Starts, stops, kills and questions one node in a process of its own: what the end-to-end tests and the rigs share.
//!
//! | module | answers |
//! |---|---|
//! | `place` | a directory that is removed with its owner |
//! | `ports` | which port is free, and stays free until the node listens on it |
//! | `program` | how the program is run: settings as overrides, limits of a shell |
//! | `process` | the process: run, ready, ended, paused, killed, stopped; what it has logged |
//! | `usage` | what the process uses: memory, descriptors, maps |
//! | `ready` | whether a node answers Metadata |
//!
//! A rig keeps what is its own: which settings its node has, what counts as a complaint in its log. This crate does not
//! know Kafka's protocol (one request as bytes apart), the broker's code, or what a rig wants to find out. The rigs in
//! Python have the same in `lab/harness/*.py`.

mod place;
mod ports;
mod process;
mod program;
mod ready;
mod usage;

pub use place::TempDir;
pub use ports::free_port;
pub use process::NodeProcess;
pub use program::{binary, die_with_the_rig, limited, server};
pub use ready::metadata_answers;
pub use rustix::process::Signal;
pub use usage::{Usage, peak_bytes, reset_peak, resident_bytes};

/// Why a rig cannot go on, as text for its reader.
#[derive(Debug)]
pub struct Trouble(pub String);

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<Trouble> for String {
    fn from(trouble: Trouble) -> Self {
        trouble.0
    }
}

/// A failure as text.
///
/// # Errors
/// Always.
pub fn trouble<T>(text: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble(text.into()))
}
