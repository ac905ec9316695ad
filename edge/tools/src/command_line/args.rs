//! How a flag is declared, read, and refused beside others.
//!
//! Source of the rules: Kafka `CommandLineUtils.checkInvalidArgs`, `checkOneOfArgs`.

use super::properties::Properties;
use crate::{ToolError, tell};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};

/// `--name VALUE`.
pub fn value(name: &'static str, shown: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(shown).help(help).allow_negative_numbers(true)
}

/// `--name`, without a value.
pub fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// `--name VALUE`, any number of times.
pub fn values(name: &'static str, shown: &'static str, help: &'static str) -> Arg {
    value(name, shown, help).action(ArgAction::Append)
}

/// `--name KEY=VALUE`, any number of times.
pub fn pairs(name: &'static str, help: &'static str) -> Arg {
    values(name, "key=value", help)
}

const ACTION: &str = "action";

/// The word that says what the tool does: one of `actions`, which have `|` between them.
pub fn action(actions: &'static str) -> Arg {
    Arg::new(ACTION).value_name(actions).help("What to do").required(true)
}

/// The word of [`action`].
///
/// # Errors
/// It is none of `actions`.
pub fn action_of<'a>(matches: &'a ArgMatches, actions: &str) -> Result<&'a str, ToolError> {
    let word = text(matches, ACTION).unwrap_or_default();
    if actions.split('|').any(|action| action == word) {
        return Ok(word);
    }
    Err(ToolError::Usage(format!("'{word}' is none of {}", actions.replace('|', ", "))))
}

pub fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

pub fn texts<'a>(matches: &'a ArgMatches, name: &str) -> impl Iterator<Item = &'a str> {
    matches.get_many::<String>(name).into_iter().flatten().map(String::as_str)
}

/// # Errors
/// The value is no number, or out of its type's range.
pub fn number<T: std::str::FromStr>(matches: &ArgMatches, name: &str) -> Result<Option<T>, ToolError> {
    let Some(word) = text(matches, name) else { return Ok(None) };
    let parsed = word.parse().map(Some);
    parsed
        .map_err(|_| ToolError::Usage(format!("--{name} takes a number, not '{word}'. Example: --{name} 3")))
}

/// Whether the flag stands on the command line.
pub fn is_given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(ValueSource::CommandLine)
}

/// Those of `names` that stand on the command line.
pub fn given<'a>(matches: &ArgMatches, names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().filter(|name| is_given(matches, name)).collect()
}

/// The one of `names` that is given.
///
/// # Errors
/// None or several of them are given.
pub fn exactly_one<'a>(matches: &ArgMatches, names: &[&'a str]) -> Result<&'a str, ToolError> {
    match given(matches, names)[..] {
        [one] => Ok(one),
        _ => Err(ToolError::Usage(format!("give exactly one of {}", flags(names)))),
    }
}

/// A flag, and the actions that it goes with.
pub type GoesWith<'a> = (&'a str, &'a [&'a str]);

/// # Errors
/// A flag of `table` is given that does not go with `action`.
pub fn check_goes_with(matches: &ArgMatches, action: &str, table: &[GoesWith<'_>]) -> Result<(), ToolError> {
    for (flag, actions) in table {
        if is_given(matches, flag) && !actions.contains(&action) {
            let actions = actions.join(", ");
            return Err(ToolError::Usage(format!("--{flag} goes with {actions}, not with {action}")));
        }
    }
    Ok(())
}

/// # Errors
/// `name` is given, and one of `others` too.
pub fn excludes(matches: &ArgMatches, name: &str, others: &[&str]) -> Result<(), ToolError> {
    if !is_given(matches, name) {
        return Ok(());
    }
    match given(matches, others).first() {
        Some(other) => Err(ToolError::Usage(format!("--{name} cannot be used together with --{other}"))),
        None => Ok(()),
    }
}

/// The flag under its new name or, with a warning, under its old one.
///
/// # Errors
/// Both are given.
pub fn renamed(
    matches: &ArgMatches,
    new: &'static str,
    old: &'static str,
) -> Result<&'static str, ToolError> {
    if !is_given(matches, old) {
        return Ok(new);
    }
    excludes(matches, new, &[old])?;
    tell(&format!("WARN --{old} is deprecated; use --{new}"));
    Ok(old)
}

/// The properties of the file that flag `file` names and, over them, those that flag `words` gives.
///
/// # Errors
/// A file that cannot be read; a word without `=`.
pub fn properties(matches: &ArgMatches, file: &str, words: &str) -> Result<Properties, ToolError> {
    let mut properties = text(matches, file).map(Properties::load).transpose()?.unwrap_or_default();
    properties.add_words(words, texts(matches, words))?;
    Ok(properties)
}

/// "--a, --b and --c".
fn flags(names: &[&str]) -> String {
    let flags: Vec<String> = names.iter().map(|name| format!("--{name}")).collect();
    match &flags[..] {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => flags.concat(),
    }
}
