//! `barnabas server`: from the command line to a node that serves, and from a signal to a clean end.
//!
//! The order is what this file is about: settings and directories are judged, and sockets bound, before anything is
//! made or written; directories are locked before they are opened; the image stands before a client is accepted.
//! At the end: no more clients, logs closed and synced, the metadata log closed, then the mark that all of it was.

mod exporter;
mod identity;
mod lifecycle;
mod listeners;
mod membership;
mod memory;
mod signals;
mod start;
mod start_room;
mod stop;
mod threads;
pub mod worker;

use crate::config::logging;
use crate::config::version::VERSION;
use crate::node::Node;
use crate::node::audit;
use crate::node::cluster::authority;
use barnabas_base::seed_maps;
use barnabas_config::NodeConfig;
use barnabas_config::Settings;
use barnabas_metrics::Meter;
use barnabas_metrics::endpoint;
use barnabas_net::Acceptor;
use clap::ArgMatches;
use lifecycle::Lifecycle;
use listeners::Beside;
use listeners::amqp::OwnQueues;
use listeners::console::OwnConsole;
use listeners::handshakes::Handshakes;
use listeners::mq::OwnQueueManager;
use signals::{Signals, supervisor};
use std::error::Error;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use threads::Threads;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

type Failure = Box<dyn Error>;

/// A node whose threads run.
struct Running {
    node: Arc<Node>,
    /// With their listeners' places.
    acceptors: Vec<(usize, Acceptor)>,
    /// Those of controllers' listeners that had to listen before this node could serve.
    accepting: Vec<JoinHandle<()>>,
    lifecycle: Lifecycle,
    threads: Threads,
    beside: Beside,
    /// Where listeners with TLS shake hands.
    handshakes: Option<Handshakes>,
    signals: Signals,
}

/// Runs a node until a signal stops it.
///
/// # Errors
/// Why the node cannot start; what the operator has to put right.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    // Before anything else: until then a signal ends the process without a word.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _entered = runtime.enter();
        Signals::listen()?
    };
    let file = matches.get_one::<String>("file").map(Path::new);
    let overrides = matches.get_many::<String>("override").into_iter().flatten().map(String::as_str);
    let settings = Settings::load(file, overrides, |path| std::fs::read(path))?;
    let config = match file {
        Some(_) => NodeConfig::read(settings)?,
        None => NodeConfig::without_file(settings)?,
    };
    let (broker_config, warnings) = barnabas_config::check_values(&config.settings)?;
    let (levels, format) = (config.settings.get(logging::KEY), config.settings.get(logging::FORMAT));
    let _log = logging::start(levels, format, &broker_config)?;
    let source = file.map_or("no file".to_owned(), |path| path.display().to_string());
    tracing::info!("barnabas {VERSION} starts; configuration={source}");
    seed_maps(u64::from_le_bytes(random_bytes()));
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    authority::check(&broker_config)?;
    // Before anything is made for a start that this refuses.
    audit::Settings::read(&broker_config, config.is_broker)?;
    survive_large_files(&runtime)?;
    match start::start(&config, broker_config, Arc::new(Meter::default()), &runtime, signals)? {
        Some(running) => runtime.block_on(serve(running, file.is_none())),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// A write beyond the limit of file sizes (`ulimit -f`) is to fail with an error, not end the process: a signal that is
/// taken does not.
fn survive_large_files(runtime: &tokio::runtime::Runtime) -> std::io::Result<()> {
    let _entered = runtime.enter();
    // It stays taken when this is dropped.
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

fn random_bytes() -> [u8; 8] {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("invariant: Linux always has random bytes for a running process");
    bytes
}

async fn serve(running: Running, is_first_try: bool) -> Result<ExitCode, Failure> {
    let Running {
        node,
        acceptors,
        accepting: early,
        lifecycle,
        threads,
        beside: Beside { metrics, console, amqp, mq },
        handshakes,
        ..
    } = running;
    let mut signals = running.signals;
    // The start continues past a directory with an unreadable journal. If that directory has the metadata log, the
    // node has to stop, and serves no request, not even for a moment.
    let serves = !node.shutdown.is_wanted();
    let accepting = if serves { let_in(&node, acceptors, metrics, handshakes.as_ref()) } else { Vec::new() };
    let (mut queues, mut manager) = (None, None);
    if serves {
        lifecycle.ready();
        console.iter().for_each(OwnConsole::serves);
        queues = amqp.map(OwnQueues::start).transpose()?;
        manager = mq.map(OwnQueueManager::start).transpose()?;
        supervisor::ready(&say_ready(&node));
        if is_first_try {
            show_first_steps(&node, console.as_ref());
        }
    }
    tokio::select! {
        () = node.shutdown.wanted() => {}
        signal = signals.next() => {
            tracing::info!("stopping by {signal}");
            node.shutdown.ask();
        }
    }
    supervisor::stopping();
    drop((queues, manager));
    let stopping =
        stop::Stopping { node: node.clone(), accepting, accepting_controllers: early, lifecycle, threads };
    node.shutdown.waits_for("its first step");
    let mut stopped = tokio::task::spawn_blocking(move || stopping.stop());
    loop {
        tokio::select! {
            clean = &mut stopped => {
                let is_clean = clean.unwrap_or(false) && !node.shutdown.has_failed();
                return Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE });
            }
            signal = signals.next() => say_stopping(&node, signal),
        }
    }
}

