//! `producer-perf-test`, as Kafka's `kafka-producer-perf-test`: its flags, its lines.
//!
//! Ours besides: `--producers`, `--spread`, `--json`, `--histogram`, `--closed-loop`. With a `--throughput` latency
//! counts from when a record was meant to be sent (`load` says why); standard error says so.
//!
//! Source: Kafka 4.3 `ProducerPerformance`.

use super::load::{self, Count, Job, Payload, lock};
use super::{cpu_time, metric_lines, producer_metrics};
use crate::command_line::args::{number, switch, text, value};
use crate::command_line::connection::addresses;
use crate::command_line::properties::Properties;
use crate::waiting::reached;
use crate::{ToolError, block_on, say, tell};
use barnabas_client::{ClusterConfig, Counters, PipelineConfig, Spread};
use clap::{Arg, ArgAction, ArgMatches};
use std::time::{Duration, Instant};

const CLIENT_ID: &str = "perf-producer-client";

pub fn flags() -> Vec<Arg> {
    let properties = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("name=value").help(help).num_args(1..).action(ArgAction::Append)
    };
    vec![
        value(
            "bootstrap-server",
            "host:port",
            "A node to begin with; several with commas. Wins over bootstrap.servers",
        ),
        value("topic", "name", "The topic to send to").required(true),
        value("num-records", "n", "How many records").required(true),
        value("record-size", "bytes", "Records of so many random letters"),
        value("payload-file", "path", "Records out of this file of UTF-8 text, drawn at random"),
        value("payload-delimiter", "text", "What stands between the file's records (default: \\n)"),
        switch("payload-monotonic", "Records are the numbers 0, 1, 2 …"),
        value("throughput", "records/sec", "As many records a second at the most; -1: as many as go")
            .required(true)
            .allow_negative_numbers(true),
        properties("command-property", "Configs of the producer: linger.ms=10 batch.size=32768 …"),
        properties("producer-props", "The older name of --command-property"),
        value("command-config", "path", "A file with configs of the producer"),
        value("producer.config", "path", "The older name of --command-config"),
        switch("print-metrics", "Print what the client counted"),
        value("transactional-id", "id", "Not served yet"),
        value("transaction-duration-ms", "ms", "Not served yet"),
        value("warmup-records", "n", "So many records count for the first line of the summary only")
            .allow_negative_numbers(true),
        value("reporting-interval", "ms", "Between two lines (default: 5000)").allow_negative_numbers(true),
        value(
            "producers",
            "n",
            "Ours: so many producers, each with a thread and connections of its own (default: 1)",
        ),
        value(
            "spread",
            "how",
            "Ours: sticky (default, as Kafka's clients), round-robin, random, or one partition's number",
        ),
        switch(
            "closed-loop",
            "Ours: count latency from the sending, as Kafka's tool does, although there is a rate",
        ),
        switch("json", "Ours: a last line of JSON with the figures in full"),
        value("histogram", "path", "Ours: write all latencies as an HDR percentile distribution (.hgrm)"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let job = Job::new(matches)?;
    if job.warmup_records > 0 {
        let first = job.warmup_records;
        say(&format!(
            "Warmup first {first} records. Steady state results will print after the complete test summary."
        ))?;
    }
    if job.rate.is_some() && job.is_open_loop {
        tell(
            "Latency counts from when --throughput meant a record to be sent; --closed-loop counts from its sending.",
        );
    }
    let mut cluster = ClusterConfig::new(&job.config.bootstrap, &job.config.client_id);
    cluster.deadline = job.config.block_max;
    cluster.security = job.config.security.clone();
    block_on(async { Ok(reached("producer-perf-test", &cluster).await?) })?;
    let (cpu, started) = (cpu_time(), Instant::now());
    let count = Count::new(&job, started);
    let ended = send_all(&job, &count, started);
    let cpu = cpu_time() - cpu;
    let now = Instant::now();
    lock(&count.stats).end(now);
    lock(&count.steady).iter_mut().for_each(|steady| steady.end(now));
    let counters = ended?;
    tell_results(matches, &job, &count, &counters, cpu)
}

fn send_all(job: &Job, count: &Count, started: Instant) -> Result<Vec<Counters>, ToolError> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..job.producers)
            .map(|first| {
                scope.spawn(move || {
                    let sent = block_on(load::send(job, count, first, started));
                    if sent.is_err() {
                        load::end(count);
                    }
                    sent
                })
            })
            .collect();
        // A panic in one is a bug and goes on here.
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause)))
            .collect()
    })
}

