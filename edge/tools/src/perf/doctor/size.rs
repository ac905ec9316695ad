//! `doctor size` and `doctor bench-disk`: how large must a cluster be, and what can a device do.

use crate::command_line::args::{is_given, number, text, value};
use crate::{ToolError, say};
use barnabas_doctor::bench_disk;
use barnabas_findings::{Load, Size, size};
use clap::{Arg, ArgMatches};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Per size of a write.
const EACH_S: f64 = 3.0;
/// The flags that have an assumption where they are left out.
const ASSUMED: [&str; 11] = [
    "record-bytes",
    "handling-ms",
    "retention-hours",
    "replication-factor",
    "groups",
    "peak",
    "compression",
    "headroom",
    "partition-mib",
    "network-mib",
    "disk-gib",
];

pub fn flags() -> Vec<Arg> {
    vec![
        value("rate", "records/s", "With size: records a second, on average"),
        value("record-bytes", "bytes", "With size: bytes of a record (default: 1000)"),
        value("handling-ms", "ms", "With size: what a consumer takes for a record (default: 1)"),
        value("retention-hours", "hours", "With size: how long records are kept (default: 168)"),
        value("replication-factor", "number", "With size: replicas of a partition (default: 3)"),
        value("groups", "number", "With size: groups that read everything (default: 1)"),
        value("peak", "ratio", "With size: the busiest rate by the average (default: 2)"),
        value("compression", "ratio", "With size: compressed by uncompressed bytes (default: 1)"),
        value("headroom", "share", "With size: share of the disks that stays free (default: 0.2)"),
        value("partition-mib", "MiB/s", "With size: what one partition takes (default: 10)"),
        value("network-mib", "MiB/s", "With size: a node's network, each way (default: 1192, 10 Gbit/s)"),
        value("disk-gib", "GiB", "With size: disks of a node (default: as large as they must be)"),
    ]
}

pub fn run_size(matches: &ArgMatches) -> Result<(), ToolError> {
    let load = load(matches)?;
    let size = size(&load).map_err(|_| {
        ToolError::Usage("no thousand nodes carry this: give them larger disks or networks".to_owned())
    })?;
    if matches.get_flag("json") {
        return say(&as_json(&size));
    }
    for line in &size.lines {
        say(line)?;
    }
    let assumed: Vec<String> =
        ASSUMED.iter().filter(|flag| !is_given(matches, flag)).map(|flag| format!("--{flag}")).collect();
    if assumed.is_empty() { Ok(()) } else { say(&format!("assumed, not measured: {}", assumed.join(" "))) }
}

fn load(matches: &ArgMatches) -> Result<Load, ToolError> {
    let Some(rate) = number::<f64>(matches, "rate")? else {
        return Err(ToolError::Usage(
            "size needs --rate. Example: size --rate 3000 --handling-ms 20".to_owned(),
        ));
    };
    let usual = Load::default();
    let get = |flag: &str, usual: f64| number::<f64>(matches, flag).map(|given| given.unwrap_or(usual));
    let load = Load {
        rate,
        record_bytes: get("record-bytes", usual.record_bytes)?,
        handling_ms: get("handling-ms", usual.handling_ms)?,
        retention_h: get("retention-hours", usual.retention_h)?,
        replication: number(matches, "replication-factor")?.unwrap_or(usual.replication),
        groups: number(matches, "groups")?.unwrap_or(usual.groups),
        peak: get("peak", usual.peak)?,
        compression: get("compression", usual.compression)?,
        headroom: get("headroom", usual.headroom)?,
        partition_mib_s: get("partition-mib", usual.partition_mib_s)?,
        network_mib_s: get("network-mib", usual.network_mib_s)?,
        disk_gib: number(matches, "disk-gib")?,
    };
    let positive =
        [load.rate, load.record_bytes, load.peak, load.compression, load.partition_mib_s, load.network_mib_s];
    let is_sound = positive.iter().all(|number| *number > 0.0 && number.is_finite())
        && load.replication >= 1
        && [load.handling_ms, load.retention_h].iter().all(|number| *number >= 0.0 && number.is_finite())
        && (0.0..1.0).contains(&load.headroom);
    if is_sound {
        return Ok(load);
    }
    let rule = "size takes numbers above 0, --headroom from 0 to below 1, --replication-factor from 1";
    Err(ToolError::Usage(rule.to_owned()))
}

fn as_json(size: &Size) -> String {
    json!({
        "consumers": size.consumers,
        "partitions": size.partitions,
        "nodes": size.nodes,
        "diskBytes": size.disk_bytes.round(),
        "diskBytesNode": size.disk_bytes_node.round(),
        "networkInBytesPerSecond": size.network_in.round(),
        "networkOutBytesPerSecond": size.network_out.round(),
        "arithmetic": size.lines,
    })
    .to_string()
}

pub fn run_bench_disk(matches: &ArgMatches) -> Result<(), ToolError> {
    let Some(directory) = text(matches, "subject") else {
        return Err(ToolError::Usage(
            "bench-disk needs a directory. Example: bench-disk /var/lib/barnabas".to_owned(),
        ));
    };
    let seconds = number::<f64>(matches, "interval")?.unwrap_or(EACH_S);
    if !(0.0..=3600.0).contains(&seconds) {
        return Err(ToolError::Usage("--interval takes seconds, from 0 to 3600".to_owned()));
    }
    let bench = bench_disk(Path::new(directory), Duration::from_secs_f64(seconds))
        .map_err(|error| ToolError::Usage(format!("bench-disk: {directory}: {error}")))?;
    say(&bench.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::doctor::flags;
    use clap::Command;

    fn matches(words: &[&str]) -> ArgMatches {
        Command::new("doctor").args(flags()).get_matches_from([&["doctor", "size"], words].concat())
    }

    #[test]
    fn load_is_what_the_flags_say() {
        let taken =
            load(&matches(&["--rate", "3000", "--handling-ms", "20", "--groups", "0"])).expect("a load");
        assert_eq!(taken, Load { rate: 3000.0, handling_ms: 20.0, groups: 0, ..Load::default() });
    }

    #[test]
    fn load_without_rate_or_with_nonsense_is_refused() {
        let rule = "size takes numbers above 0, --headroom from 0 to below 1, --replication-factor from 1";
        for (words, why) in [
            (&[][..], "size needs --rate. Example: size --rate 3000 --handling-ms 20"),
            (&["--rate", "0"], rule),
            (&["--rate", "1", "--headroom", "1"], rule),
            (&["--rate", "1", "--replication-factor", "0"], rule),
            (&["--rate", "inf"], rule),
        ] {
            assert_eq!(load(&matches(words)).expect_err(why).to_string(), why);
        }
    }
}
