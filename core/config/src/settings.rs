//! What the operator set: the file's keys, overridden by the command line, and nothing else.
//!
//! Knows no key and no default: `node_config` asks for keys, core/metadata's definitions hold defaults, types and
//! reasons.

use barnabas_base::properties::{self, Property};
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
    /// The keys that the command line overrides, and what the file says of them.
    overridden: BTreeMap<String, Option<String>>,
    file: Option<PathBuf>,
    /// The keys that stand more than once in the file, each with its lines.
    repeated: BTreeMap<String, Vec<usize>>,
}

impl Settings {
    /// The file's keys, if there is a file, with the overrides applied to them. `read` gives a file's bytes.
    ///
    /// # Errors
    /// The file cannot be read or is not in properties syntax; an override is no pair.
    pub fn load<'a>(
        file: Option<&Path>,
        overrides: impl IntoIterator<Item = &'a str>,
        read: impl FnOnce(&Path) -> std::io::Result<Vec<u8>>,
    ) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        if let Some(path) = file {
            let bytes =
                read(path).map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
            let text = String::from_utf8_lossy(&bytes);
            // Editors of Windows begin a file with it. Java would take it for a part of the first key.
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            let listed = properties::parse(text)
                .map_err(|source| ConfigError::Syntax { path: path.to_owned(), source })?;
            settings.repeated = repeated(&listed);
            settings.extend(listed);
            settings.file = Some(path.to_owned());
        }
        for text in overrides {
            let property = properties::parse_override(text)
                .ok_or_else(|| ConfigError::Override { text: text.to_owned() })?;
            settings.override_with(property);
        }
        Ok(settings)
    }

    fn override_with(&mut self, property: Property) {
        let before = self.values.get(&property.key).cloned();
        self.overridden.entry(property.key.clone()).or_insert(before);
        self.extend([property]);
    }

    /// What the file says of a key that the command line overrides; `None` where it does not.
    pub fn overridden(&self, key: &str) -> Option<Option<&str>> {
        self.overridden.get(key).map(Option::as_deref)
    }

    pub fn is_overridden(&self, key: &str) -> bool {
        self.overridden.contains_key(key)
    }

    /// The keys that stand more than once in the file, each with its lines. The last one holds.
    pub fn repeated(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.repeated.iter().map(|(key, lines)| (key.as_str(), lines.as_slice()))
    }

    pub fn has_no_file(&self) -> bool {
        self.file.is_none()
    }

    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What the file says, overridden keys included.
    pub fn of_file(&self) -> impl Iterator<Item = (&str, &str)> {
        let kept = self.iter().filter(|(key, _)| !self.is_overridden(key));
        let replaced =
            self.overridden.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_deref()?)));
        kept.chain(replaced)
    }

    /// Sets `key` whatever the operator did, to what follows from another key.
    pub fn replace(&mut self, key: &str, value: String) {
        self.values.insert(key.to_owned(), value);
    }

    /// As [`Settings::load`], from pairs.
    #[cfg(test)]
    pub fn of(file: &[(&str, &str)], overrides: &[(&str, &str)]) -> Self {
        let mut settings = Self { file: Some(PathBuf::from("server.properties")), ..Self::default() };
        file.iter().for_each(|(key, value)| settings.set(key, value));
        settings.with(overrides)
    }

    #[cfg(test)]
    pub fn of_overrides(overrides: &[(&str, &str)]) -> Self {
        Self::default().with(overrides)
    }

    #[cfg(test)]
    fn with(mut self, overrides: &[(&str, &str)]) -> Self {
        for &(key, value) in overrides {
            self.override_with(Property { key: key.to_owned(), value: value.to_owned(), line: 0 });
        }
        self
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

fn repeated(listed: &[Property]) -> BTreeMap<String, Vec<usize>> {
    let mut lines: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for property in listed {
        lines.entry(property.key.clone()).or_default().push(property.line);
    }
    lines.retain(|_, lines| lines.len() > 1);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_mark_is_no_part_of_the_first_key() {
        let read = |_: &Path| Ok("\u{feff}process.roles=broker\n".as_bytes().to_vec());
        let settings = Settings::load(Some(Path::new("f")), [], read).expect("settings");
        assert_eq!(settings.get("process.roles"), Some("broker"));
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let read = |_: &Path| Ok(b"a=1\nb= 2 \na=3\n".to_vec());
        let settings = Settings::load(Some(Path::new("f")), ["b=9", "c=4"], read).expect("settings");
        let listed: Vec<_> = settings.iter().collect();
        assert_eq!(listed, [("a", "3"), ("b", "9"), ("c", "4")]);
        assert!(Settings::load(None, ["nothing"], |_| Ok(Vec::new())).is_err());
    }
}
