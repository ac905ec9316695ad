//! One message as Rust: its structs, their defaults, and how they are read and written.
//!
//! The code it writes calls `barnabas_messages`' Reader and Writer, which do the work; what is generated is the order
//! of the fields and the versions in which each is there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::field::{
    Condition, condition, default_value, differs_from_default, element_bytes_min, has_plain_default,
    in_line_condition, negated, null_condition, primitive_fn, rust_type, tagged_versions,
};
use super::names;
use super::schema::{Api, Field, Kind, MessageDef, Range, Type};

/// Whether a text is for a reader, who can do with the beginning of a long one: `core/messages/src/sentence.rs`.
fn is_sentence(field: &Field) -> bool {
    field.name.ends_with("ErrorMessage") || field.name == "StatusDetail"
}

fn has_secrets(part: &Part<'_>) -> bool {
    part.fields.iter().any(|field| field.secret)
}

/// A struct of the message with the versions in which it can occur.
struct Part<'a> {
    name: String,
    fields: &'a [Field],
    versions: Range,
    meaning: String,
}

pub struct Generator<'a> {
    message: &'a MessageDef,
    api: Option<&'a Api>,
    parts: Vec<Part<'a>>,
}

impl<'a> Generator<'a> {
    pub fn new(message: &'a MessageDef, api: Option<&'a Api>) -> Result<Self, String> {
        let mut generator = Self { message, api, parts: Vec::new() };
        let meaning = generator.message_meaning();
        generator.add_part(&message.name, &message.fields, message.versions, &meaning);
        generator.collect(&message.name, &message.fields, message.versions, 0)?;
        Ok(generator)
    }

    /// What the message is: its own words, or for a request or response its API's.
    fn message_meaning(&self) -> String {
        let side = if matches!(self.message.kind, Kind::Request) { "request" } else { "response" };
        match self.api {
            Some(api) if self.message.meaning.is_empty() => {
                format!("{} (key {}), the {side}: {}", api.name, api.key, lower_first(&api.meaning))
            }
            _ => self.message.meaning.clone(),
        }
    }

    fn add_part(&mut self, name: &str, fields: &'a [Field], versions: Range, meaning: &str) {
        match self.parts.iter_mut().find(|part| part.name == name) {
            Some(part) => part.versions = part.versions.hull(versions),
            None => {
                self.parts.push(Part {
                    name: name.to_owned(),
                    fields,
                    versions,
                    meaning: meaning.to_owned(),
                });
            }
        }
    }

    fn collect(
        &mut self,
        parent: &str,
        fields: &'a [Field],
        versions: Range,
        depth: usize,
    ) -> Result<(), String> {
        if depth > 16 {
            return Err(format!("{} contains itself", self.message.name));
        }
        for field in fields {
            let present = field.versions.and(versions).ok_or_else(|| {
                format!("{}.{} is in none of its struct's versions", self.message.name, field.name)
            })?;
            let Some(name) = field.ty.struct_name() else { continue };
            let message = self.message;
            let article = if matches!(field.ty, Type::Array(_)) { "One of" } else { "See" };
            let place = format!("{article} [`{parent}::{}`].", names::snake(&field.name));
            let (fields, meaning) = match message.structs.iter().find(|shared| shared.name == name) {
                Some(shared) if !shared.meaning.is_empty() => (shared.fields.as_slice(), &shared.meaning),
                Some(shared) => (shared.fields.as_slice(), &place),
                None if !field.fields.is_empty() => (field.fields.as_slice(), &place),
                None => return Err(format!("{}: {name} is not described", message.name)),
            };
            self.add_part(name, fields, present, meaning);
            self.collect(name, fields, present, depth + 1)?;
        }
        Ok(())
    }

    pub fn generate(&self, header: &str) -> Result<String, String> {
        let mut out = String::new();
        let message = self.message;
        writeln!(out, "{header}//! {}\n", self.parts[0].meaning).expect("writes to a string");
        let mut body = String::new();
        for part in &self.parts {
            self.struct_def(part, &mut body);
            self.debug_impl(part, &mut body);
            self.default_impl(part, &mut body);
            self.struct_impl(part, &mut body)?;
        }
        self.message_impl(&mut body);
        let used: Vec<&str> = [("Str", "Str"), ("Uuid", "Uuid"), ("Bytes", "Bytes")]
            .into_iter()
            .filter(|(word, _)| uses(&body, word))
            .map(|(_, name)| name)
            .collect();
        if used.contains(&"Uuid") {
            out.push_str("use barnabas_base::Uuid;\n");
        }
        if used.contains(&"Bytes") {
            out.push_str("use bytes::Bytes;\n");
        }
        out.push_str("\nuse crate::runtime::*;\n");
        if matches!(message.kind, Kind::Request) {
            out.push_str("use super::{ApiKey, Request};\n");
        }
        out.push('\n');
        out.push_str(&body);
        Ok(out)
    }

