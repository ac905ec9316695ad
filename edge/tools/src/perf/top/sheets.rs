//! The five sheets of a look: facts and those of the look before → rows.
//!
//! Pure. Rates come from a node's metrics pages where it has one (Barnabas), else from the ends of logs (any broker of
//! Kafka's); what neither tells is not seen.

use super::super::hotspots::figures::{Figures, share};
use super::super::hotspots::verdict::verdict;
use super::facts::{Before, Facts, Group, Topic};
use super::sheet::{Cell, Column, Form, HIDDEN, REST, ROWS_MAX, Rows, Sheet, Sorting, View};
use barnabas_doctor::Scrape;
use std::collections::{BTreeMap, BTreeSet};

/// Phases of one node that are rows of the hotspots.
const PHASES_MAX: usize = 16;

const fn column(key: &'static str, heading: &'static str, width: u16, form: Form) -> Column {
    Column { key, heading, width, form }
}

const NODES: &[Column] = &[
    column("node", "node", 5, Form::Count),
    column("leaders", "lead", 6, Form::Count),
    column("replicas", "repl", 6, Form::Count),
    column("out_of_sync", "out", 4, Form::Count),
    column("bytes_in_per_second", "in/s", 8, Form::Bytes),
    column("bytes_out_per_second", "out/s", 8, Form::Bytes),
    column("requests_per_second", "req/s", 7, Form::Rate),
    column("cpu", "CPU", 5, Form::Share),
    column("disk_used", "disk", 5, Form::Share),
    column("address", "address", REST, Form::Text),
    column("rack", "rack", HIDDEN, Form::Text),
    column("connections", "connections", HIDDEN, Form::Count),
];
const TOPICS: &[Column] = &[
    column("topic", "topic", REST, Form::Text),
    column("partitions", "part", 5, Form::Count),
    column("replication_factor", "RF", 3, Form::Count),
    column("under_replicated", "under", 6, Form::Count),
    column("leaderless", "dead", 5, Form::Count),
    column("records_in_per_second", "rec/s", 9, Form::Rate),
    column("bytes_in_per_second", "in/s", 8, Form::Bytes),
    column("bytes_out_per_second", "out/s", 8, Form::Bytes),
    column("bytes", "size", 8, Form::Bytes),
];
const GROUPS: &[Column] = &[
    column("group", "group", REST, Form::Text),
    column("kind", "kind", 8, Form::Text),
    column("state", "state", 10, Form::Text),
    column("members", "memb", 5, Form::Count),
    column("lag", "lag", 11, Form::Count),
    column("lag_per_second", "lag/s", 9, Form::Trend),
    column("lag_seconds", "behind", 8, Form::Seconds),
    column("coordinator", "node", 5, Form::Count),
];
const CLIENTS: &[Column] = &[
    column("client_id", "client id", REST, Form::Text),
    column("time", "time", 5, Form::Share),
    column("requests_per_second", "req/s", 8, Form::Rate),
    column("bytes_in_per_second", "in/s", 8, Form::Bytes),
    column("bytes_out_per_second", "out/s", 8, Form::Bytes),
    column("latency_p99_seconds", "p99", 8, Form::Seconds),
    column("members", "memb", 5, Form::Count),
    column("groups", "group", 14, Form::Text),
    column("hosts", "hosts", HIDDEN, Form::Text),
];
const HOTSPOTS: &[Column] = &[
    column("node", "node", 5, Form::Count),
    column("share", "own", 5, Form::Share),
    column("under_way", "under way", 10, Form::Rate),
    column("per_second", "per s", 8, Form::Rate),
    column("mean_seconds", "mean", 9, Form::Seconds),
    column("p50_seconds", "p50", 9, Form::Seconds),
    column("p99_seconds", "p99", 9, Form::Seconds),
    column("phase", "request, phase", REST, Form::Text),
];

/// All that one refresh shows.
#[derive(Debug)]
pub struct Snapshot {
    pub taken_ms: i64,
    pub cluster: String,
    pub nodes: usize,
    pub controller: i32,
    pub totals: super::facts::Totals,
    pub sheets: BTreeMap<View, Sheet>,
    pub notes: Vec<String>,
}

/// How a view is sorted before a key changes it.
pub fn first_sorting(view: View) -> Sorting {
    let (column, is_descending) = match view {
        View::Nodes => (0, false),
        View::Topics => (5, true),
        View::Groups => (4, true),
        View::Clients => (1, true),
        View::Hotspots => (1, true),
    };
    Sorting { column, is_descending }
}

/// The columns of a view.
pub fn columns(view: View) -> &'static [Column] {
    match view {
        View::Nodes => NODES,
        View::Topics => TOPICS,
        View::Groups => GROUPS,
        View::Clients => CLIENTS,
        View::Hotspots => HOTSPOTS,
    }
}

