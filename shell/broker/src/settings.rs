//! What the operator set: the file's keys, overridden by the command line, and nothing else.
//!
//! Knows no key and no default: `node_config` asks for keys, core/metadata's definitions hold defaults, types and reasons.

use crate::properties::{self, Property};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why the node cannot start: always the key, what is wrong, what was expected, and an example.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{path}, {source}")]
    Syntax { path: PathBuf, source: properties::PropertiesError },
    #[error("--override {text}: expected KEY=VALUE, for example --override log.dirs=/var/lib/barnabas")]
    Override { text: String },
    #[error("{key}: {problem}. Example: {example}")]
    Value { key: String, problem: String, example: String },
}

impl ConfigError {
    pub fn value(key: &str, problem: impl Into<String>, example: impl Into<String>) -> Self {
        Self::Value { key: key.to_owned(), problem: problem.into(), example: example.into() }
    }
}

/// The keys that were set, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, String>,
}

impl Settings {
    /// Reads the file, if there is one, and lays the overrides over it.
    ///
    /// # Errors
    /// The file cannot be read or is not in properties syntax; an override is no pair.
    pub fn load<'a>(
        file: Option<&Path>,
        overrides: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        if let Some(path) = file {
            let bytes = std::fs::read(path)
                .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
            let text = String::from_utf8_lossy(&bytes);
            let listed = properties::parse(&text)
                .map_err(|source| ConfigError::Syntax { path: path.to_owned(), source })?;
            settings.extend(listed);
        }
        for text in overrides {
            let property = properties::parse_override(text)
                .ok_or_else(|| ConfigError::Override { text: text.to_owned() })?;
            settings.extend([property]);
        }
        Ok(settings)
    }

    fn extend(&mut self, properties: impl IntoIterator<Item = Property>) {
        for property in properties {
            // Kafka trims what it reads, whatever the type.
            self.values.insert(property.key, property.value.trim().to_owned());
        }
    }

    #[cfg(test)]
    pub fn set(&mut self, key: &str, value: &str) {
        self.values.insert(key.to_owned(), value.to_owned());
    }

    /// Sets `key` where the operator did not.
    pub fn set_default(&mut self, key: &str, value: &str) {
        self.values.entry(key.to_owned()).or_insert_with(|| value.to_owned());
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_overrides_the_file() {
        let directory = std::env::temp_dir().join(format!("barnabas-settings-{}", std::process::id()));
        std::fs::write(&directory, "a=1\nb= 2 \na=3\n").expect("writes");
        let settings = Settings::load(Some(&directory), ["b=9", "c=4"]).expect("settings");
        std::fs::remove_file(&directory).expect("removes");
        let listed: Vec<_> = settings.iter().collect();
        assert_eq!(listed, [("a", "3"), ("b", "9"), ("c", "4")]);
        assert!(Settings::load(None, ["nothing"]).is_err());
    }
}