    fn flexible(&self, versions: Range) -> Condition {
        match self.message.flexible {
            None => Condition::Never,
            Some(range) => condition(range, versions),
        }
    }

    fn struct_def(&self, part: &Part<'_>, out: &mut String) {
        let _ = writeln!(out, "/// {}\n///\n/// Versions {}.", part.meaning, part.versions);
        let default = if part.fields.iter().all(has_plain_default) { ", Default" } else { "" };
        let debug = if has_secrets(part) { "" } else { "Debug, " };
        let _ = writeln!(out, "#[derive({debug}Clone, PartialEq{default})]\npub struct {} {{", part.name);
        for field in part.fields {
            let present = if field.versions.covers(part.versions) {
                String::new()
            } else {
                format!(" Versions {}.", field.versions)
            };
            let doc = format!("{}{present}", field.meaning);
            if !doc.trim().is_empty() {
                let _ = writeln!(out, "/// {}", doc.trim());
            }
            let _ = writeln!(out, "pub {}: {},", names::field(&field.name), rust_type(field));
        }
        out.push_str("pub unknown_tagged_fields: TaggedFields,\n}\n\n");
    }

    /// What `derive` would write, except for fields with the word `secret`: they are not shown.
    fn debug_impl(&self, part: &Part<'_>, out: &mut String) {
        if !has_secrets(part) {
            return;
        }
        let name = &part.name;
        let _ = writeln!(
            out,
            "impl std::fmt::Debug for {name} {{\n\
             fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{\nf.debug_struct(\"{name}\")"
        );
        for field in part.fields {
            let name = names::field(&field.name);
            let shown = if field.secret { format!("Secret(&self.{name})") } else { format!("self.{name}") };
            let _ = writeln!(out, ".field(\"{name}\", &{shown})");
        }
        out.push_str(".field(\"unknown_tagged_fields\", &self.unknown_tagged_fields)\n.finish()\n} }\n\n");
    }

    fn default_impl(&self, part: &Part<'_>, out: &mut String) {
        if part.fields.iter().all(has_plain_default) {
            return;
        }
        let _ = writeln!(out, "impl Default for {} {{ fn default() -> Self {{ Self {{", part.name);
        for field in part.fields {
            let _ = writeln!(out, "{}: {},", names::field(&field.name), default_value(field));
        }
        out.push_str("unknown_tagged_fields: TaggedFields::default(),\n} } }\n\n");
    }

    fn struct_impl(&self, part: &Part<'_>, out: &mut String) -> Result<(), String> {
        let least = part_bytes_min(self, part)?;
        let mut read = String::new();
        self.read_body(part, &mut read);
        let mut write = String::new();
        self.write_body(part, &mut write);
        let reader = if uses(&read, "r") { "r" } else { "_r" };
        let read_version = if uses(&read, "v") { "v" } else { "_v" };
        let writer = if uses(&write, "w") { "w" } else { "_w" };
        let write_version = if uses(&write, "v") { "v" } else { "_v" };
        let _ = writeln!(
            out,
            "impl Struct for {} {{\nconst BYTES_MIN: usize = {least};\n\n\
             fn read({reader}: &mut Reader, {read_version}: i16) -> Result<Self, DecodeError> {{\n{read}}}\n\n\
             fn write(&self, {writer}: &mut Writer, {write_version}: i16) -> Result<(), EncodeError> {{\n{write}}}\n}}\n",
            part.name
        );
        Ok(())
    }

