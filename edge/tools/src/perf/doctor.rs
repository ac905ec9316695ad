//! `doctor`: what is wrong with a cluster, with figures, and the command that mends it. Ours; docs/DOCTOR.md.
//!
//! core/findings judges, edge/doctor looks and prints; here are the flags. `doctor/size.rs`: `size`,
//! `bench-disk`; `doctor/net.rs`: `bench-net`.

mod net;
mod size;

use crate::command_line::args::{number, switch, text, texts, value, values};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::{ToolError, block_on, say, tell};
use barnabas_client::{ClientError, Cluster, ClusterConfig};
use barnabas_doctor::{Looking, Pending, Shown, explanation, json, list, look};
use barnabas_findings::{Facts, Limits, Severity, Silences, examine, find};
use clap::{Arg, ArgMatches};
use std::pin::pin;
use std::time::Duration;

const INTERVAL_S: f64 = 10.0;
/// A node that does not answer within this time is "not seen", unless the file of the client says otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);
/// What takes longer is named.
const PATIENCE: Duration = Duration::from_secs(3);
/// The exit code of findings: 1 stays for a doctor that could not look.
const FOUND: u8 = 2;

pub fn flags() -> Vec<Arg> {
    let mut flags = vec![
        Arg::new("action")
            .value_name("explain|size|bench-disk|bench-net")
            .help("Instead of looking at a cluster: what a finding means; how large a cluster must be; what a disk or a network can do"),
        Arg::new("subject").value_name("ID|directory").help("With explain: the finding. With bench-disk: the directory"),
        bootstrap_server(),
        command_config(),
        value("interval", "seconds", "Between the two looks (default: 10). With bench-disk: for each size (default: 3)"),
        switch("json", "Print one JSON object"),
        value("fail-on", "severity", "Exit with code 2 for findings of info, warning or critical and above")
            .value_parser(["info", "warning", "critical"]),
        value("silence", "path", "A file of known findings: ID[:SUBJECT] DATE REASON in each line"),
        values("threshold", "id=number", "Another limit for a finding; may be repeated"),
    ];
    flags.extend(size::flags());
    flags.extend(net::flags());
    flags
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    match text(matches, "action") {
        None => examine_cluster(matches),
        Some("explain") => explain(text(matches, "subject")),
        Some("size") => size::run_size(matches),
        Some("bench-disk") => size::run_bench_disk(matches),
        Some("bench-net") => net::run_bench_net(matches),
        Some(other) => {
            Err(ToolError::Usage(format!("'{other}' is none of explain, size, bench-disk, bench-net")))
        }
    }
}

fn explain(id: Option<&str>) -> Result<(), ToolError> {
    let Some(id) = id else { return say(&list()) };
    let rule =
        find(id).ok_or_else(|| ToolError::Usage(format!("there is no finding {id}. Example: explain C3")))?;
    say(&explanation(rule))
}

fn examine_cluster(matches: &ArgMatches) -> Result<(), ToolError> {
    let interval = number::<f64>(matches, "interval")?.unwrap_or(INTERVAL_S);
    if !(0.1..=86_400.0).contains(&interval) {
        return Err(ToolError::Usage("--interval takes seconds, from 0.1 to 86400".to_owned()));
    }
    let limits = limits(matches)?;
    let silences = silences(matches)?;
    let mut config = cluster_config(matches, "barnabas-doctor")?;
    // The rules know the doctor's own requests by this name.
    "barnabas-doctor".clone_into(&mut config.client_id);
    if config.request_timeout == ClusterConfig::new("", "").request_timeout {
        config.request_timeout = TIMEOUT;
    }
    let (interval, pending) = (Duration::from_secs_f64(interval), Pending::default());
    let looking = Looking { interval, connect: connect(matches, &config), pending: pending.clone() };
    let facts = block_on(async {
        let say = |words: &str| tell(&format!("doctor: waiting for {words}"));
        Ok(telling(look(Cluster::new(config), &looking), &pending, PATIENCE, say).await?)
    })?;
    let report = examine(&facts, &limits);
    let shown = Shown::new(&facts, &report, &limits, &silences);
    let words = if matches.get_flag("json") { json(&shown) } else { barnabas_doctor::text(&shown) };
    say(&words)?;
    let Some(least) = text(matches, "fail-on").and_then(Severity::parse) else { return Ok(()) };
    if shown.worst().is_some_and(|worst| worst >= least) {
        return Err(ToolError::Code(FOUND));
    }
    let forbidden = Vec::from_iter(shown.forbidden(least));
    match forbidden.is_empty() {
        true => Ok(()),
        false => Err(ToolError::Usage(format!(
            "--fail-on {}: the user has no right to what {} look at. Grant it DESCRIBE and DESCRIBE_CONFIGS on the cluster, \
             its topics and groups",
            least.name(),
            forbidden.join(", ")
        ))),
    }
}

