//! How many commits a second do a thousand groups get that each commit one offset, wait for the answer and commit the next?

use crate::ask::{Wrong, commit, commit_of, coordinator, open_many, percentile_ms};
use barnabas_client::Connection;
use serde_json::{Value, json};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// One thread of the client is busy with 45,000 commits a second.
const THREADS: usize = 2;

pub fn run(bootstrap: &str, topic: &str, groups: usize, seconds: f64, warm_up: f64) -> Result<Value, Wrong> {
    let all_are_ready = Arc::new(Barrier::new(THREADS));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (bootstrap, topic, ready) =
                (bootstrap.to_owned(), topic.to_owned(), Arc::clone(&all_are_ready));
            let share: Vec<String> =
                (thread..groups).step_by(THREADS).map(|number| format!("g-{number}")).collect();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(part(&bootstrap, &topic, share, &ready, (warm_up, seconds)))
            })
        })
        .collect();
    let mut all = Vec::new();
    for thread in threads {
        all.append(&mut thread.join().map_err(|_| "a thread of the client ended")??);
    }
    all.sort_unstable();
    Ok(json!({
        "commits": all.len(), "commits_per_s": all.len() as f64 / seconds,
        "p50_ms": percentile_ms(&all, 0.5), "p99_ms": percentile_ms(&all, 0.99), "p999_ms": percentile_ms(&all, 0.999),
    }))
}

/// One thread's groups, all at once.
async fn part(
    bootstrap: &str,
    topic: &str,
    groups: Vec<String>,
    ready: &Barrier,
    (warm_up, seconds): (f64, f64),
) -> Result<Vec<u32>, Wrong> {
    let opened = opened(bootstrap, &groups).await;
    // Whoever cannot begin lets the others begin: they end by themselves.
    ready.wait();
    let from = Instant::now() + Duration::from_secs_f64(warm_up);
    let until = from + Duration::from_secs_f64(seconds);
    let both = opened?.into_iter().zip(groups);
    let tasks: Vec<_> = both
        .map(|(connection, group)| tokio::spawn(one(connection, group, topic.to_owned(), from, until)))
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.append(&mut task.await??);
    }
    Ok(all)
}

/// A connection for each group, whose coordinator is there.
async fn opened(bootstrap: &str, groups: &[String]) -> Result<Vec<Connection>, Wrong> {
    let mut connections = open_many(bootstrap, groups.len()).await?;
    for (group, connection) in groups.iter().zip(&mut connections) {
        coordinator(connection, group).await?;
    }
    Ok(connections)
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