    fn read_body(&self, part: &Part<'_>, out: &mut String) {
        let flexible = self.flexible(part.versions);
        let mut body = String::new();
        let mut tagged = Vec::new();
        for field in part.fields {
            let name = names::field(&field.name);
            let in_line = in_line_condition(field, part.versions);
            if field.tag.is_some() {
                tagged.push(field);
            }
            let mutable = if field.tag.is_some() { "mut " } else { "" };
            let read = self.read_expression(field, part.versions, false);
            let _ = match in_line {
                Condition::Always => writeln!(body, "let {mutable}{name} = {read};"),
                Condition::Never => writeln!(body, "let {mutable}{name} = {};", default_value(field)),
                Condition::When(when) => writeln!(
                    body,
                    "let {mutable}{name} = if {when} {{ {read} }} else {{ {} }};",
                    default_value(field)
                ),
            };
        }
        let tags = self.read_tags(part, &tagged);
        match flexible {
            Condition::Never => body.push_str("let unknown_tagged_fields = TaggedFields::default();\n"),
            Condition::Always if tagged.is_empty() => {
                body.push_str("let unknown_tagged_fields = r.unknown_tagged_fields()?;\n");
            }
            Condition::When(_) if tagged.is_empty() => body.push_str(
                "let unknown_tagged_fields = if flex { r.unknown_tagged_fields()? } else { TaggedFields::default() };\n",
            ),
            Condition::Always => {
                let _ = writeln!(body, "let mut unknown_tagged_fields = TaggedFields::default();\n{tags}");
            }
            Condition::When(_) => {
                let _ = writeln!(
                    body,
                    "let mut unknown_tagged_fields = TaggedFields::default();\nif flex {{ {tags} }}"
                );
            }
        }
        let names: Vec<String> = part.fields.iter().map(|field| names::field(&field.name)).collect();
        let comma = if names.is_empty() { "" } else { ", " };
        let _ = writeln!(body, "Ok(Self {{ {}{comma}unknown_tagged_fields }})", names.join(", "));
        self.flex_binding(&flexible, &body, out);
        out.push_str(&body);
    }

    fn flex_binding(&self, flexible: &Condition, body: &str, out: &mut String) {
        if let Condition::When(when) = flexible
            && uses(body, "flex")
        {
            let _ = writeln!(out, "let flex = {when};");
        }
    }

    fn read_tags(&self, part: &Part<'_>, tagged: &[&Field]) -> String {
        let mut out = String::from("r.tagged_fields(&mut unknown_tagged_fields, |r, tag| {\nmatch tag {\n");
        for field in tagged {
            let guard = match condition(tagged_versions(field), self.flexible_versions(part.versions)) {
                Condition::When(when) => format!(" if {when}"),
                Condition::Always | Condition::Never => String::new(),
            };
            let read = self.read_expression(field, part.versions, true);
            let tag = field.tag.expect("only tagged fields come here");
            let _ = writeln!(out, "{tag}{guard} => {} = {read},", names::field(&field.name));
        }
        out.push_str("_ => return Ok(false),\n}\nOk(true)\n})?;");
        out
    }

    fn flexible_versions(&self, versions: Range) -> Range {
        self.message.flexible.and_then(|range| range.and(versions)).unwrap_or(versions)
    }

