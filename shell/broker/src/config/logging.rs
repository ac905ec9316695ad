//! The node's log: lines on standard error or in a file, and a level for each logger that can be changed while the node
//! runs.
//!
//! Levels are a contract: ERROR wakes someone, WARN is looked at tomorrow, INFO is a change of state.
//!
//! A logger is a module of the program: `barnabas::requests::connection`, `barnabas_net`. Its name stays when the
//! module moves ([`MODULES`]). `root` stands for all others. The level of a logger comes from, in this order:
//! IncrementalAlterConfigs on the resource BROKER_LOGGER (lost with the process, as in Kafka), the environment
//! (`BARNABAS_LOG`, then `RUST_LOG`), `log.level` of the configuration, INFO.
//!
//! | file | answers |
//! |---|---|
//! | `logging/json_lines.rs` | what a line is as JSON |
//! | `logging/log_lines.rs` | that an event is one line |
//! | `logging/log_file.rs`, `logging/rotated_file.rs` | how lines come to `log.file`, when a new file begins |
//!
//! Neighbours: server.rs starts it; requests/cluster/admin.rs and core/api/src/loggers.rs show and change levels.

mod json_lines;
mod log_file;
mod log_lines;
pub mod rotated_file;

use barnabas_api::loggers;
use barnabas_config::ConfigError;
use barnabas_metadata::config::BrokerConfig;
use json_lines::Shape;
use log_file::LogFile;
use log_lines::Lines;
use rotated_file::Files;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock, PoisonError};
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

/// The logger that stands for all that have no level of their own.
const ROOT: &str = "root";
/// The configuration key.
pub const KEY: &str = "log.level";
/// `text`, or `json`: json_lines.rs.
pub const FORMAT: &str = "log.format";
/// Where lines go instead of standard error.
const FILE: &str = "log.file";
const AUDIT_FILE: &str = "audit.log.file";
/// Loggers that `kafka-configs --entity-type broker-loggers` lists, besides `root`: one per part of the node that
/// writes lines.
const LOGGERS: &[&str] = &[
    "barnabas",
    "barnabas::config",
    "barnabas::controller",
    "barnabas::controller::broker_probe",
    "barnabas::controller::producer_id_blocks",
    "barnabas::coordinators",
    "barnabas::coordinators::markers",
    "barnabas::directories",
    "barnabas::full",
    "barnabas::housekeeping",
    "barnabas::log_dirs",
    "barnabas::log_dirs::journal_thread",
    "barnabas::moves",
    "barnabas::node",
    "barnabas::node::cluster_events",
    "barnabas::node::peers",
    "barnabas::node::shutdown",
    "barnabas::node::workers::complaints",
    "barnabas::partition_worker",
    "barnabas::quorum_worker",
    "barnabas::replica",
    "barnabas::requests",
    "barnabas::requests::connection",
    "barnabas::routing",
    "barnabas::routing::share_persister",
    "barnabas::scrub",
    "barnabas::server",
    "barnabas::server::exporter",
    "barnabas::server::lifecycle",
    "barnabas::server::listeners",
    "barnabas::server::worker",
    "barnabas::upkeep",
    "barnabas::upkeep::cleaner",
    "barnabas::upkeep::impairments",
    "barnabas::upkeep::put_aside",
    "barnabas::upkeep::replay",
    "barnabas_metrics",
    "barnabas_net",
];

/// Loggers whose modules have another path than their names say.
const MODULES: &[(&str, &[&str])] = &[
    (
        "barnabas::directories",
        &["barnabas::log_dirs::directories", "barnabas::upkeep::last_life", "barnabas::upkeep::placement"],
    ),
    ("barnabas::full", &["barnabas::log_dirs::full"]),
    ("barnabas::housekeeping", &["barnabas::upkeep::housekeeping"]),
    ("barnabas::moves", &["barnabas::upkeep::mover"]),
    ("barnabas::partition_worker", &["barnabas::worker::partition_worker"]),
    ("barnabas::quorum_worker", &["barnabas::controller::quorum_worker"]),
    ("barnabas::replica", &["barnabas::worker::replica"]),
    ("barnabas::scrub", &["barnabas::upkeep::scrub"]),
];

static LOGGING: OnceLock<Logging> = OnceLock::new();

/// Levels in force and the way to change them.
#[derive(Debug)]
struct Logging {
    levels: Mutex<Levels>,
    handle: reload::Handle<Targets, Registry>,
    file: Option<LogFile>,
}

/// Where a line goes.
#[derive(Debug)]
enum Place {
    Stderr(io::Stderr),
    File(LogFile),
}

