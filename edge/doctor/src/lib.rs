//! Looks at a cluster through Kafka's protocol, and prints what core/findings makes of it.
//!
//! Reads only. Works with any broker that speaks the protocol; what Barnabas alone tells is its metrics page.
//!
//! | file | answers |
//! |---|---|
//! | `look.rs`, `look/` | what does the cluster look like, now and some seconds later |
//! | `metrics_page.rs` | what does a node's metrics page say |
//! | `bench_disk.rs` | what does a synced write cost on this device |
//! | `print.rs` | how is a report shown, as text and as JSON |

mod bench_disk;
mod look;
mod metrics_page;
mod print;

pub use barnabas_findings::Scrape;
pub use bench_disk::{DiskBench, Writes, bench_disk};
pub use look::{Looking, Pending, look};
pub use metrics_page::{NoPage, metrics_page, series_page};
pub use print::{Shown, explanation, json, list, text};
