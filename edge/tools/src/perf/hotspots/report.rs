//! The report: the sentence, then the tables, each sorted by its own time.

use super::figures::{Figures, share};
use super::units::{bytes, duration, grouped, percent};
use super::verdict::verdict;

/// Rows of a table; what follows is too little to look at.
const ROWS_MAX: usize = 16;

pub fn report(node: i32, figures: &Figures) -> String {
    let per_second = |count: f64| grouped(count / figures.seconds);
    let mut report = format!(
        "Node {node}, {:.1} s: {} requests/s on {} connections, {} records/s in ({} a batch), {}/s in, {}/s out.\n{}\n",
        figures.seconds,
        per_second(figures.requests),
        figures.connections,
        per_second(figures.records_in),
        grouped(share(figures.records_in, figures.batches)),
        bytes(figures.bytes_in / figures.seconds),
        bytes(figures.bytes_out / figures.seconds),
        verdict(figures)
    );
    report += &phases(figures);
    report += &server(figures);
    report += &threads(figures);
    report += &clients(figures);
    report + &directories(figures)
}

/// Rows under a head; the last column is on the left side, all others on the right.
fn table(title: &str, head: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let left = rows.len().saturating_sub(ROWS_MAX);
    let rows = &rows[..rows.len() - left];
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(head[column].chars().count())
    };
    let line = |cells: Vec<&str>| {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            match column + 1 == cells.len() {
                true => line += &format!("  {cell}"),
                false => line += &format!("  {cell:>width$}", width = width(column)),
            }
        }
        line + "\n"
    };
    let mut text = format!("\n{title}\n{}", line(head.to_vec()));
    rows.iter().for_each(|row| text += &line(row.iter().map(|cell| &**cell).collect()));
    if left > 0 {
        text += &format!("  and {left} more\n");
    }
    text
}

fn phases(figures: &Figures) -> String {
    let whole = figures.busy_request_seconds();
    let rows = figures.phases.iter().map(|phase| {
        let times = &phase.times;
        let own = if phase.is_idle() { "-".to_owned() } else { percent(share(times.seconds, whole)) };
        vec![
            own,
            format!("{:.3}", times.seconds / figures.seconds),
            grouped(times.count / figures.seconds),
            duration(times.mean()),
            duration(times.quantile(0.5)),
            duration(times.quantile(0.99)),
            format!("{} {}", phase.request, phase.phase),
        ]
    });
    let head = ["own", "under way", "per s", "mean", "p50", "p99", "request, phase"];
    table(
        "Requests' time, by phase (wait is for data, a group or the controller, and counts for nothing)",
        &head,
        rows.collect(),
    )
}

fn server(figures: &Figures) -> String {
    let sum = |of: fn(&super::figures::WorkerOf) -> f64| figures.workers.iter().map(of).sum::<f64>();
    let busy = sum(|worker| worker.busy_seconds);
    let writing_back = sum(|worker| worker.write_back_seconds);
    let partitions = (sum(|worker| worker.turns.seconds) - writing_back).max(0.0);
    let mut rows: Vec<(f64, String)> = figures
        .phases
        .iter()
        .filter(|phase| phase.phase == "decide")
        .map(|phase| {
            (phase.times.seconds, format!("{}: reading, checking, sending to the owners", phase.request))
        })
        .collect();
    let decided: f64 = rows.iter().map(|(seconds, _)| seconds).sum();
    rows.push((partitions, "partitions: appending, reading, what storage reports".to_owned()));
    rows.push((writing_back, "writing batches back to segments".to_owned()));
    rows.push((
        (busy - decided - partitions - writing_back).max(0.0),
        "sockets, encoding, the runtime".to_owned(),
    ));
    rows.sort_by(|one, other| other.0.total_cmp(&one.0));
    let all = figures.seconds * figures.workers.len() as f64;
    let rows = rows
        .into_iter()
        .filter(|(seconds, _)| *seconds > 0.0)
        .map(|(seconds, what)| vec![percent(share(seconds, busy)), percent(share(seconds, all)), what]);
    table("Workers' time, by what they did", &["own", "of all", "what"], rows.collect())
}

fn threads(figures: &Figures) -> String {
    let whole: f64 = figures.threads.iter().map(|thread| thread.cpu_seconds).sum();
    let busy = |thread: &str| {
        let worker = thread.strip_prefix("worker-")?;
        figures.workers.iter().find(|known| known.name == worker)
    };
    let shown = figures.threads.iter().filter(|thread| thread.cpu_seconds > figures.seconds * 1e-4);
    let rows = shown.map(|thread| {
        vec![
            percent(share(thread.cpu_seconds, whole)),
            percent(thread.cpu_seconds / figures.seconds),
            percent(thread.queued_seconds / figures.seconds),
            busy(&thread.name)
                .map_or("-".to_owned(), |worker| percent(worker.busy_seconds / figures.seconds)),
            busy(&thread.name).map_or("-".to_owned(), |worker| duration(worker.turns.quantile(0.99))),
            thread.name.clone(),
        ]
    });
    let head = ["own", "CPU", "no CPU free", "busy", "p99 turn", "thread"];
    table("Server time, by thread", &head, rows.collect())
}

fn clients(figures: &Figures) -> String {
    let whole = figures.busy_request_seconds();
    let decided: f64 = figures.clients.iter().map(|client| client.decide_seconds).sum();
    let rows = figures.clients.iter().map(|client| {
        vec![
            percent(share(client.seconds, whole)),
            percent(share(client.decide_seconds, decided)),
            grouped(client.requests / figures.seconds),
            bytes(client.bytes_in / figures.seconds),
            bytes(client.bytes_out / figures.seconds),
            duration(client.latency.quantile(0.5)),
            duration(client.latency.quantile(0.99)),
            client.name.clone(),
        ]
    });
    let head = ["own", "of decide", "per s", "in/s", "out/s", "p50", "p99", "client id"];
    table("Requests' time, by client", &head, rows.collect())
}

fn directories(figures: &Figures) -> String {
    let rows = figures.directories.iter().map(|directory| {
        let (writes, syncs) = (&directory.writes, &directory.syncs);
        vec![
            percent(writes.seconds / figures.seconds),
            grouped(writes.count / figures.seconds),
            bytes(share(directory.write_bytes, writes.count)),
            format!("{:.1}", share(directory.partitions, writes.count)),
            duration(writes.quantile(0.5)),
            duration(writes.quantile(0.99)),
            grouped(syncs.count / figures.seconds),
            duration(syncs.quantile(0.99)),
            directory.path.clone(),
        ]
    });
    let head = [
        "writing",
        "rounds/s",
        "bytes",
        "partitions",
        "p50",
        "p99",
        "segment syncs/s",
        "p99",
        "log directory",
    ];
    table("Log directories: rounds of the journal, and syncs of segments", &head, rows.collect())
}