fn tell_results(
    matches: &ArgMatches,
    job: &Job,
    count: &Count,
    counters: &[Counters],
    cpu: Duration,
) -> Result<(), ToolError> {
    let stats = lock(&count.stats);
    let failed = lock(&count.failed);
    if stats.latencies.count() > 0 {
        say(&stats.total_line())?;
        for steady in lock(&count.steady).iter() {
            say(&steady.total_line())?;
        }
    }
    if matches.get_flag("print-metrics") {
        let metrics = counters.iter().enumerate().flat_map(|(number, counters)| {
            let client_id = match job.producers {
                1 => job.config.client_id.clone(),
                _ => format!("{}-{number}", job.config.client_id),
            };
            producer_metrics(counters, &client_id, stats.elapsed())
        });
        for line in metric_lines(metrics.collect()) {
            say(&line)?;
        }
    }
    if matches.get_flag("json") {
        let steady = lock(&count.steady);
        let told = steady.as_ref().unwrap_or(&stats);
        let acknowledged = stats.latencies.count();
        let line = serde_json::json!({
            "records": acknowledged,
            "failed": failed.records,
            "elapsed_s": told.elapsed().as_secs_f64(),
            "records_per_s": told.records_per_second(),
            "mb_per_s": told.mb_per_second(),
            "latency_from": if job.rate.is_some() && job.is_open_loop { "intended" } else { "send" },
            "avg_ms": told.latencies.average_ms(),
            "min_ms": told.latencies.min_ms(),
            "p50_ms": told.latencies.ms(0.5),
            "p95_ms": told.latencies.ms(0.95),
            "p99_ms": told.latencies.ms(0.99),
            "p999_ms": told.latencies.ms(0.999),
            "p9999_ms": told.latencies.ms(0.9999),
            "max_ms": told.latencies.max_ms(),
            "producers": job.producers,
            "requests": counters.iter().map(|one| one.requests).sum::<u64>(),
            "batches": counters.iter().map(|one| one.batches).sum::<u64>(),
            "retries": counters.iter().map(|one| one.retries).sum::<u64>(),
            "client_cpu_us_per_record": cpu.as_secs_f64() * 1e6 / acknowledged.max(1) as f64,
        });
        say(&line.to_string())?;
    }
    if let Some(path) = text(matches, "histogram") {
        stats.latencies.write(path)?;
    }
    match &failed.first {
        Some(first) => {
            Err(ToolError::Usage(format!("{} records were not sent; the first: {first}", failed.records)))
        }
        None => Ok(()),
    }
}

impl Job {
    fn new(matches: &ArgMatches) -> Result<Self, ToolError> {
        let usage = |text: &str| Err(ToolError::Usage(text.to_owned()));
        let records: i64 = number(matches, "num-records")?.unwrap_or_default();
        let warmup_records = number::<i64>(matches, "warmup-records")?.unwrap_or(0).max(0).unsigned_abs();
        if records <= 0 {
            return usage("--num-records should be greater than zero.");
        }
        let records = records.unsigned_abs();
        if warmup_records >= records {
            return usage(
                "The value for --warmup-records must be strictly fewer than the number of records in the test, \
                 --num-records.",
            );
        }
        let interval = number::<i64>(matches, "reporting-interval")?.unwrap_or(5_000);
        if interval <= 0 {
            return usage("--reporting-interval should be greater than zero.");
        }
        let config = config(matches)?;
        let throughput: f64 = number(matches, "throughput")?.unwrap_or(-1.0);
        if throughput == 0.0 || throughput.is_nan() {
            return usage(
                "--throughput 0 would send one record and then wait for ever: give a rate, or -1 for none",
            );
        }
        let producers = number(matches, "producers")?.unwrap_or(1_u64);
        if !(1..=1_024).contains(&producers) {
            return usage("--producers takes 1 to 1024");
        }
        Ok(Self {
            topic: text(matches, "topic").unwrap_or_default().to_owned(),
            config,
            spread: spread(text(matches, "spread").unwrap_or("sticky"))?,
            payload: payload(matches)?,
            records,
            warmup_records,
            rate: (throughput > 0.0).then_some(throughput),
            is_open_loop: !matches.get_flag("closed-loop"),
            producers,
            interval: Duration::from_millis(interval.unsigned_abs()),
        })
    }
}

