//! The command: reads the files, runs their connectors until a signal, and serves their metrics.

use crate::config::{Config, Direction};
use crate::error::BridgeError;
use crate::stop::Stop;
use crate::watch::counters::{Counters, add};
use crate::watch::log::{Level, line};
use crate::watch::status;
use crate::{sink, source};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

/// The command line, below `barnabas`.
pub fn command() -> Command {
    let files = || {
        let about = "Connector files: properties or JSON, as IBM's MQ connectors take them";
        Arg::new("FILE").action(ArgAction::Append).help(about)
    };
    Command::new("bridge")
        .about("Connect message queues (AMQP 1.0, IBM MQ) to topics")
        .args_conflicts_with_subcommands(true)
        .arg(files())
        .subcommand(
            Command::new("status").about("Show what running connectors do").arg(files().required(true)),
        )
}

/// Runs the command.
///
/// # Errors
/// A file that is wrong, or a listener that cannot be opened. Connectors themselves never end it.
pub fn run(matches: &ArgMatches) -> Result<(), BridgeError> {
    let files = |matches: &ArgMatches| -> Vec<String> {
        matches.get_many::<String>("FILE").into_iter().flatten().cloned().collect()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| io("starting", &error))?;
    match matches.subcommand() {
        Some(("status", matches)) => {
            let configs = read(&files(matches))?;
            let text = runtime.block_on(status::show(&configs))?;
            write!(std::io::stdout(), "{text}").map_err(|error| io("standard output", &error))
        }
        _ => {
            let files = files(matches);
            if files.is_empty() {
                return Err(BridgeError::Config("no file is given: barnabas bridge FILE".to_owned()));
            }
            runtime.block_on(serve(read(&files)?))
        }
    }
}

fn io(what: &str, error: &std::io::Error) -> BridgeError {
    BridgeError::Io { what: what.to_owned(), why: error.to_string() }
}

fn read(files: &[String]) -> Result<Vec<Arc<Config>>, BridgeError> {
    let mut configs: Vec<Arc<Config>> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|error| io(file, &error))?;
        let config = Config::parse(&text).map_err(|error| BridgeError::Config(format!("{file}: {error}")))?;
        if configs.iter().any(|other| other.name == config.name) {
            return Err(BridgeError::Config(format!("{file}: another file has the name {}", config.name)));
        }
        configs.push(Arc::new(config));
    }
    Ok(configs)
}

pub(crate) async fn serve(configs: Vec<Arc<Config>>) -> Result<(), BridgeError> {
    // Before anything is started: a port that is in use refuses the start.
    let listeners = bind(&configs).await?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| io("signals", &error))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| io("signals", &error))?;
    let (stopper, stop) = Stop::new();
    let (mut tasks, mut all) = (JoinSet::new(), Vec::new());
    for config in &configs {
        for remark in &config.remarks {
            line(Level::Warn, &config.name, remark);
        }
        for topic in topics(config) {
            let (name, kind) = match &topic {
                Some(topic) => (format!("{}/{topic}", config.name), "sink"),
                None => (config.name.clone(), "source"),
            };
            let counters = Arc::new(Counters::new(&name, kind));
            all.push(counters.clone());
            tasks.spawn(keep_running(config.clone(), topic, counters, stop.clone()));
        }
    }
    let mut pages = JoinSet::new();
    for listener in listeners {
        pages.spawn(status::serve(listener, all.clone()));
    }
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    // The connectors hold the other ends.
    let _ = stopper.send(true);
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            line(Level::Warn, "bridge", &format!("a connector's task ended: {error}"));
        }
    }
    Ok(())
}

/// The listeners of the metrics pages, each once.
async fn bind(configs: &[Arc<Config>]) -> Result<Vec<TcpListener>, BridgeError> {
    let (mut addresses, mut listeners) = (Vec::new(), Vec::new());
    for address in configs.iter().filter_map(|config| config.metrics_listener.as_ref()) {
        if addresses.contains(&address) {
            continue;
        }
        let opened = TcpListener::bind(address).await;
        listeners.push(opened.map_err(|error| io(&format!("metrics.listener={address}"), &error))?);
        addresses.push(address);
    }
    Ok(listeners)
}

/// A sink has a task for each topic.
fn topics(config: &Config) -> Vec<Option<String>> {
    match &config.direction {
        Direction::Source(_) => vec![None],
        Direction::Sink(sink) => sink.topics.iter().cloned().map(Some).collect(),
    }
}

/// Runs a connector again and again until it is to stop.
async fn keep_running(config: Arc<Config>, topic: Option<String>, counters: Arc<Counters>, mut stop: Stop) {
    let mut pause = config.peer.reconnect_min;
    let (mut silence, mut refusal) = (Silence::default(), String::new());
    while !stop.is_due() {
        let started = tokio::time::Instant::now();
        let running = async {
            match &topic {
                None => source::run(&config, &counters, &mut stop).await,
                Some(topic) => sink::run(&config, topic, &counters, &mut stop).await,
            }
        };
        let ended =
            telling(&config, &mut silence, running, |text| line(Level::Warn, &config.name, text)).await;
        let Err(error) = ended else { continue };
        add(&counters.restarts, 1);
        counters.set_state(&error.to_string());
        if started.elapsed() > config.peer.reconnect_max + Duration::from_secs(1) {
            pause = config.peer.reconnect_min;
            refusal.clear();
        }
        let (level, text) = report(&error, pause, config.peer.reconnect_max);
        match level {
            Level::Error if text == refusal => {}
            _ => line(level, &config.name, &text),
        }
        refusal = if matches!(level, Level::Error) { text } else { String::new() };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.wait() => {}
        }
        pause = (pause * 2).min(config.peer.reconnect_max);
    }
}

/// How a run that ended is logged. A refusal has the same text each time.
fn report(error: &BridgeError, pause: Duration, pause_max: Duration) -> (Level, String) {
    match error.cure() {
        Some(cure) => {
            let every = pause_max.as_millis();
            let text = format!(
                "{error}. {cure}. It goes on trying, up to {every} ms apart; this line is not repeated"
            );
            (Level::Error, text)
        }
        None => (Level::Warn, format!("{error}; it tries again in {} ms", pause.as_millis())),
    }
}

/// Between two lines about Kafka.
const SILENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether a try failed.
const LOOK: Duration = Duration::from_millis(200);

/// When the last line about Kafka was written.
#[derive(Debug, Default)]
struct Silence(Option<tokio::time::Instant>);

/// Does `work`, and says meanwhile why requests to Kafka are tried again: at the first time, then once in
/// [`SILENCE`].
async fn telling<T>(
    config: &Config,
    silence: &mut Silence,
    work: impl Future<Output = T>,
    mut say: impl FnMut(&str),
) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(LOOK) => {}
        }
        let Some(trouble) = config.kafka.last_trouble.take() else { continue };
        if silence.0.is_none_or(|last| last.elapsed() >= SILENCE) {
            silence.0 = Some(tokio::time::Instant::now());
            say(&format!("Kafka at {}: {trouble}; it tries again", config.kafka.bootstrap));
        }
    }
}

#[cfg(test)]
mod tests;