impl Write for Place {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stderr(stderr) => stderr.write(line),
            Self::File(file) => file.write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stderr(stderr) => stderr.flush(),
            Self::File(file) => Write::flush(file),
        }
    }
}

/// Writes what still waits for `log.file` when it is dropped, at the end of the process.
#[derive(Debug)]
pub struct Started(());

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(file) = LOGGING.get().and_then(|logging| logging.file.as_ref()) {
            file.flush();
        }
    }
}

/// What was configured, and what was altered since. Bounded: only loggers of [`LOGGERS`] and `root` are altered.
#[derive(Debug, Clone)]
struct Levels {
    configured: Targets,
    altered: BTreeMap<&'static str, LevelFilter>,
}

impl Levels {
    fn new(configured: Targets) -> Self {
        Self { configured, altered: BTreeMap::new() }
    }

    fn in_force(&self) -> Targets {
        let mut targets = self.configured.clone();
        for (&logger, &level) in &self.altered {
            targets = match logger {
                ROOT => targets.with_default(level),
                logger => targets.with_targets(modules_of(logger).into_iter().map(|module| (module, level))),
            };
        }
        targets
    }
}

/// The modules whose lines are a logger's, or those of a part of it.
fn modules_of(logger: &str) -> Vec<String> {
    for (name, modules) in MODULES {
        if let Some(part) = logger.strip_prefix(name).filter(|part| part.is_empty() || part.starts_with("::"))
        {
            return modules.iter().map(|module| format!("{module}{part}")).collect();
        }
    }
    vec![logger.to_owned()]
}

fn level_in(targets: &Targets, logger: &str) -> LevelFilter {
    if logger == ROOT {
        return targets.default_level().unwrap_or(LevelFilter::OFF);
    }
    let levels =
        [LevelFilter::TRACE, LevelFilter::DEBUG, LevelFilter::INFO, LevelFilter::WARN, LevelFilter::ERROR];
    let module = &modules_of(logger)[0];
    let is_written =
        |level: &LevelFilter| level.into_level().is_some_and(|level| targets.would_enable(module, &level));
    levels.into_iter().find(is_written).unwrap_or(LevelFilter::OFF)
}

/// The logger whose lines a module's are: [`modules_of`] turned around.
fn logger_of(module: &str) -> String {
    for (name, modules) in MODULES {
        for of_logger in *modules {
            if let Some(part) =
                module.strip_prefix(of_logger).filter(|part| part.is_empty() || part.starts_with("::"))
            {
                return format!("{name}{part}");
            }
        }
    }
    module.to_owned()
}

/// Where lines go, by the operator's wish; `None`: to standard error.
///
/// # Errors
/// The file cannot be where it is to be, or is the audit log's.
fn file_of(config: &BrokerConfig) -> Result<Option<log_file::Settings>, ConfigError> {
    let Some(file) = config.value(FILE).map(PathBuf::from) else { return Ok(None) };
    let wrong = |problem: String| ConfigError::value(FILE, problem, "log.file=/var/log/barnabas/node.log");
    Files::check(&file).map_err(wrong)?;
    if config.value(AUDIT_FILE).is_some_and(|audit| file.as_os_str() == audit) {
        return Err(wrong(format!("{AUDIT_FILE} names the same file")));
    }
    let number = |key: &str| {
        let value = config.value(key).and_then(|value| value.parse().ok());
        value.expect("invariant: the table has checked that it is a number")
    };
    let (bytes_max, files_max) = (number("log.file.bytes.max"), number("log.files.max"));
    Ok(Some(log_file::Settings { file, bytes_max, files_max }))
}