/// A supervisor may signal twice, and a terminal signals a whole group: the stop goes on as it was.
fn say_stopping(node: &Node, signal: &str) {
    let Some((what, since)) = node.shutdown.progress() else { return };
    tracing::info!(
        "{signal} again: {}. SIGKILL would end the node at once; the next start would recover its logs",
        signals::stopping(what, since)
    );
}

/// Accepts clients, and readers of metrics, from now on.
fn let_in(
    node: &Arc<Node>,
    acceptors: Vec<(usize, Acceptor)>,
    metrics_listener: Option<TcpListener>,
    handshakes: Option<&Handshakes>,
) -> Vec<JoinHandle<()>> {
    let metered = metrics_listener
        .map(|listener| tokio::spawn(endpoint::serve(node.workers.metering.reader().clone(), listener)));
    let mut accepting = listeners::open(node, acceptors, handshakes);
    accepting.extend(metered);
    accepting
}

/// What to try on a node that was started without a file: the address, and three commands that work as they stand.
fn show_first_steps(node: &Node, console: Option<&OwnConsole>) {
    let Some((_, address)) = node.identity.listeners.first() else { return };
    let binary = std::env::args().next().unwrap_or_else(|| "barnabas".to_owned());
    let data: Vec<String> =
        node.log_dirs.directories.iter().map(|directory| directory.path.display().to_string()).collect();
    let data = data.join(", ");
    let steps = format!(
        "\nBarnabas listens on {address} (data in {data}; Ctrl-C stops it). In a second shell, try:\n\n  \
         {binary} topics --bootstrap-server {address} --create --topic hello --partitions 3\n  \
         echo 'hello, world' | {binary} console-producer --bootstrap-server {address} --topic hello\n  \
         {binary} console-consumer --bootstrap-server {address} --topic hello --from-beginning --max-messages 1\n"
    );
    // If standard output is closed, the lines are not needed.
    let _ = writeln!(std::io::stdout(), "{steps}");
    if let Some(console) = console {
        let _ = writeln!(std::io::stdout(), "The console is at {}\n", console.url());
    }
}

/// Logs that the node serves, and on which addresses; what it logged but the time.
fn say_ready(node: &Node) -> String {
    let addresses: Vec<String> = node
        .identity
        .listeners
        .iter()
        .map(|(listener, address)| format!("{}://{address}", listener.endpoint.listener))
        .collect();
    let took = node.clock.monotonic().0;
    let serves = format!(
        "node {} of cluster {} serves on {}",
        node.identity.broker_id,
        node.identity.cluster_id,
        addresses.join(", ")
    );
    tracing::info!("{serves} ({took} ms after the start)");
    serves
}
