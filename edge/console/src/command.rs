//! `barnabas console`: a process of its own, in front of any Kafka cluster.
//!
//! `--command-config` has the keys of Kafka's clients for protection: `security.protocol`, `ssl.*`, `sasl.mechanism`.
//! It must not log in: what the console does, it does as its caller.

use crate::listener::{self, Settings};
use crate::schemas::{Places, Registry};
use crate::v3::timestamps::now_ms;
use barnabas_base::properties;
use barnabas_client::{ClientError, ClusterConfig, Protocol, Security};
use barnabas_tls::{Reload, ServerTls, TlsSettings};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const REQUEST_WITHIN: Duration = Duration::from_secs(10);
const DEADLINE: Duration = Duration::from_secs(15);
/// Files are read so often.
const RELOAD_EVERY: Duration = Duration::from_secs(5);
const MECHANISMS: &[&str] = &["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"];

/// Why `barnabas console` cannot start.
type Failure = Box<dyn std::error::Error>;

/// The subcommand and its flags.
pub fn command() -> Command {
    let value = |name: &'static str, of: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(of).help(help)
    };
    Command::new("console")
        .about("Serves the web console, REST v3 and probes in front of a cluster.")
        .arg(
            value("bootstrap-server", "HOST:PORT", "A broker to begin with; several with commas")
                .required(true),
        )
        .arg(value("listen", "HOST:PORT", "Where to listen for HTTP").default_value("127.0.0.1:8080"))
        .arg(value(
            "command-config",
            "FILE",
            "security.protocol, ssl.*, sasl.mechanism, as for Kafka's clients",
        ))
        .arg(value(
            "hosts",
            "NAME,…",
            "Names by which the console is reached, besides addresses and localhost",
        ))
        .arg(value(
            "advertised-url",
            "URL",
            "How this console alone is reached, where a balancer stands before several: http://node1.example:8080",
        ))
        .arg(value("schemas-dir", "DIR", "Schemas of records with a schema's id: ID.avsc, ID.json, NAME-ID.avsc"))
        .arg(value("schema-registry-url", "URL", "A schema registry, for ids that no file has"))
        .arg(value(
            "schema-registry-config",
            "FILE",
            "basic.auth.user.info, ssl.*, for the schema registry",
        ))
        .arg(value("tls-config", "FILE", "ssl.* of the HTTP listener, as for Kafka's listeners: HTTPS"))
        .arg(
            Arg::new("read-only")
                .long("read-only")
                .action(ArgAction::SetTrue)
                .help("Refuse every request that could change something"),
        )
}

/// Runs until a signal ends the process.
///
/// # Errors
/// A file that cannot be read, a key that is wrong, an address that cannot be listened on.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let file = |flag: &str| matches.get_one::<String>(flag).map(|path| read_properties(path)).transpose();
    let (security, mechanisms) = protection(&file("command-config")?.unwrap_or_default())?;
    let tls = file("tls-config")?.map(|pairs| listener_tls(&pairs)).transpose()?;
    let cluster = reached(text("bootstrap-server"), security);
    let hosts = text("hosts").split(',').map(str::to_owned).collect();
    let listener = listener::bind(text("listen")).map_err(|error| format!("--listen: {error}"))?;
    let is_read_only = matches.get_flag("read-only");
    if let Some(tls) = tls.clone() {
        watch(tls)?;
    }
    let advertised = Some(text("advertised-url")).filter(|url| !url.is_empty()).map(str::to_owned);
    if let Some(url) = &advertised {
        listener::check_advertised(url).map_err(|error| format!("--advertised-url: {error}"))?;
    }
    let schemas = places(
        (text("schemas-dir"), text("schema-registry-url")),
        &file("schema-registry-config")?.unwrap_or_default(),
    )?;
    let settings = Settings {
        hosts,
        advertised,
        cluster,
        mechanisms,
        is_read_only,
        tls,
        standing: None,
        logs: None,
        schemas,
    };
    let console = listener::start(listener, settings)?;
    // Where standard output is closed, the line has no reader.
    let _ = writeln!(std::io::stdout(), "The console is at {} (Ctrl-C stops it)", console.url());
    console.wait();
    Ok(ExitCode::SUCCESS)
}

/// Where schemas are had from.
fn places((directory, url): (&str, &str), pairs: &[(String, String)]) -> Result<Places, Failure> {
    let of = |key: &str| {
        let found = pairs.iter().rev().find(|pair| pair.0 == key);
        found.map(|pair| pair.1.clone())
    };
    let directory = Some(directory).filter(|path| !path.is_empty()).map(PathBuf::from);
    if url.is_empty() {
        return Ok(Places { directory, registry: None });
    }
    let registry = Registry::new(url, of("basic.auth.user.info").as_deref(), of);
    let registry = registry.map_err(|why| format!("--schema-registry-url: {why}"))?;
    Ok(Places { directory, registry: Some(registry) })
}