/// Starts the log. `levels`: [`KEY`]; `format`: [`FORMAT`].
///
/// # Errors
/// `log.level` is no level and no list of `logger=level`; `log.format` is neither of the two; `log.file` cannot be
/// written.
pub fn start(
    levels: Option<&str>,
    format: Option<&str>,
    config: &BrokerConfig,
) -> Result<Started, ConfigError> {
    let shape = match format {
        None | Some("text") => Shape::text(),
        Some("json") => Shape::Json { logger: logger_of },
        Some(other) => {
            return Err(ConfigError::value(FORMAT, format!("'{other}' is neither text nor json"), "json"));
        }
    };
    let has_colours = matches!(shape, Shape::Text(_));
    let from_environment =
        ["BARNABAS_LOG", "RUST_LOG"].iter().find_map(|name| parse(&std::env::var(name).ok()?).ok());
    let configured = levels.map(parse).transpose()?;
    let targets =
        from_environment.or(configured).unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let unwritable =
        |error: io::Error| ConfigError::value(FILE, error.to_string(), "a file that the node may write");
    let file = file_of(config)?.map(LogFile::start).transpose().map_err(unwritable)?;
    let (filter, handle) = reload::Layer::new(targets.clone());
    let has_colours = has_colours && file.is_none() && io::IsTerminal::is_terminal(&io::stderr());
    let to = file.clone();
    let place = move || Lines(to.clone().map_or_else(|| Place::Stderr(io::stderr()), Place::File));
    let lines = fmt::layer()
        .with_writer(place)
        .with_ansi(has_colours)
        .event_format(shape)
        // Where standard error takes nothing more (its disk is full), lines are lost; the node goes on.
        .log_internal_errors(false);
    tracing_subscriber::registry().with(filter).with(lines).init();
    let logging = Logging { levels: Mutex::new(Levels::new(targets)), handle, file };
    // Set once: a second subscriber is refused above.
    let _ = LOGGING.set(logging);
    Ok(Started(()))
}

/// Lines that are not in `log.file`: those that its queue did not take, and those that are on standard error since it
/// could not be written.
pub fn file_losses() -> (u64, u64) {
    let file = LOGGING.get().and_then(|logging| logging.file.as_ref());
    let counts = file.map(LogFile::counts);
    counts.map_or((0, 0), |counts| {
        (counts.dropped.load(Ordering::Relaxed), counts.failed.load(Ordering::Relaxed))
    })
}

/// `info`, or `warn,barnabas::requests::connection=debug`: the part of RUST_LOG's syntax that names loggers and levels.
fn parse(text: &str) -> Result<Targets, ConfigError> {
    let refusal = || {
        ConfigError::value(
            KEY,
            format!(
                "'{text}' is neither a level (error, warn, info, debug, trace) nor a list of logger=level"
            ),
            "info,barnabas::requests::connection=debug",
        )
    };
    let targets: Targets = text.parse().map_err(|_| refusal())?;
    // A word that is no level is read as a logger at its finest level: an easy mistake, not a wish.
    let names_loggers_only = targets.default_level().is_none() && !text.contains('=');
    if names_loggers_only || text.trim().is_empty() {
        return Err(refusal());
    }
    // Loggers alone leave the others at INFO.
    let root = targets.default_level().unwrap_or(LevelFilter::INFO);
    let modules = |(logger, level): (String, LevelFilter)| {
        modules_of(&logger).into_iter().map(move |module| (module, level))
    };
    Ok(targets.into_iter().flat_map(modules).collect::<Targets>().with_default(root))
}

/// Each logger's level in Kafka's spelling.
pub fn shown() -> loggers::Levels {
    let Some(logging) = LOGGING.get() else { return loggers::Levels::new() };
    let levels = logging.levels.lock().unwrap_or_else(PoisonError::into_inner).in_force();
    let all = [ROOT].into_iter().chain(LOGGERS.iter().copied());
    all.map(|logger| (logger, in_kafkas_spelling(level_in(&levels, logger)))).collect()
}

/// Carries out changes that [`loggers::check`] has let pass. They hold until the process ends; `None` takes back what
/// was altered.
/// Returns what changed, in words.
pub fn alter(changes: &[loggers::Change]) -> String {
    let Some(logging) = LOGGING.get().filter(|_| !changes.is_empty()) else { return String::new() };
    let mut levels = logging.levels.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, level) in changes {
        let Some(&logger) = LOGGERS.iter().chain([&ROOT]).find(|logger| *name == **logger) else { continue };
        match level.as_ref().map(|level| of_kafka(level)) {
            Some(level) => levels.altered.insert(logger, level),
            None => levels.altered.remove(logger),
        };
    }
    // The subscriber lives as long as the process.
    let _ = logging.handle.reload(levels.in_force());
    drop(levels);
    let named =
        changes.iter().map(|(name, level)| format!("{name}={}", level.as_deref().unwrap_or("configured")));
    named.collect::<Vec<_>>().join(", ")
}

fn in_kafkas_spelling(level: LevelFilter) -> &'static str {
    match level.into_level() {
        None => "OFF",
        Some(Level::ERROR) => "ERROR",
        Some(Level::WARN) => "WARN",
        Some(Level::INFO) => "INFO",
        Some(Level::DEBUG) => "DEBUG",
        Some(Level::TRACE) => "TRACE",
    }
}

