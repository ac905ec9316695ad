//! Compares the report of two pages with `golden/` (`UPDATE_GOLDEN=1` rewrites it), and finds each
//! bottleneck.

use super::figures::Figures;
use super::report::report;
use super::units::{bytes, duration};
use super::verdict::verdict;
use barnabas_doctor::Scrape;
use std::path::Path;

#[test]
fn the_report_of_a_node_whose_disk_is_slow() {
    let (before, after) = (include_str!("golden/before.txt"), include_str!("golden/after.txt"));
    let told = report(1, &Figures::between(&Scrape::parse(before), &Scrape::parse(after)));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/perf/hotspots/golden/report.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &told).expect("the golden report can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(told == golden, "UPDATE_GOLDEN=1 cargo test -p barnabas-tools hotspots rewrites this:\n{told}");
}

/// Ten seconds of a node with two workers, in which this was counted.
fn sentence(counted: &str) -> String {
    let before = "barnabas_uptime_seconds 100\n";
    let page = format!(
        "barnabas_uptime_seconds 110\nbarnabas_worker_busy_seconds_total{{worker=\"0\"}} 0\n\
         barnabas_worker_busy_seconds_total{{worker=\"1\"}} 0\n{counted}"
    );
    verdict(&Figures::between(&Scrape::parse(before), &Scrape::parse(&page)))
}

fn requests(phase: &str, seconds: f64) -> String {
    let labels = format!("{{request=\"Produce\",phase=\"{phase}\"}}");
    format!(
        "barnabas_request_seconds_count{{request=\"Produce\"}} 100\n\
         barnabas_request_phase_seconds_count{labels} 100\nbarnabas_request_phase_seconds_sum{labels} {seconds}\n"
    )
}

fn busy(workers: [f64; 2]) -> String {
    let line = |(worker, seconds): (usize, f64)| {
        format!("barnabas_worker_busy_seconds_total{{worker=\"{worker}\"}} {seconds}\n")
    };
    workers.into_iter().enumerate().map(line).collect()
}

#[test]
fn each_bottleneck_has_its_sentence() {
    assert_eq!(sentence(""), "The client: idle. No request came.");
    let idle = sentence(&(requests("sync", 0.5) + &busy([1.0, 2.0])));
    assert_eq!(
        idle,
        "The client: idle. 0.05 requests were under way on average, and the busiest worker had 20.0 % of its time to do."
    );
    assert!(
        sentence(&requests("wait", 50.0)).starts_with("The client: idle."),
        "waiting for data is no work"
    );
    let alone = sentence(&(requests("queue", 40.0) + &busy([9.5, 2.0])));
    assert_eq!(
        alone,
        "One partition's worker: worker 0 is busy 95.0 % of the time, the others 20.0 % on average; what it owns is asked for most."
    );
    let all = sentence(&(requests("queue", 40.0) + &busy([9.5, 9.0])));
    assert_eq!(all, "The workers: they are busy 92.5 % of the time, all of them.");
    let disk = "barnabas_journal_queue_bytes{log_directory=\"/data\"} 0\n\
                barnabas_journal_write_seconds_sum{log_directory=\"/data\"} 9\n\
                barnabas_journal_write_seconds_count{log_directory=\"/data\"} 1000\n\
                barnabas_journal_round_bytes_sum{log_directory=\"/data\"} 65536000\n";
    let disk = sentence(&(requests("sync", 30.0) + disk));
    assert_eq!(
        disk,
        "The disk's sync: 100.0 % of the requests' time is waiting for it; /data is written 90.0 % of the time, 65.5 kB in 9.0 ms on average."
    );
    let starved = "barnabas_thread_cpu_seconds_total{thread=\"worker-0\"} 10\nbarnabas_thread_runqueue_seconds_total{thread=\"worker-0\"} 10\n";
    let starved = sentence(&(requests("queue", 30.0) + starved));
    assert_eq!(
        starved,
        "The machine's processors: for 50.0 % of the time in which the node's threads could have run, none was free."
    );
    let sockets = sentence(&requests("write", 30.0));
    assert_eq!(
        sockets,
        "Nothing is used up; what Produce requests wait for most is the clients' sockets: answers wait to be taken, or for earlier ones: \
         100.0 % of all requests' time."
    );
}

#[test]
fn restart_between_two_readings_gives_no_negative_numbers() {
    let after = Scrape::parse(include_str!("golden/before.txt"));
    let before = Scrape::parse(include_str!("golden/after.txt"));
    let told = report(1, &Figures::between(&before, &after));
    assert!(!told.contains("-1") && !told.contains("NaN") && !told.contains("inf"), "{told}");
    assert!(report(1, &Figures::between(&Scrape::default(), &Scrape::default())).contains("idle"));
}

#[test]
fn numbers_have_units() {
    assert_eq!(
        [0.0, 1e-6, 0.000_999_4, 0.0015, 0.25, 1.26].map(duration),
        ["0", "1 µs", "999 µs", "1.5 ms", "250.0 ms", "1.3 s"]
    );
    assert_eq!(
        [0.0, 999.0, 1500.0, 2.5e6, 1.25e9].map(bytes),
        ["0 B", "999 B", "1.5 kB", "2.5 MB", "1.25 GB"]
    );
}
