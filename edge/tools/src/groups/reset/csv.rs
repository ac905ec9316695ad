//! The lines of `--from-file` and of `--export`: `topic,partition,offset`, or with the group in front.
//!
//! Source: Kafka `CsvUtils`. Text is put in quotes as Jackson's CSV writer does: longer than 24 characters, or with a
//! character at or below the comma.

use super::Plans;
use crate::ToolError;

/// The longest text that Jackson looks through; a longer one is put in quotes.
const UNQUOTED_MAX: usize = 24;

/// The plans of a file, for these groups.
///
/// # Errors
/// The file cannot be read, or a line is none.
pub fn load(path: &str, groups: &[&str]) -> Result<Plans, ToolError> {
    let read = std::fs::read_to_string(path);
    let read = read.map_err(|error| ToolError::Usage(format!("{path} cannot be read: {error}")))?;
    parse(&read, groups).map_err(|line| {
        ToolError::Usage(format!(
            "{path}: '{line}' is not topic,partition,offset, nor group,topic,partition,offset. Example: orders,0,42"
        ))
    })
}

/// # Errors
/// The first line that cannot be read.
pub fn parse(text: &str, groups: &[&str]) -> Result<Plans, String> {
    let mut plans = Plans::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let fields = fields(line).ok_or_else(|| line.to_owned())?;
        let fields: Vec<&str> = fields.iter().map(|field| field.trim()).collect();
        let (group, topic, partition, offset) = match (&fields[..], groups) {
            ([topic, partition, offset], [group]) => (*group, *topic, *partition, *offset),
            ([group, topic, partition, offset], _) => (*group, *topic, *partition, *offset),
            _ => return Err(line.to_owned()),
        };
        let (Ok(partition), Ok(offset)) = (partition.parse(), offset.parse()) else {
            return Err(line.to_owned());
        };
        plans.entry(group.to_owned()).or_default().insert((topic.to_owned(), partition), offset);
    }
    Ok(plans)
}

/// The fields of a line, without their quotes; `None`: a quote is not closed.
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
            letter => field.push(letter),
        }
    }
    fields.push(field);
    (!is_quoted).then_some(fields)
}

/// Lines for `--from-file`; of one group without its name.
pub fn export(plans: &Plans) -> Vec<String> {
    let is_of_one_group = plans.len() == 1;
    let mut lines = Vec::new();
    for (group, plan) in plans {
        for ((topic, partition), offset) in plan {
            let group = if is_of_one_group { String::new() } else { quoted(group) + "," };
            lines.push(format!("{group}{},{partition},{offset}", quoted(topic)));
        }
    }
    lines
}

fn quoted(text: &str) -> String {
    if text.chars().count() <= UNQUOTED_MAX && text.chars().all(|letter| letter > ',') {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}