/// FATAL has no counterpart: ERROR takes its lines.
fn of_kafka(level: &str) -> LevelFilter {
    match level {
        "WARN" => LevelFilter::WARN,
        "INFO" => LevelFilter::INFO,
        "DEBUG" => LevelFilter::DEBUG,
        "TRACE" => LevelFilter::TRACE,
        _ => LevelFilter::ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_has_the_name_of_its_logger() {
        for logger in LOGGERS {
            assert_eq!(logger_of(&modules_of(logger)[0]), *logger);
        }
        assert_eq!(
            logger_of("barnabas::worker::partition_worker::upkeep"),
            "barnabas::partition_worker::upkeep"
        );
    }

    #[test]
    fn altered_level_hides_the_configured_one_until_it_is_removed() {
        let mut levels = Levels::new(parse("warn,barnabas::requests::connection=debug").expect("a filter"));
        let shown = |levels: &Levels| {
            [ROOT, "barnabas", "barnabas::requests::connection"]
                .map(|name| level_in(&levels.in_force(), name).to_string())
        };
        assert_eq!(shown(&levels), ["warn", "warn", "debug"]);
        levels.altered.insert("barnabas", LevelFilter::TRACE);
        assert_eq!(shown(&levels), ["warn", "trace", "debug"], "the longer name wins");
        levels.altered.insert(ROOT, LevelFilter::ERROR);
        levels.altered.remove("barnabas");
        assert_eq!(shown(&levels), ["error", "error", "debug"]);
    }

    #[test]
    fn filter_without_a_root_level_keeps_info() {
        assert_eq!(level_in(&parse("barnabas_net=trace").expect("a filter"), ROOT), LevelFilter::INFO);
        for wrong in ["loud", "", "info,barnabas=loud"] {
            let refusal = parse(wrong).expect_err(wrong).to_string();
            assert!(refusal.contains(KEY) && refusal.contains(wrong), "{refusal}");
        }
    }

    #[test]
    fn every_listed_logger_names_a_module() {
        let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for module in LOGGERS.iter().flat_map(|logger| modules_of(logger)) {
            let path = module.strip_prefix("barnabas::").map(|module| module.replace("::", "/"));
            assert!(path.is_none_or(|path| src.join(path + ".rs").exists()), "{module}");
        }
        assert!(MODULES.iter().all(|(logger, _)| LOGGERS.contains(logger)));
    }

    /// The files below `dir` whose code writes lines, tests left out.
    fn writers(dir: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(dir).expect("a folder") {
            let path = entry.expect("an entry").path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
            if path.is_dir() && !is_test {
                writers(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs") && !is_test {
                let text = std::fs::read_to_string(&path).expect("a source");
                let levels = ["error", "warn", "info", "debug", "trace"];
                let writes = levels.iter().any(|level| text.contains(&format!("tracing::{level}!(")));
                found.extend(writes.then_some(path));
            }
        }
    }

    #[test]
    fn every_module_that_writes_lines_has_a_listed_logger() {
        let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        writers(&src, &mut found);
        assert!(found.len() > 50, "the sources are read: {found:?}");
        // `barnabas` covers everything: a module needs a logger of its own part.
        let listed = LOGGERS.iter().filter(|logger| **logger != "barnabas");
        let listed: Vec<String> = listed.flat_map(|logger| modules_of(logger)).collect();
        for path in found {
            let path = path.strip_prefix(&src).expect("below src").with_extension("");
            let module = format!("barnabas::{}", path.display().to_string().replace('/', "::"));
            let covers = |logger: &String| {
                module
                    .strip_prefix(logger.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            };
            assert!(listed.iter().any(covers), "no logger of LOGGERS stands for {module}");
        }
    }

    #[test]
    fn a_logger_whose_module_moved_keeps_its_name() {
        let mut levels =
            Levels::new(parse("barnabas::moves=debug,barnabas::replica::isr=warn").expect("a filter"));
        let is_written =
            |levels: &Levels, module: &str, level: Level| levels.in_force().would_enable(module, &level);
        assert!(is_written(&levels, "barnabas::upkeep::mover::pace", Level::DEBUG));
        assert!(!is_written(&levels, "barnabas::worker::replica::isr", Level::INFO));
        assert!(is_written(&levels, "barnabas::worker::replica", Level::INFO));
        levels.altered.insert("barnabas::moves", LevelFilter::ERROR);
        assert!(!is_written(&levels, "barnabas::upkeep::mover", Level::WARN));
        assert_eq!(level_in(&levels.in_force(), "barnabas::moves"), LevelFilter::ERROR);
    }
}
