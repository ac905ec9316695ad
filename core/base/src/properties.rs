//! Java's properties syntax: `server.properties`, files of clients, tools and connectors, and `--override`.
//!
//! Text in, pairs out. Knows no key. The only parser of it here. Source: `java.util.Properties.load`: comments (`#`,
//! `!`), `=`, `:` or white space between key and value, lines continued by a backslash, `\t \n \f \r \uXXXX`, any
//! other escaped letter standing for itself.

/// One key, its value, and the line where it begins (1 for the first), in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    pub key: String,
    pub value: String,
    pub line: usize,
}

/// Why a file is not in properties syntax.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: '\\u' needs four hexadecimal digits, for example \\u00e9")]
pub struct PropertiesError {
    pub line: usize,
}

/// Reads a whole file. A key that stands twice is listed twice: the last one counts.
///
/// # Errors
/// A malformed `\u` escape, the only text that the syntax refuses.
pub fn parse(text: &str) -> Result<Vec<Property>, PropertiesError> {
    let mut properties = Vec::new();
    for (line, logical) in logical_lines(text) {
        let (key, value) = split(&logical);
        properties.push(Property { key: unescape(key, line)?, value: unescape(value, line)?, line });
    }
    Ok(properties)
}

/// [`parse`] for callers that need no line numbers.
///
/// # Errors
/// As [`parse`].
pub fn pairs(text: &str) -> Result<Vec<(String, String)>, PropertiesError> {
    Ok(parse(text)?.into_iter().map(|property| (property.key, property.value)).collect())
}

/// Reads one `key=value` of the command line; the value is taken as it stands, without escapes.
pub fn parse_override(text: &str) -> Option<Property> {
    let (key, value) = text.split_once('=')?;
    let key = key.trim();
    (!key.is_empty()).then(|| Property { key: key.to_owned(), value: value.trim().to_owned(), line: 0 })
}

/// Lines with their continuations joined, without comments and blanks, each with the number of its first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, natural) in text.split('\n').enumerate() {
        let natural = natural.strip_suffix('\r').unwrap_or(natural);
        let body = natural.trim_start_matches([' ', '\t', '\x0c']);
        if open.is_none() && (body.is_empty() || body.starts_with(['#', '!'])) {
            continue;
        }
        let (first, mut joined) = open.take().unwrap_or((index + 1, String::new()));
        let continues = body.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1;
        joined.push_str(if continues { &body[..body.len() - 1] } else { body });
        if continues {
            open = Some((first, joined));
        } else {
            lines.push((first, joined));
        }
    }
    lines.extend(open);
    lines
}

/// Splits at the first separator that is not escaped.
fn split(line: &str) -> (&str, &str) {
    let is_blank = |letter: char| matches!(letter, ' ' | '\t' | '\x0c');
    let mut escaped = false;
    let end = line.char_indices().find(|&(_, letter)| {
        let ends = !escaped && (is_blank(letter) || matches!(letter, '=' | ':'));
        escaped = !escaped && letter == '\\';
        ends
    });
    let Some((end, _)) = end else { return (line, "") };
    let rest = line[end..].trim_start_matches(is_blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (&line[..end], rest.trim_start_matches(is_blank))
}

fn unescape(text: &str, line: usize) -> Result<String, PropertiesError> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    let mut units: Vec<u16> = Vec::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let mut buffer = [0; 2];
        let plain = match (letter, letter == '\\') {
            (letter, false) => letter,
            (_, true) => match letters.next() {
                Some('u') => {
                    let digits: String = letters.by_ref().take(4).collect();
                    let is_hex = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                    let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| is_hex);
                    units.push(unit.ok_or(PropertiesError { line })?);
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\x0c',
                Some(other) => other,
                None => break,
            },
        };
        units.extend_from_slice(plain.encode_utf16(&mut buffer));
    }
    Ok(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests;
