//! Looks at a cluster through Kafka's protocol, and prints what core/findings makes of it.
//!
//! Reads only. Works with any broker that speaks the protocol; what Barnabas alone tells is its metrics page.
//!
//! | file | answers |
//! |---|---|
//! | `look.rs`, `look/` | what does the cluster look like, now and some seconds later |
//! | `metrics_page.rs` | what does a node's metrics page say |
//! | `bench_disk.rs` | what does a synced write cost on this device |
//! | `bench_net.rs`, `bench_net/` | what can the path between two machines do |
//! | `print.rs` | how is a report shown, as text and as JSON |

mod bench_disk;
mod bench_net;
mod look;
mod metrics_page;
mod print;

pub use barnabas_findings::Scrape;
pub use bench_disk::{DiskBench, Writes, bench_disk};
pub use bench_net::{
    BrokerRounds, CONNECTIONS_MAX, Disk, Flow, Meaning, NetBench, NetError, NetListener, RoundTrips,
    SECONDS_MAX, Segments, Toward, bench_brokers, bench_net, brokers_text,
};
pub use look::{Looking, Pending, look};
pub use metrics_page::{NoPage, metrics_page, series_page};
pub use print::{Shown, explanation, json, list, text};