/// `looking`, and meanwhile what takes longer than `patience`, each once.
async fn telling(
    looking: impl Future<Output = Result<Facts, ClientError>>,
    pending: &Pending,
    patience: Duration,
    mut say: impl FnMut(&str),
) -> Result<Facts, ClientError> {
    let mut looking = pin!(looking);
    let mut said = String::new();
    loop {
        tokio::select! {
            biased;
            facts = &mut looking => return facts,
            () = tokio::time::sleep(patience / 4) => {}
        }
        if let Some(words) = pending.longer_than(patience).filter(|words| *words != said) {
            say(&words);
            said = words;
        }
    }
}

/// The flags that the printed commands carry.
fn connect(matches: &ArgMatches, config: &ClusterConfig) -> String {
    let file = text(matches, "command-config").map(|path| format!(" --command-config {path}"));
    format!("--bootstrap-server {}{}", config.bootstrap, file.unwrap_or_default())
}

fn limits(matches: &ArgMatches) -> Result<Limits, ToolError> {
    let mut limits = Limits::default();
    for word in texts(matches, "threshold") {
        let parsed = word.split_once('=').and_then(|(id, number)| Some((id, number.parse::<f64>().ok()?)));
        let refused = || ToolError::Usage(format!("--threshold: '{word}' is not ID=NUMBER. Example: C3=20"));
        let (id, number) = parsed.filter(|(_, number)| number.is_finite()).ok_or_else(refused)?;
        limits
            .set(id, number)
            .map_err(|_| ToolError::Usage(format!("--threshold: {id} is no finding that has a limit")))?;
    }
    Ok(limits)
}

fn silences(matches: &ArgMatches) -> Result<Silences, ToolError> {
    let Some(path) = text(matches, "silence") else { return Ok(Silences::default()) };
    let lines = std::fs::read_to_string(path)
        .map_err(|error| ToolError::Usage(format!("--silence: {path} cannot be read: {error}")))?;
    Silences::parse(&lines).map_err(|error| ToolError::Usage(format!("--silence: {path}, {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    fn matches(words: &[&str]) -> ArgMatches {
        Command::new("doctor").args(flags()).get_matches_from([&["doctor"], words].concat())
    }

    #[test]
    fn threshold_of_an_unknown_finding_is_refused() {
        for (word, why) in [
            ("C3", "--threshold: 'C3' is not ID=NUMBER. Example: C3=20"),
            ("C3=many", "--threshold: 'C3=many' is not ID=NUMBER. Example: C3=20"),
            ("T1=2", "--threshold: T1 is no finding that has a limit"),
            ("Z9=2", "--threshold: Z9 is no finding that has a limit"),
        ] {
            let refused = limits(&matches(&["--threshold", word])).expect_err(word).to_string();
            assert_eq!(refused, why);
        }
        let taken = limits(&matches(&["--threshold", "c3=20"])).expect("a limit");
        assert_eq!(taken.of(find("C3").expect("a rule")), 20.0);
    }

    #[tokio::test]
    async fn silent_node_is_named_while_it_is_waited_for() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let mut config = ClusterConfig::new(&listener.local_addr().expect("bound").to_string(), "test");
        config.request_timeout = Duration::from_millis(300);
        let pending = Pending::default();
        let looking = Looking { interval: Duration::ZERO, connect: String::new(), pending: pending.clone() };
        let mut said = Vec::new();
        let patience = Duration::from_millis(20);
        let looked = telling(look(Cluster::new(config), &looking), &pending, patience, |words| {
            said.push(words.to_owned());
        });
        assert!(looked.await.is_err(), "no node answers");
        assert_eq!(said, ["any node (Metadata)"]);
    }

    #[test]
    fn printed_commands_carry_the_clients_file() {
        let flags = ["--bootstrap-server", "h:1,i:2", "--command-config", "/c"];
        let config = ClusterConfig::new("h:1,i:2", "");
        assert_eq!(connect(&matches(&flags), &config), "--bootstrap-server h:1,i:2 --command-config /c");
        assert_eq!(connect(&matches(&flags[..2]), &config), "--bootstrap-server h:1,i:2");
    }
}
