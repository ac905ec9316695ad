//! Every file type × every harm, after a clean stop and after kill −9: found, named, and never served as data?
//!
//! Each cell begins with the same prepared directory (see `damage::prepare`), harms one file, starts the node, reads
//! everything with its checksums, lets producers go on, and starts once more. What may come of it: see `damage::cell`.
//! The node runs as a user without rights where the rig runs as root, so that owners and permissions count.
//!
//! Prints the table, one line for each cell that is bad, and `N passed, N failed, N skipped`.

use barnabas_faults::damage::cell::{self, Outcome};
use barnabas_faults::damage::harm::{self, Harm};
use barnabas_faults::damage::prepare::{node, prepare};
use barnabas_faults::damage::targets::{ROWS, known};
use barnabas_faults::{Trouble, trouble};
use barnabas_harness::binary;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

struct Options {
    place: PathBuf,
    binary: PathBuf,
    overrides: Vec<(String, String)>,
    /// Rows whose name holds this.
    only: Option<String>,
    harm: Option<String>,
    /// A Markdown table, for docs.
    markdown: bool,
    /// Each row with every so many harms only.
    quick: bool,
    /// Shows the node's log of each cell.
    logs: bool,
}

fn options() -> Result<Options, Trouble> {
    let place = std::env::temp_dir().join(format!("barnabas-damage-{}", std::process::id()));
    let mut options = Options {
        place,
        binary: PathBuf::new(),
        overrides: Vec::new(),
        only: None,
        harm: None,
        markdown: false,
        quick: false,
        logs: false,
    };
    let mut named = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| Trouble(format!("{word} needs a value")));
        match word.as_str() {
            "--place" => options.place = value()?.into(),
            "--binary" => named = Some(value()?),
            "--only" => options.only = Some(value()?),
            "--harm" => options.harm = Some(value()?),
            "--markdown" => options.markdown = true,
            "--quick" => options.quick = true,
            "--logs" => options.logs = true,
            "--override" => match value()?.split_once('=') {
                Some((key, value)) => options.overrides.push((key.to_owned(), value.to_owned())),
                None => return trouble("--override needs KEY=VALUE"),
            },
            _ => return trouble(format!("{word}: not known")),
        }
    }
    options.binary = binary(named.as_deref())?;
    Ok(options)
}

/// A row's cells: each harm after a clean stop and after kill −9.
type Cells = Vec<(Harm, [Outcome; 2])>;

fn run() -> Result<bool, Trouble> {
    let options = options()?;
    std::fs::create_dir_all(&options.place)?;
    let begun = Instant::now();
    let mut broker = node(&options.place, options.binary.clone(), options.overrides.clone())?;
    let prepared = prepare(&mut broker, &options.place)?;
    println!("prepared in {:.1} s", begun.elapsed().as_secs_f64());
    let mut table: Vec<(&str, Cells)> = Vec::new();
    let mut bad = Vec::new();
    for (number, row) in ROWS.iter().enumerate() {
        if options.only.as_ref().is_some_and(|only| !row.name.contains(only.as_str())) {
            continue;
        }
        let mut cells = Cells::new();
        for (column, &harm) in harm::ALL.iter().enumerate() {
            let left_out = options.quick && !(number + column).is_multiple_of(4);
            if left_out || options.harm.as_ref().is_some_and(|only| harm.name() != only) {
                continue;
            }
            let mut outcomes = [Outcome::Nothing, Outcome::Nothing];
            for (at, clean) in [true, false].into_iter().enumerate() {
                let outcome = cell::run(&mut broker, &prepared, row, harm, clean)?;
                outcomes[at] = match (outcome, known(row.name, harm, clean)) {
                    (Outcome::Bad(_), Some(why)) => Outcome::Known(why),
                    (outcome, _) => outcome,
                };
                let when = if clean { "clean stop" } else { "kill −9" };
                if options.logs {
                    println!(
                        "--- {} × {} ({when}): {}\n{}",
                        row.name,
                        harm.name(),
                        outcomes[at].name(),
                        broker.process.log()
                    );
                }
                if let Outcome::Bad(what) = &outcomes[at] {
                    bad.push(format!("{} × {} ({when}): {what}", row.name, harm.name()));
                }
            }
            cells.push((harm, outcomes));
        }
        table.push((row.name, cells));
    }
    print_table(&table, options.markdown);
    bad.iter().for_each(|line| println!("BAD {line}"));
    let all = table.iter().flat_map(|(_, cells)| cells).flat_map(|(_, outcomes)| outcomes);
    let done = all.filter(|outcome| **outcome != Outcome::Nothing).count();
    let untold = table.iter().flat_map(|(_, cells)| cells).flat_map(|(_, outcomes)| outcomes);
    let untold = untold.filter(|outcome| matches!(outcome, Outcome::Known(_))).count();
    println!(
        "damage: {done} cells, {untold} of them cannot be told (docs/DAMAGE.md), {} bad, in {:.0} s",
        bad.len(),
        begun.elapsed().as_secs_f64()
    );
    println!("{} passed, {} failed, 0 skipped", done - bad.len(), bad.len());
    Ok(bad.is_empty())
}

/// One line for each row; a cell's two outcomes as one where they agree.
fn print_table(table: &[(&str, Cells)], markdown: bool) {
    if markdown {
        println!(
            "| file |{}",
            harm::ALL.iter().map(|harm| format!(" {} |", harm.name())).collect::<String>()
        );
        println!("|---|{}", "---|".repeat(harm::ALL.len()));
    }
    for (name, cells) in table {
        let shown = cells.iter().map(|(harm, [clean, unclean])| {
            let both = match clean.name() == unclean.name() {
                true => clean.name().to_owned(),
                false => format!("{} / {}", clean.name(), unclean.name()),
            };
            if markdown { format!(" {both} |") } else { format!("\n    {:12} {both}", harm.name()) }
        });
        let shown: String = shown.collect();
        println!("{}", if markdown { format!("| `{name}` |{shown}") } else { format!("{name}{shown}") });
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("damage: {error}");
            ExitCode::FAILURE
        }
    }
}