fn read_properties(path: &str) -> Result<Vec<(String, String)>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
    Ok(properties::pairs(&text).map_err(|error| format!("{path}, {error}"))?)
}

/// The HTTP listener's own TLS.
fn listener_tls(pairs: &[(String, String)]) -> Result<Arc<ServerTls>, Failure> {
    let of = |key: &str| pairs.iter().rev().find(|pair| pair.0 == key).map(|pair| pair.1.clone());
    let tls = TlsSettings::read(of).and_then(|settings| ServerTls::load(settings, false));
    Ok(Arc::new(tls.map_err(|error| format!("--tls-config: {error}"))?))
}

/// Reads the stores again as long as the process runs.
fn watch(tls: Arc<ServerTls>) -> std::io::Result<()> {
    let mut kept = String::new();
    std::thread::Builder::new().name("tls-reload".to_owned()).spawn(move || {
        loop {
            std::thread::sleep(RELOAD_EVERY);
            match tls.reload(now_ms() / 1000) {
                Reload::Unchanged => kept.clear(),
                Reload::Loaded => tracing::info!("the console: new key store in use for new connections"),
                // Said once.
                Reload::Kept(error) if error.to_string() == kept => {}
                Reload::Kept(error) => {
                    kept = error.to_string();
                    tracing::warn!(
                        "the console: the changed key store is not used, the one before stays: {kept}"
                    );
                }
            }
        }
    })?;
    Ok(())
}

/// How a console in a node reaches it: `protocol` is PLAINTEXT or SASL_PLAINTEXT.
///
/// # Errors
/// Another protocol.
pub fn cluster(bootstrap: &str, protocol: &str) -> Result<ClusterConfig, ClientError> {
    Ok(reached(bootstrap, Security::without_login([("security.protocol", protocol)])?))
}

/// Short limits, since a browser waits.
fn reached(bootstrap: &str, security: Security) -> ClusterConfig {
    ClusterConfig {
        request_timeout: REQUEST_WITHIN,
        deadline: DEADLINE,
        security,
        ..ClusterConfig::new(bootstrap, "barnabas-console")
    }
}

/// The protection without a login, and the mechanisms for callers' passwords.
///
/// # Errors
/// A login of the console's own; a value that Kafka would refuse.
fn protection(pairs: &[(String, String)]) -> Result<(Security, Vec<String>), Failure> {
    let given = || pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    if let Some((key, _)) =
        given().find(|(key, _)| key.starts_with("sasl.jaas") || key.starts_with("sasl.login"))
    {
        let why = "the console has no login of its own: each caller logs in as itself, by HTTP basic";
        return Err(format!("{key}: {why}").into());
    }
    let security = Security::without_login(given())?;
    let has_certificate = given().any(|(key, _)| key.starts_with("ssl.keystore."));
    if security.protocol() == Protocol::Ssl && has_certificate {
        let why = "every caller would have the rights of this certificate. Use security.protocol=SASL_SSL";
        return Err(format!("ssl.keystore.*: {why}").into());
    }
    let named = given().rev().find(|pair| pair.0 == "sasl.mechanism").map(|pair| pair.1.trim().to_owned());
    let mechanisms = match named {
        Some(name) if MECHANISMS.contains(&name.as_str()) => vec![name],
        Some(name) => {
            return Err(format!("sasl.mechanism takes {}, not {name}", MECHANISMS.join(", ")).into());
        }
        None => MECHANISMS.iter().map(|name| (*name).to_owned()).collect(),
    };
    Ok((security, mechanisms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Security, Vec<String>), String> {
        protection(&properties::pairs(text).expect("sound")).map_err(|error| error.to_string())
    }

    #[test]
    fn callers_log_in_and_the_console_does_not() {
        let (security, mechanisms) =
            read("# a file\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism = SCRAM-SHA-256\n")
                .expect("sound");
        assert_eq!(security.protocol(), Protocol::SaslPlaintext);
        assert_eq!(mechanisms, ["SCRAM-SHA-256"]);
        assert_eq!(read("").expect("sound").1, MECHANISMS);
        for (text, words) in [
            ("sasl.jaas.config=x required;", "each caller logs in"),
            ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER", "not OAUTHBEARER"),
            ("security.protocol=HTTP", "security.protocol takes"),
        ] {
            let refused = read(text).expect_err(text);
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn flags_are_sound() {
        command().debug_assert();
    }
}
