//! What spans all messages: the table of APIs, and the enums that pick a message by its key or type.

use std::fmt::Write as _;

use super::HEADER;
use super::names;
use super::schema::{Api, File, Kind, MessageDef};

/// What stands in front of the table: its rows, and what a request says of its own.
const API_ROW: &str = "\
/// One row of the table.
#[derive(Debug)]
pub(crate) struct Api {
    pub name: &'static str,
    pub versions: VersionRange,
    pub flexible_since: Option<i16>,
    pub top_unstable: bool,
    pub on_broker: bool,
    pub on_controller: bool,
}

/// A request: has a key, and a response in the same versions.
pub trait Request: Message {
    const KEY: ApiKey;
    type Response: Message;
}

";

/// The APIs by key, each with its request.
fn apis(files: &[File]) -> Vec<(&Api, &MessageDef)> {
    let mut found: Vec<_> = files
        .iter()
        .filter_map(|file| {
            Some((file.api.as_ref()?, file.messages.iter().find(|m| m.kind == Kind::Request)?))
        })
        .collect();
    found.sort_by_key(|(api, _)| api.key);
    found
}

pub fn api_keys(files: &[File]) -> Result<String, String> {
    let apis = apis(files);
    let mut out = format!("{HEADER}//! The table of Kafka's APIs.\n\nuse crate::runtime::*;\n\n");
    out.push_str(API_ROW);
    out.push_str(
        "/// An API, by Kafka's name for it.\n\
         #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(i16)]\npub enum ApiKey {\n",
    );
    for (api, _) in &apis {
        if !api.meaning.is_empty() {
            let _ = writeln!(out, "/// {}", api.meaning);
        }
        let _ = writeln!(out, "{} = {},", api.name, api.key);
    }
    let _ = writeln!(
        out,
        "}}\n\nimpl ApiKey {{\n/// All of them, by rising number.\npub const ALL: [Self; {}] = [",
        apis.len()
    );
    for (api, _) in &apis {
        let _ = writeln!(out, "Self::{},", api.name);
    }
    out.push_str("];\n\npub(crate) const fn place(self) -> usize { match self {\n");
    for (index, (api, _)) in apis.iter().enumerate() {
        let _ = writeln!(out, "Self::{} => {index},", api.name);
    }
    let _ = writeln!(out, "}} }} }}\n\npub(crate) static APIS: [Api; {}] = [", apis.len());
    for (api, request) in &apis {
        let flexible = request.flexible.map_or("None".to_owned(), |range| format!("Some({})", range.min));
        for listener in &api.listeners {
            if !["broker", "controller"].contains(&listener.as_str()) {
                return Err(format!("{}: {listener} is no listener", api.name));
            }
        }
        let on = |listener: &str| api.listeners.iter().any(|found| found == listener);
        let _ = writeln!(
            out,
            "Api {{ name: {:?}, versions: VersionRange::new({}, {}), flexible_since: {flexible}, \
             top_unstable: {}, on_broker: {}, on_controller: {} }},",
            api.name,
            request.versions.min,
            request.versions.max,
            request.top_unstable,
            on("broker"),
            on("controller")
        );
    }
    out.push_str("];\n");
    Ok(out)
}

pub fn bodies(files: &[File]) -> String {
    let apis = apis(files);
    let mut out =
        format!("{HEADER}//! Any request, any response.\n\nuse super::*;\nuse crate::runtime::*;\n\n");
    for side in ["Request", "Response"] {
        let what = side.to_lowercase();
        let _ = writeln!(
            out,
            "/// A {what} of any API. Boxed: the largest would make all of them large.\n\
             #[derive(Debug, Clone, PartialEq)]\npub enum {side}Body {{"
        );
        for (api, _) in &apis {
            let _ = writeln!(out, "{0}(Box<{0}{side}>),", api.name);
        }
        let _ = writeln!(
            out,
            "}}\n\nimpl {side}Body {{\n/// Reads the {what} that `key` and `version` announce; what follows stays for the caller.\n\
             pub fn decode(r: &mut Reader, key: ApiKey, version: i16) -> Result<Self, DecodeError> {{ Ok(match key {{"
        );
        for (api, _) in &apis {
            let _ = writeln!(
                out,
                "ApiKey::{0} => Self::{0}(Box::new({0}{side}::decode(r, version)?)),",
                api.name
            );
        }
        out.push_str(
            "}) }\n\npub fn encode(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError> { match self {\n",
        );
        for (api, _) in &apis {
            let _ = writeln!(out, "Self::{}(body) => body.encode(w, version),", api.name);
        }
        out.push_str("} }\n\npub fn key(&self) -> ApiKey { match self {\n");
        for (api, _) in &apis {
            let _ = writeln!(out, "Self::{0}(_) => ApiKey::{0},", api.name);
        }
        out.push_str("} } }\n\n");
        for (api, _) in &apis {
            let _ = writeln!(
                out,
                "impl From<{0}{side}> for {side}Body {{ fn from(body: {0}{side}) -> Self {{ Self::{0}(Box::new(body)) }} }}",
                api.name
            );
        }
        out.push('\n');
    }
    out
}

/// One variant of an enum over messages.
struct Variant<'a> {
    name: String,
    number: i64,
    message: &'a MessageDef,
}