    /// How lengths are written in this field: a constant, or the variable `flex`.
    fn flex(&self, field: &Field, versions: Range, tagged: bool) -> &'static str {
        if field.inflexible {
            return "false";
        }
        let versions = field.versions.and(versions).unwrap_or(versions);
        match self.flexible(versions) {
            _ if tagged => "true",
            Condition::Always => "true",
            Condition::Never => "false",
            Condition::When(_) => "flex",
        }
    }

    fn read_expression(&self, field: &Field, versions: Range, tagged: bool) -> String {
        let name = format!("{:?}", field.name);
        let flex = self.flex(field, versions, tagged);
        let null = null_condition(field, versions);
        match (&field.ty, field.nullable.is_some()) {
            (Type::String, false) => format!("r.string({name}, {flex})?"),
            (Type::String, true) => format!("r.nullable_string({name}, {flex}, {null})?"),
            (Type::Bytes, false) => format!("r.bytes({name}, {flex})?"),
            (Type::Bytes, true) | (Type::Records, _) => {
                format!("r.nullable_bytes({name}, {flex}, {null})?")
            }
            (Type::Struct(part), false) => format!("{part}::read(r, v)?"),
            (Type::Struct(_), true) if tagged => format!("r.nullable_tagged_struct({name}, v)?"),
            (Type::Struct(_), true) => format!("r.nullable_struct({name}, {null}, v)?"),
            (Type::Array(element), nullable) => match (&**element, nullable) {
                (Type::Struct(_), false) => format!("r.structs({name}, {flex}, v)?"),
                (Type::Struct(_), true) => format!("r.nullable_structs({name}, {flex}, {null}, v)?"),
                (element, nullable) => {
                    let least = element_bytes_min(element);
                    let read = match element {
                        Type::String => format!("|r| r.string({name}, {flex})"),
                        other => format!("|r| r.{}({name})", primitive_fn(other)),
                    };
                    if nullable {
                        format!("r.nullable_array({name}, {flex}, {null}, {least}, {read})?")
                    } else {
                        format!("r.array({name}, {flex}, {least}, {read})?")
                    }
                }
            },
            (primitive, _) => format!("r.{}({name})?", primitive_fn(primitive)),
        }
    }

    fn write_body(&self, part: &Part<'_>, out: &mut String) {
        let flexible = self.flexible(part.versions);
        let mut body = String::new();
        let mut tagged = Vec::new();
        for field in part.fields {
            if field.tag.is_some() {
                tagged.push(field);
            }
            let write = self.write_statement(field, part.versions, false);
            let in_line = in_line_condition(field, part.versions);
            let absent = condition(field.versions, part.versions);
            let refuse = |unless: &str| {
                format!(
                    "if {unless}{} {{ return Err(cannot_carry({:?}, v)); }}",
                    differs_from_default(field),
                    field.name
                )
            };
            match (in_line, absent) {
                (Condition::Always, _) => body.push_str(&write),
                (Condition::When(when), Condition::When(_)) if !field.ignorable && field.tag.is_none() => {
                    let _ = writeln!(body, "if {when} {{ {write} }} else {}", refuse(""));
                }
                (Condition::When(when), absent) => {
                    let _ = writeln!(body, "if {when} {{ {write} }}");
                    if let Condition::When(present) = absent
                        && !field.ignorable
                    {
                        let _ = writeln!(body, "{}", refuse(&format!("{} && ", negated(&present))));
                    }
                }
                (Condition::Never, Condition::When(present)) if !field.ignorable => {
                    let _ = writeln!(body, "{}", refuse(&format!("{} && ", negated(&present))));
                }
                (Condition::Never, _) => {}
            }
        }
        tagged.sort_by_key(|field| field.tag);
        let tags = self.write_tags(part, &tagged);
        match flexible {
            Condition::Always => body.push_str(&tags),
            Condition::Never => body.push_str("no_tagged_fields(&self.unknown_tagged_fields, v)?;\n"),
            Condition::When(_) => {
                let _ = writeln!(
                    body,
                    "if flex {{ {tags} }} else {{ no_tagged_fields(&self.unknown_tagged_fields, v)?; }}"
                );
            }
        }
        body.push_str("Ok(())\n");
        self.flex_binding(&flexible, &body, out);
        out.push_str(&body);
    }

    fn write_tags(&self, part: &Part<'_>, tagged: &[&Field]) -> String {
        if tagged.is_empty() {
            return "w.unknown_tagged_fields(&self.unknown_tagged_fields)?;\n".to_owned();
        }
        let mut known = Vec::new();
        let mut fields = String::new();
        for field in tagged {
            let set = match condition(tagged_versions(field), self.flexible_versions(part.versions)) {
                Condition::When(when) => format!("{when} && {}", differs_from_default(field)),
                Condition::Always | Condition::Never => differs_from_default(field),
            };
            let write = self.write_statement(field, part.versions, true);
            let tag = field.tag.expect("only tagged fields come here");
            let _ = writeln!(fields, "if {set} {{ w.field({tag}, |w| {{ {write} Ok(()) }})?; }}");
            known.push(format!("usize::from({set})"));
        }
        format!(
            "let known = {};\nw.tagged_fields(known, &self.unknown_tagged_fields, |w| {{ {fields} Ok(()) }})?;\n",
            known.join(" + ")
        )
    }

    fn write_statement(&self, field: &Field, versions: Range, tagged: bool) -> String {
        let name = format!("{:?}", field.name);
        let value = format!("self.{}", names::field(&field.name));
        let flex = self.flex(field, versions, tagged);
        let null = null_condition(field, versions);
        let string = if is_sentence(field) { "sentence" } else { "string" };
        match (&field.ty, field.nullable.is_some()) {
            (Type::String, false) => format!("w.{string}({name}, &{value}, {flex})?;\n"),
            (Type::String, true) => format!("w.nullable_{string}({name}, &{value}, {flex}, {null})?;\n"),
            (Type::Bytes, false) => format!("w.bytes({name}, &{value}, {flex})?;\n"),
            (Type::Bytes, true) | (Type::Records, _) => {
                format!("w.nullable_bytes({name}, &{value}, {flex}, {null})?;\n")
            }
            (Type::Uuid, _) => format!("w.uuid(&{value});\n"),
            (Type::Struct(_), false) => format!("{value}.write(w, v)?;\n"),
            (Type::Struct(_), true) if tagged => format!("w.nullable_tagged_struct(&{value}, v)?;\n"),
            (Type::Struct(_), true) => format!("w.nullable_struct({name}, &{value}, {null}, v)?;\n"),
            (Type::Array(element), nullable) => match (&**element, nullable) {
                (Type::Struct(_), false) => format!("w.structs({name}, &{value}, {flex}, v)?;\n"),
                (Type::Struct(_), true) => {
                    format!("w.nullable_structs({name}, &{value}, {flex}, {null}, v)?;\n")
                }
                (element, nullable) => {
                    let write = match element {
                        Type::String => format!("|w, x| w.string({name}, x, {flex})"),
                        Type::Uuid => "|w, x| { w.uuid(x); Ok(()) }".to_owned(),
                        other => format!("|w, x| {{ w.{}(*x); Ok(()) }}", primitive_fn(other)),
                    };
                    if nullable {
                        format!("w.nullable_array({name}, &{value}, {flex}, {null}, {write})?;\n")
                    } else {
                        format!("w.array({name}, &{value}, {flex}, {write})?;\n")
                    }
                }
            },
            (primitive, _) => format!("w.{}({value});\n", primitive_fn(primitive)),
        }
    }

    fn message_impl(&self, out: &mut String) {
        let message = self.message;
        let since = message.flexible.map_or("None".to_owned(), |range| format!("Some({})", range.min));
        let _ = writeln!(
            out,
            "impl Message for {0} {{\nconst NAME: &'static str = {0:?};\n\
             const VERSIONS: VersionRange = VersionRange::new({1}, {2});\n\
             const FLEXIBLE_SINCE: Option<i16> = {since};\n}}\n",
            message.name, message.versions.min, message.versions.max
        );
        if matches!(message.kind, Kind::Request) {
            let api = message.name.strip_suffix("Request").unwrap_or(&message.name);
            let _ = writeln!(
                out,
                "impl Request for {} {{\nconst KEY: ApiKey = ApiKey::{api};\n\
                 type Response = super::{}_response::{api}Response;\n}}",
                message.name,
                names::snake(api)
            );
        }
    }
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Whether `word` stands in `code` as a word, outside its comments.
fn uses(code: &str, word: &str) -> bool {
    code.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')))
        .any(|found| found == word)
}

