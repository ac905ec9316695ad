//! The metrics page over HTTP, and `bridge status`, which reads it twice.

use crate::config::Config;
use crate::error::BridgeError;
use crate::watch::counters::{Counters, page};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// For one reader of the page.
const READER_TIMEOUT: Duration = Duration::from_secs(2);
/// Of a request.
const REQUEST_BYTES_MAX: usize = 4096;
/// Of a page that is read.
const PAGE_BYTES_MAX: u64 = 4 << 20;
/// Between the two readings that rates come from.
const SAMPLE: Duration = Duration::from_secs(1);

/// Answers one reader after the other, whatever path it asks for.
pub async fn serve(listener: TcpListener, all: Vec<Arc<Counters>>) {
    loop {
        match listener.accept().await {
            // A reader that is slow or gone is no one's trouble.
            Ok((stream, _)) => drop(timeout(READER_TIMEOUT, answer(stream, &all)).await),
            // Out of descriptors, most likely.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(mut stream: TcpStream, all: &[Arc<Counters>]) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 512];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        match stream.read(&mut buffer).await? {
            0 => break,
            count => request.extend_from_slice(&buffer[..count]),
        }
    }
    let body = page(all);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

async fn fetch(listener: &str) -> Result<String, BridgeError> {
    let wrong = |why: String| BridgeError::Io { what: format!("metrics.listener {listener}"), why };
    let reading = async {
        let mut stream = TcpStream::connect(listener).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: bridge\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        stream.take(PAGE_BYTES_MAX).read_to_string(&mut text).await?;
        Ok::<_, std::io::Error>(text)
    };
    match timeout(READER_TIMEOUT, reading).await {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(wrong(format!("{error}. Is the bridge running?"))),
        Err(_) => Err(wrong("no answer".to_owned())),
    }
}

/// Connector → metric → value. The state is a metric whose value is a text.
type Table = BTreeMap<String, BTreeMap<String, String>>;

fn table(text: &str) -> Table {
    let mut table = Table::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("barnabas_bridge_")) {
        let Some((metric, rest)) = line.split_once("{connector=\"") else { continue };
        let (Some((name, _)), Some((labels, value))) = (rest.split_once('"'), rest.rsplit_once("} ")) else {
            continue;
        };
        let row = table.entry(name.to_owned()).or_default();
        let value = match labels.split_once("state=\"") {
            Some((_, state)) => state.trim_end_matches('"').to_owned(),
            None => value.to_owned(),
        };
        row.insert(metric.to_owned(), value);
    }
    table
}

/// What `bridge status` prints.
///
/// # Errors
/// A file without `metrics.listener`, or a listener that does not answer.
pub async fn show(configs: &[Arc<Config>]) -> Result<String, BridgeError> {
    let mut listeners = Vec::new();
    for config in configs {
        let listener = config.metrics_listener.clone().ok_or_else(|| {
            BridgeError::Config(format!("{}: metrics.listener=host:port is missing in its file", config.name))
        })?;
        if !listeners.contains(&listener) {
            listeners.push(listener);
        }
    }
    let (mut before, mut after) = (Table::new(), Table::new());
    for listener in &listeners {
        before.append(&mut table(&fetch(listener).await?));
    }
    sleep(SAMPLE).await;
    for listener in &listeners {
        after.append(&mut table(&fetch(listener).await?));
    }
    Ok(render(&before, &after))
}

const COLUMNS: [&str; 11] = [
    "CONNECTOR",
    "MESSAGES",
    "MSGS/S",
    "REQS/S",
    "DEPTH",
    "OLDEST-MS",
    "UNCOMMITTED",
    "SKIPPED",
    "DEAD",
    "REJECTED",
    "STATE",
];

fn render(before: &Table, after: &Table) -> String {
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    for (name, row) in after {
        let text = |metric: &str| row.get(metric).cloned().unwrap_or_default();
        let known = |metric: &str| Some(text(metric)).filter(|text| text != "-1").unwrap_or("-".to_owned());
        let number = |table: &Table, metric: &str| -> i64 {
            table.get(name).and_then(|row| row.get(metric)).and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        // A connection that was made again counts its requests from nothing.
        let rate = |metric: &str| (number(after, metric) - number(before, metric)).max(0).to_string();
        rows.push([
            name.clone(),
            text("messages_total"),
            rate("messages_total"),
            rate("requests_total"),
            known("depth"),
            known("oldest_ms"),
            text("uncommitted"),
            text("skipped_total"),
            text("dead_letters_total"),
            text("rejected_total"),
            text("state"),
        ]);
    }
    let widths: Vec<usize> =
        (0..COLUMNS.len()).map(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::counters::add;

    #[test]
    fn status_is_read_from_the_page() {
        let counters = Arc::new(Counters::new("a/t", "sink"));
        add(&counters.messages, 5);
        let before = table(&page(std::slice::from_ref(&counters)));
        add(&counters.messages, 7);
        counters.set_state("no \"peer\" answers");
        let text = render(&before, &table(&page(&[counters])));
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(lines.next().map(|line| line.len()), Some(COLUMNS.len()));
        let row = lines.next().expect("a row");
        assert_eq!(row[..6], ["a/t", "12", "7", "0", "-", "-"]);
        assert!(text.contains("no \\\"peer\\\" answers"), "{text}");
    }
}