fn variants<'a>(files: &'a [File], folder: &str, side: &str) -> Vec<Variant<'a>> {
    let mut found: Vec<Variant<'a>> = files
        .iter()
        .filter(|file| file.folder == folder)
        .flat_map(|file| &file.messages)
        .filter_map(|message| {
            let (number, word) = match message.kind {
                Kind::Record(number) => (i64::from(number), "Record"),
                Kind::Key(number) => (i64::from(number), "Key"),
                Kind::Value(number) => (i64::from(number), "Value"),
                _ => return None,
            };
            let name = message.name.strip_suffix(side)?;
            (word == side).then(|| Variant { name: names::camel(name), number, message })
        })
        .collect();
    found.sort_by_key(|variant| variant.number);
    found
}

/// An enum with one variant for each message, and how each is read and written by its number and version.
fn message_enum(out: &mut String, name: &str, meaning: &str, number: &str, variants: &[Variant<'_>]) {
    let _ = writeln!(
        out,
        "/// {meaning}\n#[derive(Debug, Clone, PartialEq)]\n#[allow(clippy::large_enum_variant)]\npub enum {name} {{"
    );
    for variant in variants {
        let _ = writeln!(out, "{}({}),", variant.name, variant.message.name);
    }
    let _ = writeln!(
        out,
        "}}\n\nimpl {name} {{\n\
         /// The number that says which message it is.\n\
         pub const fn type_number(&self) -> {number} {{ match self {{"
    );
    for variant in variants {
        let _ = writeln!(out, "Self::{}(_) => {},", variant.name, variant.number);
    }
    let _ = writeln!(
        out,
        "}} }}\n\n\
         /// The versions of the message with this number; `None` where there is no such message.\n\
         pub const fn versions(type_number: {number}) -> Option<VersionRange> {{ Some(match type_number {{"
    );
    for variant in variants {
        let _ = writeln!(out, "{} => {}::VERSIONS,", variant.number, variant.message.name);
    }
    let _ = writeln!(
        out,
        "_ => return None, }}) }}\n\n\
         pub(crate) fn read_body(r: &mut Reader, type_number: {number}, version: i16) -> Result<Self, DecodeError> {{ \
         Ok(match type_number {{"
    );
    for variant in variants {
        let _ = writeln!(
            out,
            "{} => Self::{}({}::decode(r, version)?),",
            variant.number, variant.name, variant.message.name
        );
    }
    let _ = writeln!(
        out,
        "other => return Err(no_type(r, {name:?}, i64::from(other))), }}) }}\n\n\
         pub(crate) fn write_body(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError> {{ match self {{"
    );
    for variant in variants {
        let _ = writeln!(out, "Self::{}(message) => message.encode(w, version),", variant.name);
    }
    out.push_str("} } }\n\n");
    for variant in variants {
        let _ = writeln!(
            out,
            "impl From<{1}> for {name} {{ fn from(message: {1}) -> Self {{ Self::{0}(message) }} }}",
            variant.name, variant.message.name
        );
    }
    out.push('\n');
}

pub fn metadata_record(files: &[File]) -> String {
    let mut out =
        format!("{HEADER}//! Any record of the metadata log.\n\nuse super::*;\nuse crate::runtime::*;\n\n");
    let variants = variants(files, "metadata", "Record");
    message_enum(&mut out, "MetadataRecord", "A record of `__cluster_metadata`.", "u32", &variants);
    out
}

pub fn coordinator_records(files: &[File]) -> String {
    let mut out = format!(
        "{HEADER}//! Any record of the coordinators' topics.\n\nuse super::*;\nuse crate::runtime::*;\n\n"
    );
    for (folder, prefix, topic) in [
        ("coordinator/group", "Group", "__consumer_offsets"),
        ("coordinator/transaction", "Transaction", "__transaction_state"),
        ("coordinator/share", "Share", "__share_group_state"),
    ] {
        for (side, what) in [("Key", "key"), ("Value", "value")] {
            let variants = variants(files, folder, side);
            let meaning = format!("The {what} of a record of `{topic}`.");
            message_enum(&mut out, &format!("{prefix}Record{side}"), &meaning, "i16", &variants);
        }
    }
    out
}

pub fn index(files: &[File]) -> String {
    let mut out = format!(
        "{HEADER}//! Kafka's messages: one module each, all generated from `core/messages/schema`.\n\n\
         mod api_keys;\nmod bodies;\nmod coordinator_records;\nmod metadata_record;\n\
         pub use api_keys::{{ApiKey, Request}};\npub(crate) use api_keys::{{APIS, Api}};\npub use bodies::*;\npub use coordinator_records::*;\n\
         pub use metadata_record::*;\n\n"
    );
    let mut messages: Vec<&MessageDef> = files.iter().flat_map(|file| &file.messages).collect();
    messages.sort_by(|a, b| a.name.cmp(&b.name));
    for message in &messages {
        let _ = writeln!(out, "pub mod {};", names::snake(&message.name));
    }
    for message in &messages {
        let _ = writeln!(out, "pub use {}::{};", names::snake(&message.name), message.name);
    }
    out.push_str(
        "\n/// `$apply!(Name)` for each message: for tests and fuzz targets, which want them all.\n\
         #[doc(hidden)]\n#[macro_export]\nmacro_rules! for_each_message { ($apply:ident) => {\n",
    );
    for message in &messages {
        let _ = writeln!(out, "$apply!({});", message.name);
    }
    out.push_str("}; }\n");
    out
}
