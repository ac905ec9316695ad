//! Looks at a cluster through Kafka's protocol, and prints what core/findings makes of it.
//!
//! Reads only. Works with any broker that speaks the protocol; what Barnabas alone tells is its metrics page.
//!
//! | file | answers |
//! |---|---|
//! | `look.rs`, `look/` | what does the cluster look like, now and some seconds later |
//! | `scrape.rs`, `metrics_page.rs` | what does a node's metrics page say |
//! | `print.rs` | how is a report shown, as text and as JSON |

mod look;
mod metrics_page;
mod print;
mod scrape;

pub use look::{Looking, look};
pub use metrics_page::{NoPage, metrics_page};
pub use print::{Shown, explanation, json, list, text};
pub use scrape::{Sample, Scrape};