/// The sheets of these views, and what the next look is compared with.
pub fn snapshot(facts: Facts, before: &Before, views: &[View]) -> (Snapshot, Before) {
    let figures = figures(&facts, before);
    let lags: BTreeMap<String, f64> =
        facts.groups.iter().filter_map(|group| Some((group.name.clone(), lag(group, &facts)?))).collect();
    let sheet = |view: &View| {
        let rows = match view {
            View::Nodes => nodes(&facts, &figures),
            View::Topics => topics(&facts, before),
            View::Groups => groups(&facts, before, &lags),
            View::Clients => clients(&facts, &figures),
            View::Hotspots => hotspots(&facts, &figures),
        };
        (*view, Sheet { columns: columns(*view), rows })
    };
    let sheets = views.iter().map(sheet).collect();
    let Facts { taken_ms, cluster, controller, nodes, totals, pages, series, ends, notes, .. } = facts;
    let snapshot = Snapshot { taken_ms, cluster, nodes: nodes.len(), controller, totals, sheets, notes };
    (snapshot, Before { pages, series, ends, lags })
}

/// What happened on each node since the look before. A node that was started in between has nothing to compare.
fn figures(facts: &Facts, before: &Before) -> BTreeMap<i32, Figures> {
    let uptime = |page: &Scrape| page.sum("barnabas_uptime_seconds", &[]);
    let pairs = facts.pages.iter().filter_map(|(id, page)| Some((*id, before.pages.get(id)?, page)));
    let same = pairs.filter(|(_, old, new)| uptime(new) > uptime(old));
    same.map(|(id, old, new)| (id, Figures::between(old, new))).collect()
}

fn nodes(facts: &Facts, figures: &BTreeMap<i32, Figures>) -> Rows {
    let row = |node: &super::facts::Node| {
        let figures = figures.get(&node.id);
        let rate = |of: fn(&Figures) -> f64| Cell::seen(figures.map(|figures| of(figures) / figures.seconds));
        let cpu = |figures: &Figures| figures.threads.iter().map(|thread| thread.cpu_seconds).sum();
        let room = facts.dirs.get(&node.id).filter(|room| room.total > 0.0);
        let page = facts.pages.get(&node.id);
        vec![
            Cell::Number(f64::from(node.id)),
            Cell::count(node.leaders),
            Cell::count(node.replicas),
            Cell::count(node.out_of_sync),
            rate(|figures| figures.bytes_in),
            rate(|figures| figures.bytes_out),
            rate(|figures| figures.requests),
            rate(cpu),
            Cell::seen(room.map(|room| 1.0 - room.usable / room.total)),
            Cell::text(&*node.address),
            Cell::text(&*node.rack),
            Cell::seen(page.map(|page| page.sum("barnabas_connections", &[]))),
        ]
    };
    Rows { rows: facts.nodes.iter().take(ROWS_MAX).map(row).collect(), notes: Vec::new() }
}

/// A counter by topic, over all pages.
fn by_topic<'a>(pages: impl Iterator<Item = &'a Scrape>, name: &str) -> BTreeMap<&'a str, f64> {
    let mut by = BTreeMap::new();
    for sample in pages.flat_map(|page| page.samples(name)) {
        *by.entry(sample.label("topic")).or_default() += sample.value;
    }
    by
}

fn topics(facts: &Facts, before: &Before) -> Rows {
    // The same nodes on both sides: one that joined brings its past along.
    let old = || facts.series.keys().filter_map(|id| before.series.get(id));
    let new = || facts.series.iter().filter(|(id, _)| before.series.contains_key(id)).map(|(_, page)| page);
    let counters = ["messagesin", "bytesin", "bytesout"].map(|name| {
        let name = format!("kafka_server_brokertopicmetrics_{name}_total");
        (by_topic(old(), &name), by_topic(new(), &name))
    });
    let rate = |at: usize, topic: &str| {
        let (old, new) = &counters[at];
        let rise = new.get(topic)? - old.get(topic).copied().unwrap_or(0.0);
        Some(rise.max(0.0) / facts.seconds?)
    };
    let row = |topic: &Topic| {
        let name = &*topic.name;
        vec![
            Cell::text(name),
            Cell::count(topic.partitions),
            Cell::count(topic.replication_factor),
            Cell::count(topic.under_replicated),
            Cell::count(topic.leaderless),
            Cell::seen(appended(facts, before, name).or_else(|| rate(0, name))),
            Cell::seen(rate(1, name)),
            Cell::seen(rate(2, name)),
            Cell::seen(facts.sizes.get(name).copied()),
        ]
    };
    Rows { rows: facts.topics.iter().map(row).collect(), notes: unlisted(facts.totals.topics, "topics") }
}

fn unlisted(all: usize, what: &str) -> Vec<String> {
    let more = all.saturating_sub(ROWS_MAX);
    (more > 0).then(|| format!("not listed: {more} of the {what}")).into_iter().collect()
}

/// Records a second, by the ends of a topic's logs.
fn appended(facts: &Facts, before: &Before, topic: &str) -> Option<f64> {
    let (old, new) = (before.ends.get(topic)?, facts.ends.get(topic)?);
    let rise = new.iter().filter_map(|(partition, end)| Some((end - old.get(partition)?).max(0)));
    Some(rise.sum::<i64>() as f64 / facts.seconds?)
}

