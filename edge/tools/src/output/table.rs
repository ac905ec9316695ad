//! A table that is printed in columns, as Kafka's tools print theirs, or as JSON.

use crate::command_line::args::{text, value};
use crate::{ToolError, say};
use clap::{Arg, ArgMatches};
use serde_json::{Map, Number, Value};

const FLAG: &str = "output";
/// What stands in a cell without a value.
pub const MISSING: &str = "-";

/// How a tool of Kafka's separates columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A blank between columns; each as wide as its longest cell, and no narrower than its minimum.
    Blanks,
    /// The same, with every column as wide as the widest.
    EqualBlanks,
    /// A tab behind each column, which is as wide as its longest cell or its heading.
    Tabs,
}

#[derive(Debug)]
struct Column {
    heading: &'static str,
    /// Characters; 0: cells are not filled up.
    width_min: usize,
    is_number: bool,
}

/// Headings, rows, and their layout.
#[derive(Debug)]
pub struct Table {
    layout: Layout,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// `--output text|json`.
pub fn output() -> Arg {
    value(FLAG, "text|json", "How the result is printed (default: text, as Kafka's tool prints it)")
        .value_parser(["text", "json"])
}

pub fn is_json(matches: &ArgMatches) -> bool {
    text(matches, FLAG) == Some("json")
}

impl Table {
    pub fn new(layout: Layout) -> Self {
        Self { layout, columns: Vec::new(), rows: Vec::new() }
    }

    /// Adds a column of text.
    pub fn text(mut self, heading: &'static str, width_min: usize) -> Self {
        self.columns.push(Column { heading, width_min, is_number: false });
        self
    }

    /// Adds a column of numbers, which JSON shows as such.
    pub fn number(mut self, heading: &'static str, width_min: usize) -> Self {
        self.columns.push(Column { heading, width_min, is_number: true });
        self
    }

    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// The heading and the rows.
    pub fn lines(&self) -> Vec<String> {
        let headings = self.columns.iter().map(|column| column.heading.to_owned()).collect();
        let widths = self.widths();
        let line = |cells: &Vec<String>| self.line(cells, &widths);
        std::iter::once(&headings).chain(&self.rows).map(line).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let longest = |at: usize| self.rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let width = |(at, column): (usize, &Column)| match (self.layout, column.width_min) {
            (Layout::Blanks, 0) => 0,
            (Layout::Tabs, _) => longest(at).max(column.heading.len()),
            (_, width_min) => longest(at).max(width_min),
        };
        let widths: Vec<usize> = self.columns.iter().enumerate().map(width).collect();
        match self.layout {
            Layout::EqualBlanks => vec![widths.iter().copied().max().unwrap_or(0); widths.len()],
            _ => widths,
        }
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let cells = cells.iter().zip(widths).map(|(cell, &width)| format!("{cell:<width$}"));
        match self.layout {
            Layout::Tabs => cells.map(|cell| cell + "\t").collect(),
            _ => cells.collect::<Vec<_>>().join(" "),
        }
    }

    /// An object for each row. Names are the headings in the style of Kafka's JSON: `CURRENT-OFFSET` is
    /// `currentOffset`. A missing value is null.
    fn objects(&self) -> Vec<Value> {
        let object = |row: &Vec<String>| {
            let fields =
                self.columns.iter().zip(row).map(|(column, cell)| (column.name(), column.json(cell)));
            Value::Object(fields.collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }

    /// Prints it in the way that `matches` asks for.
    ///
    /// # Errors
    /// Standard output takes no more.
    pub fn print(&self, matches: &ArgMatches) -> Result<(), ToolError> {
        if is_json(matches) {
            return print_json([self]);
        }
        self.print_text()
    }

    /// # Errors
    /// Standard output takes no more.
    pub fn print_text(&self) -> Result<(), ToolError> {
        self.lines().iter().try_for_each(|line| say(line))
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Column {
    fn name(&self) -> String {
        let heading =
            self.heading.trim_start_matches('#').split(['(', '%']).next().unwrap_or_default().trim();
        let words =
            heading.split(['-', ' ']).filter(|word| !word.is_empty()).enumerate().map(|(at, word)| {
                let is_shouted = word.chars().all(|letter| !letter.is_lowercase());
                let word = if is_shouted { word.to_lowercase() } else { word.to_owned() };
                let (first, rest) = word.split_at(word.len().min(1));
                let first = if at == 0 { first.to_lowercase() } else { first.to_uppercase() };
                first + rest
            });
        words.collect()
    }

    fn json(&self, cell: &str) -> Value {
        if cell == MISSING {
            return Value::Null;
        }
        match cell.parse::<i64>() {
            Ok(number) if self.is_number => Value::Number(Number::from(number)),
            _ => Value::String(cell.to_owned()),
        }
    }
}

/// Prints the rows of tables as one list of JSON.
///
/// # Errors
/// Standard output takes no more.
pub fn print_json<'a>(tables: impl IntoIterator<Item = &'a Table>) -> Result<(), ToolError> {
    say(&Value::Array(tables.into_iter().flat_map(Table::objects).collect()).to_string())
}

/// The value, or what stands for a missing one.
pub fn cell<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| MISSING.to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_kafkas() {
        let mut table =
            Table::new(Layout::Blanks).text("GROUP", 8).number("CURRENT-OFFSET", 15).text("HOST", 0);
        table.row(["g", "7", "/127.0.0.1"]);
        table.row(["longer-group", "-", "-"]);
        assert_eq!(
            table.lines(),
            [
                "GROUP        CURRENT-OFFSET  HOST",
                "g            7               /127.0.0.1",
                "longer-group -               -",
            ]
        );
        let mut table = Table::new(Layout::Tabs).text("Id", 0).number("N", 0);
        table.row(["abc", "1"]);
        assert_eq!(table.lines(), ["Id \tN\t", "abc\t1\t"]);
        let mut table = Table::new(Layout::EqualBlanks).text("A", 3).text("B", 3);
        table.row(["a", "bbbb"]);
        assert_eq!(table.lines(), ["A    B   ", "a    bbbb"]);
    }

    #[test]
    fn json_names_fields_after_headings() {
        let mut table = Table::new(Layout::Blanks)
            .text("GROUP", 1)
            .number("CURRENT-OFFSET", 1)
            .number("#PARTITIONS", 1)
            .text("COORDINATOR (ID)", 1)
            .text("TransactionalId", 1)
            .number("LAG", 1);
        table.row(["12", "7", "2", "h:1  (1)", "t", "-"]);
        assert_eq!(
            Value::from(table.objects()).to_string(),
            r#"[{"coordinator":"h:1  (1)","currentOffset":7,"group":"12","lag":null,"partitions":2,"transactionalId":"t"}]"#
        );
    }
}