fn spread(word: &str) -> Result<Spread, ToolError> {
    match word {
        "sticky" => Ok(Spread::Sticky),
        "round-robin" => Ok(Spread::RoundRobin),
        "random" => Ok(Spread::Random),
        _ => match word.parse::<u32>().ok().and_then(|number| i32::try_from(number).ok()) {
            Some(partition) => Ok(Spread::Only(partition)),
            None => Err(ToolError::Usage(format!(
                "--spread takes sticky, round-robin, random or a partition's number, not '{word}'"
            ))),
        },
    }
}

fn payload(matches: &ArgMatches) -> Result<Payload, ToolError> {
    let (size, path) = (number::<i64>(matches, "record-size")?, text(matches, "payload-file"));
    match (size, path, matches.get_flag("payload-monotonic")) {
        (Some(size), None, false) => match usize::try_from(size) {
            Ok(size @ 1..=0x7fff_ffff) => Ok(Payload::Size(size)),
            _ => Err(ToolError::Usage("--record-size should be greater than zero.".to_owned())),
        },
        (None, Some(path), false) => read_payloads(path, text(matches, "payload-delimiter").unwrap_or("\\n")),
        (None, None, true) => Ok(Payload::Monotonic),
        _ => Err(ToolError::Usage(
            "exactly one of --record-size, --payload-file and --payload-monotonic is needed".to_owned(),
        )),
    }
}

fn read_payloads(path: &str, delimiter: &str) -> Result<Payload, ToolError> {
    let delimiter = if delimiter == "\\n" { "\n" } else { delimiter };
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    say(&format!("Reading payloads from: {}", absolute.display()))?;
    let text = std::fs::read_to_string(path).unwrap_or_default();
    if text.is_empty() || delimiter.is_empty() {
        return Err(ToolError::Usage("File does not exist or empty file provided.".to_owned()));
    }
    let mut lines: Vec<Vec<u8>> = text.split(delimiter).map(|line| line.as_bytes().to_vec()).collect();
    if lines.len() > 1 && lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    say(&format!("Number of records read: {}", lines.len()))?;
    Ok(Payload::Lines(lines))
}

/// Properties: the file's, then those of the command line, then the flag for the address.
fn config(matches: &ArgMatches) -> Result<PipelineConfig, ToolError> {
    let usage = |text: &str| ToolError::Usage(text.to_owned());
    let list = |name: &str| matches.get_many::<String>(name).map(|words| words.cloned().collect::<Vec<_>>());
    let (now, old) = (list("command-property"), list("producer-props"));
    let (file, old_file) = (text(matches, "command-config"), text(matches, "producer.config"));
    let bootstrap = text(matches, "bootstrap-server");
    if bootstrap.is_none() && now.is_none() && old.is_none() && file.is_none() && old_file.is_none() {
        return Err(usage(
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or \
             --command-config must be specified.",
        ));
    }
    if now.is_some() && old.is_some() {
        return Err(usage("--command-property and --producer-props cannot be specified together."));
    }
    if file.is_some() && old_file.is_some() {
        return Err(usage("--command-config and --producer.config cannot be specified together."));
    }
    for (is_given, was, is) in
        [(old.is_some(), "producer-props", "property"), (old_file.is_some(), "producer.config", "config")]
    {
        if is_given {
            say(&format!(
                "Option --{was} has been deprecated and will be removed in a future version. Use --command-{is} instead."
            ))?;
        }
    }
    for flag in ["transactional-id", "transaction-duration-ms"] {
        if text(matches, flag).is_some() {
            return Err(ToolError::Usage(format!(
                "--{flag}: this producer has no transactions yet; leave it out"
            )));
        }
    }
    let mut properties = file.or(old_file).map(Properties::load).transpose()?.unwrap_or_default();
    for word in now.or(old).unwrap_or_default() {
        let pair = word.split_once('=').filter(|(_, value)| !value.is_empty() && !value.contains('='));
        let (name, value) = pair.ok_or_else(|| ToolError::Usage(format!("Invalid property: {word}")))?;
        properties.set(name, value);
    }
    if properties.get("client.id").is_none() {
        properties.set("client.id", CLIENT_ID);
    }
    if let Some(bootstrap) = bootstrap {
        properties.set("bootstrap.servers", bootstrap);
    }
    let mut parsed = PipelineConfig::parse(properties.iter())?;
    properties.warn_of_unknown("producer", |key| !parsed.unknown.iter().any(|unknown| unknown == key));
    let flag = if bootstrap.is_some() { "bootstrap-server" } else { "command-property bootstrap.servers" };
    parsed.config.bootstrap = addresses(flag, &parsed.config.bootstrap)?;
    Ok(parsed.config)
}
