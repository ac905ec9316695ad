//! MQRFH2: a message's properties, in front of its data. Only what is needed of its XML is read.
//!
//! ```text
//! "RFH " · version 2 · length · encoding · ccsid · format 8 · flags · ccsid of the folders · (length · folder)…
//! ```
//!
//! A folder is `<name>` elements `</name>`; an element has text, and may have `dt='i4'` and `xsi:nil='true'`.

pub mod jms;

use crate::bytes::{Order, Reader, Writer};
use bytes::Bytes;

const FIXED: usize = 36;
const UTF_8: i32 = 1208;

/// One element of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    pub folder: String,
    pub name: String,
    /// Its type, as `dt` has it: `i4`, `boolean`, `string`, …
    pub kind: Option<String>,
    /// `None`: nil.
    pub value: Option<String>,
}

impl Property {
    /// One without a type: a string.
    pub fn text(folder: &str, name: &str, value: &str) -> Self {
        let own = str::to_owned;
        Self { folder: own(folder), name: own(name), kind: None, value: Some(own(value)) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rfh2 {
    /// Of the data behind it.
    pub encoding: u32,
    pub ccsid: i32,
    pub format: [u8; 8],
    pub properties: Vec<Property>,
    /// The whole structure.
    pub raw: Bytes,
}

/// The structure at the start of `data`, whose integers are in the order of `encoding`. `None`: it is none that can be
/// read.
pub fn read_rfh2(data: &Bytes, encoding: u32) -> Option<Rfh2> {
    let order = if encoding & 0xf == 2 { Order::Little } else { Order::Big };
    let mut reader = Reader::new(data, order);
    if reader.take(4)? != b"RFH " || reader.u32()? != 2 {
        return None;
    }
    let length = reader.u32()? as usize;
    if length < FIXED {
        return None;
    }
    let raw = data.get(..length)?;
    let (of_data, ccsid, format) = (reader.u32()?, reader.i32()?, reader.array()?);
    reader.take(8)?;
    let mut folders = Reader::new(raw.get(FIXED..)?, order);
    let mut properties = Vec::new();
    while !folders.left().is_empty() {
        let bytes = folders.u32()? as usize;
        let text = std::str::from_utf8(folders.take(bytes)?).ok()?;
        read_folder(text.trim_matches([' ', '\0']), &mut properties)?;
    }
    Some(Rfh2 { encoding: of_data, ccsid, format, properties, raw: data.slice(..length) })
}

fn read_folder(text: &str, properties: &mut Vec<Property>) -> Option<()> {
    if text.is_empty() {
        return Some(());
    }
    let (folder, _, inner, rest) = element(text)?;
    let mut left = inner.trim_start();
    while !left.is_empty() {
        let (name, attributes, inner, rest) = element(left)?;
        let attribute = |wanted: &str| {
            let at = attributes.find(wanted)?;
            let value = attributes[at + wanted.len()..].trim_start().strip_prefix('=')?.trim_start();
            let quote = value.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
            value[1..].split(quote).next().map(str::to_owned)
        };
        // Structured elements are kept in the raw header alone.
        if !inner.contains('<') {
            let is_nil = attribute("xsi:nil").is_some_and(|value| value == "true");
            properties.push(Property {
                folder: folder.to_owned(),
                name: name.to_owned(),
                kind: attribute("dt"),
                value: if is_nil { None } else { Some(unescape(inner)) },
            });
        }
        left = rest.trim_start();
    }
    rest.trim_matches([' ', '\0']).is_empty().then_some(())
}

/// name, attributes, what is inside, what is behind.
fn element(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (tag, behind) = text.strip_prefix('<')?.split_once('>')?;
    let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
    let (name, attributes) = tag.split_once([' ', '\t', '\n']).unwrap_or((tag, ""));
    if name.is_empty() || name.starts_with('/') {
        return None;
    }
    if is_empty {
        return Some((name, attributes, "", behind));
    }
    let end = format!("</{name}>");
    let at = behind.find(&end)?;
    Some((name, attributes, &behind[..at], &behind[at + end.len()..]))
}

fn unescape(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    plain.replace("&apos;", "'").replace("&amp;", "&")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A structure with these properties, for data of `format` and `ccsid`: big-endian, UTF-8, a folder for each name that
/// the properties have, in their order.
pub fn write_rfh2(properties: &[Property], format: [u8; 8], ccsid: i32, encoding: u32) -> Bytes {
    let mut folders: Vec<(&str, String)> = Vec::new();
    for property in properties {
        let place = folders.iter().position(|(name, _)| *name == property.folder);
        let place = place.unwrap_or_else(|| {
            folders.push((&property.folder, String::new()));
            folders.len() - 1
        });
        let kind = property.kind.as_ref().map(|kind| format!(" dt='{kind}'")).unwrap_or_default();
        let name = &property.name;
        folders[place].1.push_str(&match &property.value {
            Some(value) => format!("<{name}{kind}>{}</{name}>", escape(value)),
            None => format!("<{name}{kind} xsi:nil='true'></{name}>"),
        });
    }
    let mut out = Writer::new(Order::Big);
    out.raw(b"RFH ").u32(2).u32(0).u32(encoding).i32(ccsid).raw(&format).u32(0).i32(UTF_8);
    for (name, inner) in folders {
        let mut text = format!("<{name}>{inner}</{name}>");
        while text.len() % 4 != 0 {
            text.push(' ');
        }
        out.u32(text.len() as u32).raw(text.as_bytes());
    }
    let length = out.out.len() as u32;
    out.set_u32(8, length);
    out.out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn property(folder: &str, name: &str, kind: Option<&str>, value: Option<&str>) -> Property {
        let own = |text: &str| text.to_owned();
        Property { folder: own(folder), name: own(name), kind: kind.map(own), value: value.map(own) }
    }

    #[test]
    fn properties_survive_with_their_types() {
        let all = vec![
            property("mcd", "Msd", None, Some("jms_text")),
            property("usr", "n", Some("i4"), Some("5")),
            property("usr", "s", None, Some("a <b> & 'c'")),
            property("usr", "nothing", None, None),
        ];
        let mut bytes = write_rfh2(&all, *b"MQSTR   ", 1208, 273).to_vec();
        let length = bytes.len();
        assert_eq!(length % 4, 0);
        bytes.extend_from_slice(b"hello");
        let read = read_rfh2(&Bytes::from(bytes), 273).expect("whole");
        assert_eq!((read.properties, read.format, read.ccsid), (all, *b"MQSTR   ", 1208));
        assert_eq!(read.raw.len(), length);
    }

    #[test]
    fn header_that_is_none_is_refused() {
        let whole = write_rfh2(&[property("usr", "n", None, Some("5"))], *b"        ", 1208, 273);
        for end in 0..whole.len() {
            assert_eq!(read_rfh2(&whole.slice(..end), 273), None, "{end}");
        }
        for text in ["<usr>", "<usr><a></usr>", "usr", "<></>", "<usr></usr><b>"] {
            assert_eq!(read_folder(text, &mut Vec::new()), None, "{text}");
        }
        assert!(read_folder("<usr><a/></usr>", &mut Vec::new()).is_some());
    }
}
