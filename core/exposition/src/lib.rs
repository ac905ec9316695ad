//! The metrics page: which metrics there are, what a quantile is, and how they are written.
//!
//! | file | answers |
//! |---|---|
//! | `families` | every metric: name, type, labels, Kafka's name, meaning (docs/METRICS.md) |
//! | `buckets` | into which bucket a value falls, and what sums of buckets say |
//! | `names` | what do public dashboards call them |
//! | `text` | how is that written for Prometheus |
//!
//! It does not know: who counts, in which memory, and when a page is asked for (shell/metrics).

pub mod buckets;
pub mod families;
pub mod names;
pub mod text;
