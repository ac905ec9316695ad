//! `doctor bench-net`: what the path between two machines can do, and what that means for acks and replication.
//!
//! The question: what does a copy on another machine cost, and how many bytes a second can be copied there. Units:
//! seconds of one round trip of 64 bytes, one at a time; MiB a second of TCP payload. Left out: TLS, what a broker's
//! own work adds, and the switch behind a bonded interface where all connections of a run take the same link.
//!
//! | file | answers |
//! |---|---|
//! | `wire.rs` | which bytes go over a connection, and which limits end it |
//! | `listener.rs` | what does the machine that is measured do |
//! | `caller.rs` | in which order does the other machine measure |
//! | `brokers.rs` | how long does a broker take for ApiVersions, where nothing else listens |
//! | `kernel.rs` | what does the kernel know of the path |
//! | `meaning.rs` | what do the figures mean, in sentences |

mod brokers;
mod caller;
mod kernel;
mod listener;
mod meaning;
mod wire;

pub use brokers::{BrokerRounds, bench_brokers, brokers_text};
pub use caller::{Flow, NetBench, Toward, bench_net};
pub use kernel::Segments;
pub use listener::NetListener;
pub use meaning::{Disk, Meaning};
pub use wire::NetError;

use std::time::Duration;

/// A part of a run lasts so long at most.
pub const SECONDS_MAX: u16 = 60;
/// Connections of a flow.
pub const CONNECTIONS_MAX: usize = 16;
/// Round trips that are kept of a part: 8 MB.
const ROUNDS_MAX: usize = 1_000_000;

/// Round trips, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoundTrips {
    pub count: usize,
    pub p50: Duration,
    pub p99: Duration,
    pub p999: Duration,
    pub max: Duration,
}

impl RoundTrips {
    /// `None`: there were none.
    fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        let at = |share: f64| times[((times.len() as f64 * share) as usize).min(last)];
        Some(Self { count: times.len(), p50: at(0.5), p99: at(0.99), p999: at(0.999), max: times[last] })
    }

    fn row(&self, name: &str) -> String {
        let [p50, p99, p999, max] = [self.p50, self.p99, self.p999, self.max].map(ms);
        format!("{name:<28} {:>8} {p50:>10} {p99:>10} {p999:>10} {max:>10}", self.count)
    }
}

const ROUNDS_HEAD: &str = "round trips                     count        p50        p99      p99.9        max";

fn ms(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests;