/// The least bytes that the struct takes in any of its versions.
fn part_bytes_min(generator: &Generator<'_>, part: &Part<'_>) -> Result<usize, String> {
    let parts: BTreeMap<&str, &Part<'_>> =
        generator.parts.iter().map(|part| (part.name.as_str(), part)).collect();
    let least = (part.versions.min..=part.versions.max)
        .map(|version| bytes_min_in(generator, &parts, part, version))
        .min()
        .unwrap_or(0);
    let is_element = part.name != generator.message.name;
    if least == 0 && is_element {
        return Err(format!("{}.{} can take no bytes at all", generator.message.name, part.name));
    }
    Ok(least.max(1))
}

fn bytes_min_in(
    generator: &Generator<'_>,
    parts: &BTreeMap<&str, &Part<'_>>,
    part: &Part<'_>,
    version: i16,
) -> usize {
    let flexible = generator.message.flexible.is_some_and(|range| range.contains(version));
    let mut total = usize::from(flexible);
    for field in part.fields {
        let tagged = field.tagged.is_some_and(|tagged| tagged.contains(version));
        if tagged || !field.versions.contains(version) {
            continue;
        }
        let compact = flexible && !field.inflexible;
        total += match &field.ty {
            Type::String => {
                if compact {
                    1
                } else {
                    2
                }
            }
            Type::Bytes | Type::Records | Type::Array(_) => {
                if compact {
                    1
                } else {
                    4
                }
            }
            Type::Struct(_) if field.nullable.is_some() => 1,
            Type::Struct(name) => bytes_min_in(generator, parts, parts[name.as_str()], version),
            other => element_bytes_min(other),
        };
    }
    total
}
