//! `top`: nodes, topics, groups, clients and hotspots of a cluster on one screen, again and again. Ours.
//!
//! It reads, and changes nothing. A view asks the cluster for what it shows and no more. Memory is bounded: a view
//! keeps [`sheet::ROWS_MAX`] rows, and the bounds of the questions stand in `collect.rs`.
//!
//! | file | answers |
//! |---|---|
//! | `top/collect.rs`, `top/node.rs` | what is asked of the cluster, and of one node |
//! | `top/facts.rs` | what a look gave |
//! | `top/sheets.rs`, `top/sheet.rs` | which rows these are; how rows are sorted, filtered, shown |
//! | `top/viewing.rs` | what a key changes |
//! | `top/screen.rs` | where which letter stands |
//! | `top/terminal.rs` | keys in, screens out |

mod collect;
mod facts;
mod node;
mod screen;
mod sheet;
mod sheets;
mod terminal;
mod viewing;

use crate::command_line::args::{number, switch, text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::output::table::{is_json, output};
use crate::{ToolError, block_on, say};
use barnabas_client::{Cluster, ClusterConfig};
use clap::{Arg, ArgMatches};
use collect::Collector;
use facts::Before;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use screen::Status;
use serde_json::{Map, Value, json};
use sheet::View;
use sheets::{Snapshot, snapshot};
use std::io::IsTerminal;
use std::time::Duration;
use viewing::Viewing;

const INTERVAL_S: f64 = 5.0;
/// A node that does not answer within this time is left out of a look, unless the file of the client says otherwise.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The screen of `--once`.
const SCREEN: Rect = Rect { x: 0, y: 0, width: 80, height: 24 };

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().required(true),
        command_config(),
        value("interval", "seconds", "Between two looks (default: 5)"),
        value("view", "name", "Where to begin: nodes, topics, groups, clients or hotspots (default: nodes)")
            .value_parser(View::NAMES),
        value("filter", "text", "Show only rows that contain this text"),
        switch("once", "Look twice, print one screen as text, and end"),
        output().help("With --once: json prints all rows of all views, or of the one that --view names"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let interval_s = number::<f64>(matches, "interval")?.unwrap_or(INTERVAL_S);
    if !(0.5..=86_400.0).contains(&interval_s) {
        return Err(ToolError::Usage("--interval takes seconds, from 0.5 to 86400".to_owned()));
    }
    let is_once = matches.get_flag("once");
    if is_json(matches) && !is_once {
        return Err(ToolError::Usage("--output json goes with --once".to_owned()));
    }
    if !is_once && !std::io::stdout().is_terminal() {
        return Err(ToolError::Usage("standard output is no terminal. For scripts: top --once".to_owned()));
    }
    let mut config = cluster_config(matches, "barnabas-top")?;
    let usual = ClusterConfig::new("", "");
    if config.request_timeout == usual.request_timeout {
        config.request_timeout = TIMEOUT;
    }
    if config.deadline == usual.deadline {
        config.deadline = TIMEOUT;
    }
    let status = Status { connect: connect(matches, &config), interval_s, trouble: None };
    let mut viewing = Viewing::new(text(matches, "view").and_then(View::parse).unwrap_or(View::Nodes));
    viewing.filter = text(matches, "filter").unwrap_or_default().to_owned();
    let collector = Collector::new(Cluster::new(config));
    if is_once {
        return once(matches, collector, &viewing, &status);
    }
    terminal::run(collector, viewing, status)
}

/// The flags that the shown commands carry.
fn connect(matches: &ArgMatches, config: &ClusterConfig) -> String {
    let file = text(matches, "command-config").map(|path| format!(" --command-config {path}"));
    format!("--bootstrap-server {}{}", config.bootstrap, file.unwrap_or_default())
}

fn once(
    matches: &ArgMatches,
    mut collector: Collector,
    viewing: &Viewing,
    status: &Status,
) -> Result<(), ToolError> {
    let is_json = is_json(matches);
    let views = match is_json && text(matches, "view").is_none() {
        true => View::ALL.to_vec(),
        false => vec![viewing.view],
    };
    let shown = block_on(async {
        let first = collector.look(&views).await?;
        let (_, before) = snapshot(first, &Before::default(), &views);
        tokio::time::sleep(Duration::from_secs_f64(status.interval_s)).await;
        Ok(snapshot(collector.look(&views).await?, &before, &views).0)
    })?;
    match is_json {
        true => say(&told(&shown, viewing).to_string()),
        false => {
            let mut buffer = Buffer::empty(SCREEN);
            // The foot has the keys, which a script has not.
            let area = Rect { height: SCREEN.height + 1, ..SCREEN };
            buffer.resize(area);
            screen::draw(Some(&shown), viewing, status, area, &mut buffer);
            buffer.resize(SCREEN);
            say(&screen::plain(&buffer))
        }
    }
}

/// A snapshot as JSON.
fn told(shown: &Snapshot, viewing: &Viewing) -> Value {
    let mut sheets = Map::new();
    for (view, sheet) in &shown.sheets {
        let order = sheet.order(viewing.sortings[*view as usize], &viewing.filter);
        let (notes, rows) = (&sheet.rows.notes, sheet.json(&order));
        sheets.insert(view.name().to_owned(), json!({ "rows": rows, "notes": notes }));
    }
    json!({
        "time_ms": shown.taken_ms,
        "cluster": shown.cluster,
        "controller": shown.controller,
        "topics": shown.totals.topics,
        "partitions": shown.totals.partitions,
        "under_replicated": shown.totals.under_replicated,
        "leaderless": shown.totals.leaderless,
        "views": sheets,
        "notes": shown.notes,
    })
}
