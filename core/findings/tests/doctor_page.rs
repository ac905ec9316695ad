//! docs/DOCTOR.md: every rule that is judged. `UPDATE_PAGES=1` writes the page.

#![allow(clippy::disallowed_methods, reason = "a test that writes a page")]

use barnabas_findings::{OF_A_NODE, RULES, Rule};
use std::path::Path;

const HEAD: &str = "\
# The doctor

<!-- Written by core/findings/tests/doctor_page.rs from core/findings/src/rules.rs. -->

`barnabas doctor --bootstrap-server HOST:PORT` looks at a cluster twice, some seconds apart (`--interval`), and prints what is wrong: the figure, why it matters, and the command that mends it.
It reads only. It works on one node, on a cluster, and on Apache Kafka clusters through Kafka's protocol. What it could not see is listed as \"not seen\" and never counts as fine:
the figures of a node's metrics come from Barnabas nodes alone, and an answer that the user may not have is missing too. Nodes are asked side by side, and none is waited for
longer than 5 s (`request.timeout.ms` of the client's file): one that does not answer is not asked again. The doctor names what takes longer than 3 s on standard error.

| flag | effect |
|---|---|
| `--interval SECONDS` | time between the two looks (10) |
| `--json` | findings, gaps and silences as one JSON object |
| `--fail-on info\\|warning\\|critical` | exit code 2 if there is a finding of this severity or a higher one; 1 for a doctor that could not look, or had no right to see what a rule of this severity or a higher one needs |
| `--silence FILE` | known findings, a line each: `ID[:SUBJECT] DATE REASON`. They are not shown and do not count until the day has passed. In a subject a blank is written as a hyphen: `T1:topic-scratch 2027-01-31 rebuilt each night` |
| `--threshold ID=NUMBER` | another limit for a finding that has one; may be repeated |
| `--command-config FILE` | the client's settings: TLS, login, timeouts, as for every tool |

`barnabas doctor explain ID` prints a finding's entry of this page, `barnabas doctor explain` the list.

`barnabas doctor size --rate 3000 --handling-ms 20` computes consumers, partitions, disks, network and nodes, and prints the arithmetic. Nothing is measured for it: what was not
given is assumed, and the last line names it. `barnabas doctor bench-disk DIRECTORY` measures the journal's synced writes on that device, in four sizes, with a file of 256 MiB.
`barnabas doctor bench-net --listen HOST:PORT` on one machine and `--to HOST:PORT` on another measure round trips and throughput between them; with `--bootstrap-server`
alone, round trips to each broker. The sentences at the end say what that means for acks and replication ([Sizes and OS limits](operations/sizing.md#measure-the-network)).

A node judges itself all the time: each `doctor.interval.ms` (60 s) it compares two of its metrics pages, on a thread of its own. A finding that two checks in a row have is a line of its log,
WARN or INFO by its severity, and `barnabas_finding{id=\"…\",severity=\"…\",subject=\"…\"} 1` on its metrics page; it is gone with a line once two checks do not have it. `doctor.silence.file`
names a file of known findings, in the form above, which is read at each check. What one node sees: {of_a_node}.

Severities: *critical* costs data or availability now, *warning* will cost data, time or money, *info* works and could be better.

`make doctor-test` plants faults on clusters of Barnabas and Apache Kafka, and runs the printed commands. Not planted there, and tested with made-up facts: {unplanted}.

Records are read by T6, W2, W4 (up to 256 KiB of what a topic took between the looks, of 50 topics) and G3 to G5, G7 (one batch of a partition). They are counted: no key and no value is shown.

Not judged, and why:

| what | why |
|---|---|
| heap, garbage collection, ZooKeeper, `vm.max_map_count`, numbers of I/O and network threads, page-cache ratios | Barnabas has no JVM, maps no files by segment, and starts a worker for each processor. Of an Apache Kafka cluster, its protocol does not show them |
| a window too small for a distant client; one request in flight; a codec that makes the broker compress again | they show on single connections and batches alone, and counting them costs every request. `barnabas hotspots` shows the phase that the time goes to |
| members that miss `max.poll.interval.ms`; static ids that fence each other | a coordinator counts neither. G1 and G3 find what comes of it, and the log of the member names the reason |
| ACLs that are never used | no use is recorded: it would cost every request a note |

";

fn entry(rule: &Rule) -> String {
    let command = if rule.command.is_empty() { "–".to_owned() } else { format!("`{}`", rule.command) };
    let limit = rule.limit.map_or(String::new(), |_| " (`--threshold`)".to_owned());
    format!(
        "## {} {}\n\n{}\n\n| | |\n|---|---|\n| severity | {} |\n| found when | {}{limit} |\n| evidence | {} |\n| command | {} |\n\n",
        rule.id,
        rule.name,
        rule.advice,
        rule.severity.name(),
        rule.threshold_text(),
        rule.evidence,
        command.replace('|', "\\|"),
    )
}

/// What lab/doctor does not plant.
const UNPLANTED: &[&str] = &[
    "C1", "C7", "C8", "C14", "C15", "O1", "O2", "O3", "O4", "O5", "O7", "O8", "D1", "D2", "D3", "D4", "D5",
    "D6", "D12", "D13", "D14", "N1", "N2", "N3", "N4", "N9", "W13", "S3", "S5",
];

fn page() -> String {
    let list =
        RULES.iter().map(|rule| format!("| {} | {} | {} |\n", rule.id, rule.name, rule.severity.name()));
    let list: String = list.collect();
    let entries: String = RULES.iter().map(entry).collect();
    let head = HEAD.replace("{unplanted}", &UNPLANTED.join(", "));
    let head = head.replace("{of_a_node}", &OF_A_NODE.join(", "));
    format!(
        "{head}{} findings:\n\n| id | finding | severity |\n|---|---|---|\n{list}\n{}",
        RULES.len(),
        entries.trim_end()
    ) + "\n"
}

#[test]
fn page_is_as_the_rules_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/DOCTOR.md");
    let page = page();
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(&path, &page).expect("docs/DOCTOR.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/DOCTOR.md differs from the rules: UPDATE_PAGES=1 cargo test -p barnabas-findings page_is_as_the_rules_say"
    );
}
