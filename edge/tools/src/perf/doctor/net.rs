//! `doctor bench-net`: what can the path between two machines do, or that to each broker.

use crate::command_line::args::{excludes, number, text, value};
use crate::command_line::connection::cluster_config;
use crate::{ToolError, block_on, say, tell};
use barnabas_client::Cluster;
use barnabas_doctor::{
    BrokerRounds, CONNECTIONS_MAX, Disk, Meaning, NetListener, SECONDS_MAX, bench_brokers, bench_disk,
    bench_net, brokers_text,
};
use clap::{Arg, ArgMatches};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

const SECONDS: u16 = 3;
const CONNECTIONS: usize = 8;
const EXAMPLE: &str = "bench-net takes one of --listen, --to and --bootstrap-server. Example: bench-net --listen 0.0.0.0:9099 on \
     one machine, bench-net --to HOST:9099 on the other";

pub fn flags() -> Vec<Arg> {
    vec![
        value(
            "listen",
            "host:port",
            "With bench-net: be the other side, until interrupted; open to all who reach the port",
        ),
        value("to", "host:port", "With bench-net: measure the path to the machine that listens there"),
        value("seconds", "number", "With bench-net: for each part, 1 to 60 (default: 3)"),
        value("connections", "number", "With bench-net: of the larger flows, 1 to 16 (default: 8)"),
        value("disk", "directory", "With bench-net --to: measure synced writes there too, and compare"),
    ]
}

pub fn run_bench_net(matches: &ArgMatches) -> Result<(), ToolError> {
    excludes(matches, "listen", &["to", "bootstrap-server"])?;
    excludes(matches, "to", &["bootstrap-server"])?;
    excludes(matches, "disk", &["listen", "bootstrap-server"])?;
    let seconds = within(matches, "seconds", SECONDS, SECONDS_MAX)?;
    match (text(matches, "listen"), text(matches, "to"), text(matches, "bootstrap-server")) {
        (Some(address), _, _) => listen(address),
        (_, Some(address), _) => call(matches, address, seconds),
        (_, _, Some(_)) => brokers(matches, seconds),
        _ => Err(ToolError::Usage(EXAMPLE.to_owned())),
    }
}

fn within<N>(matches: &ArgMatches, flag: &str, usual: N, most: N) -> Result<N, ToolError>
where
    N: std::str::FromStr + PartialOrd + From<u8> + std::fmt::Display,
{
    let given = number::<N>(matches, flag)?.unwrap_or(usual);
    if given >= N::from(1) && given <= most {
        return Ok(given);
    }
    Err(ToolError::Usage(format!("--{flag} takes a number from 1 to {most}, not {given}")))
}

fn listen(address: &str) -> Result<(), ToolError> {
    let listener = NetListener::bind(address).map_err(|error| {
        ToolError::Usage(format!("--listen: {address}: {error}. Example: --listen 0.0.0.0:9099"))
    })?;
    let bound = listener.address().map_err(|error| ToolError::Usage(format!("--listen: {error}")))?;
    say(&format!("listening on {bound}; now bench-net --to on the other machine"))?;
    listener.serve(|line| tell(&format!("bench-net: {line}")))
}

fn call(matches: &ArgMatches, address: &str, seconds: u16) -> Result<(), ToolError> {
    let connections = within(matches, "connections", CONNECTIONS, CONNECTIONS_MAX)?;
    let mut run = [0; 8];
    getrandom::fill(&mut run).map_err(|error| ToolError::Usage(format!("no random number: {error}")))?;
    let net = bench_net(address, seconds, connections, u64::from_be_bytes(run))
        .map_err(|error| ToolError::Usage(format!("bench-net: {address}: {error}")))?;
    let disk = text(matches, "disk").map(|directory| {
        bench_disk(Path::new(directory), Duration::from_secs(u64::from(seconds)))
            .map_err(|error| ToolError::Usage(format!("--disk: {directory}: {error}")))
    });
    let disk = disk.transpose()?.map(|bench| Disk::from(&bench));
    let sentences = Meaning { net: &net, disk }.sentences();
    if matches.get_flag("json") {
        let mut shown = net.json();
        shown["disk"] = disk.map_or(serde_json::Value::Null, |disk| {
            json!({
                "writeP50Seconds": disk.write.as_secs_f64(),
                "writeP99Seconds": disk.write_p99.as_secs_f64(),
                "mibPerSecond": disk.mib_s,
            })
        });
        shown["meaning"] = json!(sentences);
        return say(&shown.to_string());
    }
    say(&net.text())?;
    say(&sentences.join("\n"))
}

fn brokers(matches: &ArgMatches, seconds: u16) -> Result<(), ToolError> {
    let config = cluster_config(matches, "barnabas-doctor")?;
    let each = Duration::from_secs(u64::from(seconds));
    let brokers = block_on(async { Ok(bench_brokers(&mut Cluster::new(config), each).await?) })?;
    if matches.get_flag("json") {
        let rows: Vec<_> = brokers.iter().map(BrokerRounds::json).collect();
        return say(&json!({ "brokers": rows, "meaning": BrokerRounds::sentences(&brokers) }).to_string());
    }
    say(&brokers_text(&brokers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::doctor::flags;
    use clap::Command;

    fn refused(words: &[&str]) -> String {
        let words = [&["doctor", "bench-net"], words].concat();
        let matches = Command::new("doctor").args(flags()).get_matches_from(words);
        run_bench_net(&matches).expect_err("refused").to_string()
    }

    #[test]
    fn flags_that_do_not_go_together_are_refused() {
        assert_eq!(refused(&[]), EXAMPLE);
        for (words, why) in [
            (&["--listen", "a:1", "--to", "b:1"][..], "--listen cannot be used together with --to"),
            (
                &["--to", "a:1", "--bootstrap-server", "b:1"],
                "--to cannot be used together with --bootstrap-server",
            ),
            (&["--listen", "a:1", "--disk", "/"], "--disk cannot be used together with --listen"),
            (&["--to", "a:1", "--seconds", "61"], "--seconds takes a number from 1 to 60, not 61"),
            (&["--to", "a:1", "--connections", "0"], "--connections takes a number from 1 to 16, not 0"),
        ] {
            assert_eq!(refused(words), why);
        }
    }

    #[test]
    fn machine_that_does_not_listen_is_an_error_with_its_address() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = port.expect("a port").to_string();
        assert!(refused(&["--to", &address]).starts_with(&format!("bench-net: {address}: ")));
    }
}
