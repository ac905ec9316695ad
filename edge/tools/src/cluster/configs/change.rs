//! What is to be set and removed.
//!
//! Source: Kafka `ConfigCommand.parseConfigsToBeAdded`, `alterConfig`.

use super::entities::Entities;
use crate::ToolError;
use crate::command_line::args::{excludes, text, texts};
use crate::command_line::properties::Properties;
use clap::ArgMatches;

pub const SCRAM: [&str; 2] = ["SCRAM-SHA-256", "SCRAM-SHA-512"];
const QUOTAS: [&str; 4] =
    ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"];
const IP_QUOTAS: [&str; 1] = ["connection_creation_rate"];

/// Keys to set, with their values; keys to remove.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub set: Vec<(String, String)>,
    pub delete: Vec<String>,
}

impl Change {
    /// # Errors
    /// Nothing to change; a word that is no `key=value`; a key with letters that no key has.
    pub fn read(matches: &ArgMatches) -> Result<Self, ToolError> {
        excludes(matches, "add-config", &["add-config-file"])?;
        let mut change = Self::default();
        if let Some(path) = text(matches, "add-config-file") {
            for (key, value) in Properties::load(path)?.iter() {
                change.set(key, value);
            }
        }
        for entry in text(matches, "add-config").into_iter().flat_map(entries) {
            let Some((key, value)) = entry.split_once('=') else {
                return Err(ToolError::Usage(format!(
                    "--add-config: '{entry}' is not in the format key=val. Example: --add-config retention.ms=3600000"
                )));
            };
            change.set(key.trim(), value.replace(['[', ']'], "").trim());
        }
        let keys = texts(matches, "delete-config").flat_map(|word| word.split(','));
        change.delete = keys.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()).collect();
        if change == Self::default() {
            return Err(ToolError::Usage(
                "--alter needs --add-config, --add-config-file or --delete-config. Example: --add-config retention.ms=3600000"
                    .to_owned(),
            ));
        }
        // As Kafka's tool, and the colons in the names of our loggers.
        let is_of_key = |letter: char| letter.is_ascii_alphanumeric() || "$._-:".contains(letter);
        match change.set.iter().find(|(key, _)| !key.chars().all(is_of_key)) {
            Some((key, _)) => Err(ToolError::Usage(format!("no config has a key such as '{key}'"))),
            None => Ok(change),
        }
    }

    /// The last value of a key holds.
    fn set(&mut self, key: &str, value: &str) {
        self.set.retain(|known| known.0 != key);
        self.set.push((key.to_owned(), value.to_owned()));
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        self.set.iter().map(|(key, _)| key.as_str()).chain(self.delete.iter().map(String::as_str))
    }

    /// Of users, clients or addresses: whether SCRAM credentials are to be changed, or else quotas.
    ///
    /// # Errors
    /// Keys that the entities do not have, or both at once.
    pub fn of_credentials(&self, entities: &Entities) -> Result<bool, ToolError> {
        let refused = |why: String| Err(ToolError::Usage(why));
        let of_ips = entities.first().quota == "ip";
        let quotas: &[&str] = if of_ips { &IP_QUOTAS } else { &QUOTAS };
        let has_scram = entities.is_of_users();
        let is_known = |key: &&str| quotas.contains(key) || has_scram && SCRAM.contains(key);
        let unknown: Vec<&str> = self.keys().filter(|key| !is_known(key)).collect();
        if !unknown.is_empty() {
            let known: Vec<&str> = quotas.iter().chain(SCRAM.iter().filter(|_| has_scram)).copied().collect();
            let words: Vec<&str> = entities.kinds.iter().map(|kind| kind.words).collect();
            return refused(format!(
                "{} have no {}; they have {}",
                words.join(" and "),
                unknown.join(", "),
                known.join(", ")
            ));
        }
        let credentials = self.keys().filter(|key| SCRAM.contains(key)).count();
        if credentials == 0 {
            return Ok(false);
        }
        if entities.name().is_none_or(str::is_empty) {
            return refused("a SCRAM credential is a user's own: give the user's name".to_owned());
        }
        if credentials != self.keys().count() {
            return refused(
                "quotas and SCRAM credentials cannot be changed at once: call the tool twice".to_owned(),
            );
        }
        Ok(true)
    }
}

/// Splits at commas outside brackets.
fn entries(word: &str) -> Vec<&str> {
    let (mut entries, mut from, mut is_bracketed) = (Vec::new(), 0, false);
    for (at, letter) in word.char_indices() {
        match letter {
            '[' => is_bracketed = true,
            ']' => is_bracketed = false,
            ',' if !is_bracketed => {
                entries.push(&word[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    entries.push(&word[from..]);
    entries.into_iter().map(str::trim).filter(|entry| !entry.is_empty()).collect()
}
