//! The text form that Kafka's checkpoint files share: a version, a count, and that many lines of fields.
//!
//! Source: Kafka `CheckpointFile`.

/// Version line of every file of this form.
const VERSION: &str = "0";

/// The file's text for `lines`.
pub(crate) fn render(lines: impl ExactSizeIterator<Item = String>) -> String {
    let mut text = format!("{VERSION}\n{}\n", lines.len());
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The entries of `text`, each read by `entry`. The error says what is wrong, with its line.
pub(crate) fn parse<T>(text: &[u8], entry: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is not text".to_owned())?;
    let mut lines = text.lines();
    match lines.next().map(str::trim) {
        Some(VERSION) => {}
        Some(other) => return Err(format!("line 1 should be version {VERSION} and is {other:?}")),
        None => return Err("it is empty".to_owned()),
    }
    let count: usize = lines
        .next()
        .and_then(|line| line.trim().parse().ok())
        .ok_or_else(|| "line 2 should be the number of entries".to_owned())?;
    let mut entries = Vec::new();
    for (at, line) in lines.enumerate() {
        if line.is_empty() {
            continue;
        }
        let read = entry(line).ok_or_else(|| format!("line {} is no entry: {line:?}", at + 3))?;
        entries.push(read);
    }
    if entries.len() != count {
        return Err(format!("it announces {count} entries and holds {}", entries.len()));
    }
    Ok(entries)
}
