//! The bytes of a value as JSON.

use super::schema::{Node, Schema};
use crate::{DEPTH_MAX, TOO_LONG, quoted};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// More are no number that is worth its digits.
const DECIMAL_BYTES_MAX: usize = 64;

impl Schema {
    /// The value that `bytes` are, as at most `bytes_max` of text.
    ///
    /// # Errors
    /// They are no value of the schema, or more than one; the text is longer, or nested too deeply.
    pub fn decode(&self, bytes: &[u8], bytes_max: usize) -> Result<String, String> {
        let mut walk = Walk { schema: self, bytes, at: 0, text: String::new(), bytes_max };
        walk.value(self.root, 0)?;
        match walk.bytes.len() - walk.at {
            0 => Ok(walk.text),
            left => Err(format!("{left} bytes follow the value")),
        }
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    bytes: &'a [u8],
    at: usize,
    text: String,
    bytes_max: usize,
}

impl<'a> Walk<'a> {
    fn write(&mut self, text: &str) -> Result<(), String> {
        if text.len() > self.bytes_max - self.text.len() {
            return Err(TOO_LONG.to_owned());
        }
        self.text.push_str(text);
        Ok(())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let left = self.bytes.len() - self.at;
        if count > left {
            return Err(format!("{count} bytes are expected at byte {}, and {left} are left", self.at));
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.try_into().expect("it has so many bytes"))
    }

    fn long(&mut self) -> Result<i64, String> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(format!("a number has more than 64 bits at byte {}", self.at))
    }

    /// Bytes behind their length.
    fn counted(&mut self) -> Result<&'a [u8], String> {
        let length = self.long()?;
        self.take(usize::try_from(length).map_err(|_| format!("a length is {length}"))?)
    }

    fn text(&mut self) -> Result<String, String> {
        let bytes = self.counted()?;
        let text = std::str::from_utf8(bytes).map_err(|_| "a string is no UTF-8".to_owned())?;
        Ok(quoted(text))
    }

    fn value(&mut self, at: usize, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} levels"));
        }
        let schema = self.schema;
        let shown = match &schema.nodes[at] {
            Node::Null => "null".to_owned(),
            Node::Bool => match self.array()? {
                [0] => "false".to_owned(),
                [1] => "true".to_owned(),
                [other] => return Err(format!("a boolean is {other}")),
            },
            Node::Int => {
                let number = self.long()?;
                i32::try_from(number).map_err(|_| format!("an int is {number}"))?.to_string()
            }
            Node::Long => self.long()?.to_string(),
            Node::Float => {
                let float = f32::from_le_bytes(self.array()?);
                if float.is_finite() { format!("{float:?}") } else { special(float.into()) }
            }
            Node::Double => {
                let double = f64::from_le_bytes(self.array()?);
                if double.is_finite() { format!("{double:?}") } else { special(double) }
            }
            Node::Bytes => quoted(&STANDARD.encode(self.counted()?)),
            Node::Text => self.text()?,
            Node::Fixed(size) => quoted(&STANDARD.encode(self.take(*size)?)),
            Node::Decimal { scale, fixed } => {
                let bytes = match fixed {
                    Some(size) => self.take(*size)?,
                    None => self.counted()?,
                };
                decimal(bytes, *scale)?
            }
            Node::Enum(symbols) => {
                let number = self.long()?;
                let symbol = usize::try_from(number).ok().and_then(|number| symbols.get(number));
                quoted(symbol.ok_or_else(|| format!("an enum has no symbol {number}"))?)
            }
            Node::Union(branches) => {
                let number = self.long()?;
                let branch = usize::try_from(number).ok().and_then(|number| branches.get(number));
                let branch = *branch.ok_or_else(|| format!("a union has no branch {number}"))?;
                return self.value(branch, depth + 1);
            }
            Node::Array(items) => return self.blocks(false, *items, depth),
            Node::Map(values) => return self.blocks(true, *values, depth),
            Node::Record(fields) => {
                self.write("{")?;
                for (place, (name, kind)) in fields.iter().enumerate() {
                    self.write(if place > 0 { "," } else { "" })?;
                    self.write(name)?;
                    self.write(":")?;
                    self.value(*kind, depth + 1)?;
                }
                return self.write("}");
            }
            Node::Open => return Err("bug: a type without its fields".to_owned()),
        };
        self.write(&shown)
    }

    /// An array or a map: blocks of elements behind their number, until one has none. Elements may have no bytes:
    /// what they are written as bounds them.
    fn blocks(&mut self, is_map: bool, inner: usize, depth: usize) -> Result<(), String> {
        self.write(if is_map { "{" } else { "[" })?;
        let mut is_first = true;
        loop {
            let mut count = self.long()?;
            if count == 0 {
                break;
            }
            if count < 0 {
                // Its size in bytes, for readers that skip it.
                self.long()?;
                count = count.checked_neg().ok_or("a block has more elements than there are")?;
            }
            for _ in 0..count {
                if !is_first {
                    self.write(",")?;
                }
                is_first = false;
                if is_map {
                    let key = self.text()?;
                    self.write(&key)?;
                    self.write(":")?;
                }
                self.value(inner, depth + 1)?;
            }
        }
        self.write(if is_map { "}" } else { "]" })
    }
}

fn special(value: f64) -> String {
    let word = match value {
        value if value.is_nan() => "NaN",
        value if value > 0.0 => "Infinity",
        _ => "-Infinity",
    };
    quoted(word)
}

/// A number in two's complement, the largest byte first, with a point before its last `scale` digits.
fn decimal(bytes: &[u8], scale: usize) -> Result<String, String> {
    if bytes.len() > DECIMAL_BYTES_MAX {
        return Err(format!("a decimal has {} bytes, more than {DECIMAL_BYTES_MAX}", bytes.len()));
    }
    let is_negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let mut size = bytes.to_vec();
    if is_negative {
        size.iter_mut().for_each(|byte| *byte = !*byte);
        for byte in size.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }
    // Division by ten, until nothing is left.
    let mut digits = Vec::new();
    while size.iter().any(|byte| *byte != 0) {
        let mut rest = 0_u16;
        for byte in &mut size {
            let here = rest * 256 + u16::from(*byte);
            *byte = (here / 10) as u8;
            rest = here % 10;
        }
        digits.push(b'0' + rest as u8);
    }
    while digits.len() <= scale {
        digits.push(b'0');
    }
    digits.reverse();
    let mut text = String::from_utf8(digits).expect("they are digits");
    if scale > 0 {
        text.insert(text.len() - scale, '.');
    }
    Ok(if is_negative { format!("-{text}") } else { text })
}
