//! `barnabas config explain`: what becomes of each key here, and why; `… KEY`: all that is known of one. The
//! texts are core/config's.

use barnabas_config::{Settings, keys_text, table_text};
use barnabas_metadata::config::Resource;
use clap::ArgMatches;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// # Errors
/// The file cannot be read, or standard output is gone.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let Some(matches) = matches.subcommand_matches("explain") else { return Ok(ExitCode::FAILURE) };
    let whats = matches.get_many::<String>("what").into_iter().flatten();
    let (files, keys): (Vec<&String>, Vec<&String>) = whats.partition(|what| is_file(what));
    if files.len() > 1 {
        return Err(format!("one file at a time: {} and {}", files[0], files[1]).into());
    }
    let file = files.first().map(Path::new);
    let overrides = matches.get_many::<String>("override").into_iter().flatten().map(String::as_str);
    let settings = Settings::load(file, overrides, |path| std::fs::read(path))?;
    let every_key = matches.get_flag("all") || settings.iter().next().is_none();
    let text = match keys.is_empty() {
        true => table_text(&settings, every_key),
        false => keys_text(&keys, &settings)?,
    };
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        // `config explain | head` is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        done => done.map(|()| ExitCode::SUCCESS).map_err(Into::into),
    }
}

/// Keys have no slash and are no files; what is neither a key nor a file is taken for a file that cannot be read.
fn is_file(what: &str) -> bool {
    let is_key = Resource::ALL.iter().any(|resource| resource.key(what).is_some());
    !is_key && (what.contains('/') || what.ends_with(".properties") || Path::new(what).is_file())
}