/// Of the coordinator's page, or by what is committed.
fn lag(group: &Group, facts: &Facts) -> Option<f64> {
    let page = facts.series.get(&group.coordinator);
    if let Some(sample) = page.and_then(|page| of_group(page, "barnabas_group_lag", &group.name)) {
        return Some(sample);
    }
    let committed = group.committed.as_ref().filter(|committed| !committed.is_empty())?;
    let mut lag = 0;
    for (topic, partitions) in committed {
        for (partition, offset) in partitions {
            lag += (facts.ends.get(topic)?.get(partition)? - offset).max(0);
        }
    }
    Some(lag as f64)
}

fn of_group(page: &Scrape, name: &str, group: &str) -> Option<f64> {
    page.samples(name).iter().find(|sample| sample.label("group") == group).map(|sample| sample.value)
}

fn groups(facts: &Facts, before: &Before, lags: &BTreeMap<String, f64>) -> Rows {
    let row = |group: &Group| {
        let lag = lags.get(&group.name).copied();
        let trend = || Some((lag? - before.lags.get(&group.name)?) / facts.seconds?);
        let page = facts.series.get(&group.coordinator);
        vec![
            Cell::text(&*group.name),
            Cell::text(&*group.kind),
            Cell::text(&*group.state),
            Cell::seen(group.members.as_ref().map(|members| members.len() as f64)),
            Cell::seen(lag),
            Cell::seen(trend()),
            Cell::seen(page.and_then(|page| of_group(page, "barnabas_group_lag_seconds", &group.name))),
            Cell::Number(f64::from(group.coordinator)),
        ]
    };
    let rows = facts.groups.iter().take(ROWS_MAX).map(row).collect();
    Rows { rows, notes: unlisted(facts.groups.len(), "groups") }
}

/// One client id on all nodes.
#[derive(Default)]
struct Client<'a> {
    /// Request time, requests, bytes in and out, each a second, and the largest p99 of a node.
    figures: Option<[f64; 5]>,
    members: usize,
    groups: BTreeSet<&'a str>,
    hosts: BTreeSet<&'a str>,
}

fn clients(facts: &Facts, figures: &BTreeMap<i32, Figures>) -> Rows {
    let mut clients: BTreeMap<&str, Client<'_>> = BTreeMap::new();
    for figures in figures.values() {
        for told in &figures.clients {
            let of = clients.entry(&told.name).or_default().figures.get_or_insert_default();
            for (sum, counted) in
                of.iter_mut().zip([told.seconds, told.requests, told.bytes_in, told.bytes_out])
            {
                *sum += counted / figures.seconds;
            }
            of[4] = of[4].max(told.latency.quantile(0.99));
        }
    }
    for group in &facts.groups {
        for member in group.members.iter().flatten() {
            let client = clients.entry(&member.client_id).or_default();
            client.members += 1;
            client.groups.insert(&group.name);
            client.hosts.insert(&member.host);
        }
    }
    let whole: f64 = figures.values().map(|figures| figures.busy_request_seconds() / figures.seconds).sum();
    let words = |set: &BTreeSet<&str>| set.iter().copied().collect::<Vec<_>>().join(",");
    let row = |(id, client): (&&str, &Client<'_>)| {
        let figure = |at: usize| Cell::seen(client.figures.map(|figures| figures[at]));
        vec![
            Cell::text(*id),
            Cell::seen(client.figures.map(|figures| share(figures[0], whole))),
            figure(1),
            figure(2),
            figure(3),
            figure(4),
            Cell::count(client.members),
            Cell::text(words(&client.groups)),
            Cell::text(words(&client.hosts)),
        ]
    };
    let rows = clients.iter().take(ROWS_MAX).map(row).collect();
    Rows { rows, notes: unlisted(clients.len(), "clients") }
}

fn hotspots(facts: &Facts, figures: &BTreeMap<i32, Figures>) -> Rows {
    let mut rows = Rows::default();
    for (node, figures) in figures {
        rows.notes.push(format!("Node {node}: {}", verdict(figures)));
        let whole = figures.busy_request_seconds();
        rows.rows.extend(figures.phases.iter().take(PHASES_MAX).map(|phase| {
            let times = &phase.times;
            vec![
                Cell::Number(f64::from(*node)),
                Cell::seen((!phase.is_idle()).then(|| share(times.seconds, whole))),
                Cell::Number(times.seconds / figures.seconds),
                Cell::Number(times.count / figures.seconds),
                Cell::Number(times.mean()),
                Cell::Number(times.quantile(0.5)),
                Cell::Number(times.quantile(0.99)),
                Cell::text(format!("{} {}", phase.request, phase.phase)),
            ]
        }));
    }
    if facts.seconds.is_some() && figures.is_empty() {
        rows.notes.push("No node tells where its time goes: Barnabas nodes do".to_owned());
    }
    rows
}

#[cfg(test)]
mod tests;
