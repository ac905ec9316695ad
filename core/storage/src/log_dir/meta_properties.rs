//! `meta.properties`: which cluster, node and directory a log directory belongs to.
//!
//! Version 0 (Kafka before KRaft: `broker.id`) and version 1 (`node.id`, `directory.id`) are read; what is written says
//! its own version. Source: Kafka `MetaProperties`, KIP-631, KIP-858.

use barnabas_base::{BrokerId, DirectoryId, Text, Uuid};

pub(crate) const FILE_NAME: &str = "meta.properties";

/// The contents of `meta.properties`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaProperties {
    /// 0 or 1, as the file says.
    pub version: i32,
    /// Missing in some version-0 files.
    pub cluster_id: Option<Text>,
    pub node_id: Option<BrokerId>,
    /// Missing in files from before Kafka 3.7.
    pub directory_id: Option<DirectoryId>,
}

impl MetaProperties {
    /// The file's text.
    pub fn render(&self) -> String {
        let mut text = String::from("#\n");
        let mut line = |key: &str, value: String| {
            text.push_str(key);
            text.push('=');
            text.push_str(&value);
            text.push('\n');
        };
        if let (0, Some(id)) = (self.version, self.node_id) {
            line("broker.id", id.to_string());
        }
        if let Some(id) = &self.cluster_id {
            line("cluster.id", escape(id));
        }
        if let Some(id) = self.directory_id {
            line("directory.id", id.to_string());
        }
        if let (1.., Some(id)) = (self.version, self.node_id) {
            line("node.id", id.to_string());
        }
        line("version", self.version.to_string());
        text
    }

    /// # Errors
    /// What is wrong with the text. Keys that are not known are left out.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| "it is not text".to_owned())?;
        let get =
            |key: &str| properties(text).filter(|(known, _)| known == key).last().map(|(_, value)| value);
        let number = |key: &str| match get(key) {
            None => Ok(None),
            Some(value) => {
                value.parse().map(Some).map_err(|_| format!("{key} should be a number and is {value:?}"))
            }
        };
        let version = number("version")?.ok_or_else(|| "it has no version".to_owned())?;
        if !(0..=1).contains(&version) {
            return Err(format!("version should be 0 or 1 and is {version}"));
        }
        let node_id = number(if version == 0 { "broker.id" } else { "node.id" })?;
        if node_id.is_some_and(|id: i32| id < 0) {
            return Err("the node's id is negative".to_owned());
        }
        let directory_id = match get("directory.id") {
            None => None,
            Some(id) => Some(Uuid::parse(&id).ok_or_else(|| format!("directory.id {id:?} is no id"))?),
        };
        let cluster_id = get("cluster.id").map(Text::from);
        if version == 1 && (cluster_id.is_none() || node_id.is_none()) {
            return Err("cluster.id or node.id is missing".to_owned());
        }
        Ok(Self { version, cluster_id, node_id: node_id.map(BrokerId), directory_id })
    }
}

/// Java's properties format, as far as these files use it: no continued lines.
fn properties(text: &str) -> impl Iterator<Item = (String, String)> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with(['#', '!']) {
            return None;
        }
        let (key, value) = line.split_once(['=', ':'])?;
        Some((unescape(key.trim_end()), unescape(value.trim_start())))
    })
}

fn escape(value: &str) -> String {
    let special = |letter| matches!(letter, '\\' | '=' | ':' | '#' | '!');
    value.chars().flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

fn unescape(value: &str) -> String {
    let mut letters = value.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    plain
}
