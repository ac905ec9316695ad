//! What one look at a cluster gave, before it is compared with the look before: the input of the sheets.
//!
//! Plain data. A fact that could not be had is absent, with a sentence in [`Facts::notes`].

use barnabas_doctor::Scrape;
use std::collections::BTreeMap;

/// One look.
#[derive(Debug, Default)]
pub struct Facts {
    /// Of the machine that looks, in milliseconds since 1970.
    pub taken_ms: i64,
    /// Since the look before; `None`: this is the first one.
    pub seconds: Option<f64>,
    pub cluster: String,
    pub controller: i32,
    pub nodes: Vec<Node>,
    /// By name; no more than the sheet shows.
    pub topics: Vec<Topic>,
    pub totals: Totals,
    /// Metrics pages: of Barnabas nodes alone.
    pub pages: BTreeMap<i32, Scrape>,
    /// Those with series by topic and group.
    pub series: BTreeMap<i32, Scrape>,
    /// Log directories by node.
    pub dirs: BTreeMap<i32, Room>,
    /// Bytes of a topic's replicas on all nodes.
    pub sizes: BTreeMap<String, f64>,
    /// Log ends by topic and partition, asked for where a node has no series.
    pub ends: BTreeMap<String, BTreeMap<i32, i64>>,
    pub groups: Vec<Group>,
    pub notes: Vec<String>,
}

#[derive(Debug, Default, Clone)]
pub struct Node {
    pub id: i32,
    pub address: String,
    pub rack: String,
    pub leaders: usize,
    pub replicas: usize,
    /// Replicas on this node that are not in the ISR.
    pub out_of_sync: usize,
}

#[derive(Debug, Default, Clone)]
pub struct Topic {
    pub name: String,
    pub partitions: usize,
    pub replication_factor: usize,
    pub under_replicated: usize,
    pub leaderless: usize,
}

#[derive(Debug, Default, Clone)]
pub struct Totals {
    pub topics: usize,
    pub partitions: usize,
    pub under_replicated: usize,
    pub leaderless: usize,
}

/// All log directories of a node together.
#[derive(Debug, Default, Clone, Copy)]
pub struct Room {
    pub total: f64,
    pub usable: f64,
}

#[derive(Debug, Default, Clone)]
pub struct Group {
    pub name: String,
    pub kind: String,
    pub state: String,
    pub coordinator: i32,
    /// `None`: not asked for.
    pub members: Option<Vec<Member>>,
    /// By topic and partition; `None`: its coordinator's page tells its lag, or it was not asked for.
    pub committed: Option<BTreeMap<String, BTreeMap<i32, i64>>>,
}

#[derive(Debug, Default, Clone)]
pub struct Member {
    pub client_id: String,
    pub host: String,
}

/// What the next look is compared with.
#[derive(Debug, Default)]
pub struct Before {
    pub pages: BTreeMap<i32, Scrape>,
    pub series: BTreeMap<i32, Scrape>,
    pub ends: BTreeMap<String, BTreeMap<i32, i64>>,
    /// By group.
    pub lags: BTreeMap<String, f64>,
}
