//! How many commits a second do a thousand groups get that each commit one offset, wait for the answer and commit the next?

use crate::ask::{Wrong, commit, commit_of, coordinator, open_many, percentile_ms};
use barnabas_client::Connection;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub async fn run(
    bootstrap: &str,
    topic: &str,
    groups: usize,
    seconds: f64,
    warm_up: f64,
) -> Result<Value, Wrong> {
    let mut connections = open_many(bootstrap, groups).await?;
    for (number, connection) in connections.iter_mut().enumerate() {
        coordinator(connection, &format!("g-{number}")).await?;
    }
    let from = Instant::now() + Duration::from_secs_f64(warm_up);
    let until = from + Duration::from_secs_f64(seconds);
    let tasks: Vec<_> = connections
        .into_iter()
        .enumerate()
        .map(|(number, connection)| {
            tokio::spawn(one(connection, format!("g-{number}"), topic.to_owned(), from, until))
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.append(&mut task.await??);
    }
    all.sort_unstable();
    Ok(json!({
        "commits": all.len(), "commits_per_s": all.len() as f64 / seconds,
        "p50_ms": percentile_ms(&all, 0.5), "p99_ms": percentile_ms(&all, 0.99), "p999_ms": percentile_ms(&all, 0.999),
    }))
}

/// One group: its commits' latencies, µs, of those that were answered between `from` and `until`.
async fn one(
    mut connection: Connection,
    group: String,
    topic: String,
    from: Instant,
    until: Instant,
) -> Result<Vec<u32>, Wrong> {
    let mut took = Vec::new();
    for offset in 0.. {
        let begun = Instant::now();
        commit(&mut connection, &commit_of(&group, &topic, std::iter::once((0, offset)))).await?;
        let now = Instant::now();
        if now >= until {
            break;
        }
        if now >= from {
            took.push(u32::try_from((now - begun).as_micros())?);
        }
    }
    Ok(took)
}
