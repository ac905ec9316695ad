//! A view's rows: cells with units, how they are sorted and filtered, and how each is shown.
//!
//! Pure. The screen and JSON are made from the same cells.

use super::super::hotspots::units::{bytes, duration, grouped};
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;

/// Rows of one view that are kept; a note counts the others.
pub const ROWS_MAX: usize = 10_000;
/// A column as wide as the others leave room.
pub const REST: u16 = u16::MAX;
/// A column that JSON and the details show, and the table does not.
pub const HIDDEN: u16 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum View {
    Nodes,
    Topics,
    Groups,
    Clients,
    Hotspots,
}

impl View {
    pub const ALL: [Self; 5] = [Self::Nodes, Self::Topics, Self::Groups, Self::Clients, Self::Hotspots];
    pub const NAMES: [&str; 5] = ["nodes", "topics", "groups", "clients", "hotspots"];

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|view| view.name() == name)
    }
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Text,
    /// A whole number.
    Count,
    /// Things a second, or of another kind that may be a part of one.
    Rate,
    /// The same, with a sign.
    Trend,
    Bytes,
    /// 1 is shown as 100 %.
    Share,
    Seconds,
}

#[derive(Debug)]
pub struct Column {
    /// Its name in JSON, with the unit last.
    pub key: &'static str,
    pub heading: &'static str,
    pub width: u16,
    pub form: Form,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(String),
    Number(f64),
    /// The cluster does not tell it, or not yet.
    Unseen,
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn count(count: usize) -> Self {
        Self::Number(count as f64)
    }

    pub fn seen(value: Option<f64>) -> Self {
        value.filter(|value| value.is_finite()).map_or(Self::Unseen, Self::Number)
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => one.total_cmp(other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            // What is not seen stands below everything.
            (Self::Unseen, Self::Unseen) => Ordering::Equal,
            (Self::Unseen, _) | (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (_, Self::Unseen) | (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

impl Column {
    pub fn is_text(&self) -> bool {
        self.form == Form::Text
    }

    /// The cell in a column of this width. A text that is longer ends with `…`; a number is rounded.
    pub fn fit(&self, cell: &Cell, width: usize) -> String {
        let shown = self.show(cell);
        match cell {
            _ if shown.chars().count() <= width => shown,
            Cell::Number(number) => format!("{number:.0e}"),
            _ => {
                let kept = shown.chars().take(width.saturating_sub(1));
                kept.chain(['…']).take(width).collect()
            }
        }
    }

    /// The cell as a person reads it.
    pub fn show(&self, cell: &Cell) -> String {
        match (cell, self.form) {
            (Cell::Unseen, _) => "-".to_owned(),
            (Cell::Text(text), _) => text.clone(),
            (Cell::Number(number), Form::Bytes) => bytes(*number),
            (Cell::Number(number), Form::Share) => format!("{:.0} %", number * 100.0),
            (Cell::Number(number), Form::Seconds) => duration(*number),
            (Cell::Number(number), Form::Rate) => grouped(*number),
            (Cell::Number(number), Form::Trend) if *number < 0.0 => format!("-{}", grouped(-number)),
            (Cell::Number(number), Form::Trend) => format!("+{}", grouped(*number)),
            (Cell::Number(number), Form::Count | Form::Text) if number.abs() < 99.95 => {
                format!("{number:.0}")
            }
            (Cell::Number(number), Form::Count | Form::Text) => grouped(*number),
        }
    }
}

/// A view's table. Each row has a cell for each column.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    pub rows: Vec<Vec<Cell>>,
    /// Sentences above the table.
    pub notes: Vec<String>,
}

#[derive(Debug)]
pub struct Sheet {
    pub columns: &'static [Column],
    pub rows: Rows,
}

/// The order of a table's rows: a column, and whether the largest come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sorting {
    pub column: usize,
    pub is_descending: bool,
}

impl Sheet {
    /// The indexes of the rows whose text contains `filter`, sorted. Equal ones stand in the order of their names.
    pub fn order(&self, sorting: Sorting, filter: &str) -> Vec<usize> {
        let rows = &self.rows.rows;
        let has = |cell: &Cell| matches!(cell, Cell::Text(text) if text.contains(filter));
        let mut order: Vec<usize> =
            (0..rows.len()).filter(|at| filter.is_empty() || rows[*at].iter().any(has)).collect();
        order.sort_by(|one, other| {
            let (one, other) = (&rows[*one], &rows[*other]);
            let column = sorting.column.min(self.columns.len() - 1);
            let by_column = one[column].order(&other[column]);
            let by_column = if sorting.is_descending { by_column.reverse() } else { by_column };
            by_column.then_with(|| one[0].order(&other[0]))
        });
        order
    }

    /// An object for each row, with the keys of the columns; a cell that is not seen is null.
    pub fn json(&self, order: &[usize]) -> Value {
        let value = |cell: &Cell| match cell {
            Cell::Text(text) => Value::String(text.clone()),
            Cell::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                Value::from(*number as i64)
            }
            Cell::Number(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
            Cell::Unseen => Value::Null,
        };
        let row = |at: &usize| {
            let cells = self.columns.iter().zip(&self.rows.rows[*at]);
            Value::Object(
                cells.map(|(column, cell)| (column.key.to_owned(), value(cell))).collect::<Map<_, _>>(),
            )
        };
        Value::Array(order.iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column { key: "name", heading: "name", width: REST, form: Form::Text },
        Column { key: "lag", heading: "lag", width: 8, form: Form::Count },
    ];

    fn sheet() -> Sheet {
        let row = |name: &str, lag: Cell| vec![Cell::text(name), lag];
        let rows = vec![
            row("b", Cell::Number(7.0)),
            row("c", Cell::Unseen),
            row("a", Cell::Number(7.0)),
            row("d", Cell::Number(0.5)),
        ];
        Sheet { columns: COLUMNS, rows: Rows { rows, notes: Vec::new() } }
    }

    #[test]
    fn rows_are_sorted_with_the_unseen_below() {
        let sorting = |column, is_descending| Sorting { column, is_descending };
        assert_eq!(sheet().order(sorting(1, true), ""), [2, 0, 3, 1]);
        assert_eq!(sheet().order(sorting(1, false), ""), [1, 3, 2, 0]);
        assert_eq!(sheet().order(sorting(9, true), ""), [2, 0, 3, 1], "the last column");
        assert_eq!(sheet().order(sorting(0, true), "b"), [0]);
    }

    #[test]
    fn json_has_numbers_and_null() {
        let told = sheet().json(&[0, 1, 3]).to_string();
        assert_eq!(told, r#"[{"lag":7,"name":"b"},{"lag":null,"name":"c"},{"lag":0.5,"name":"d"}]"#);
    }

    #[test]
    fn numbers_are_shown_with_their_unit() {
        let shown =
            |form, number| Column { key: "", heading: "", width: 0, form }.show(&Cell::Number(number));
        assert_eq!(shown(Form::Count, 3.0), "3");
        assert_eq!(shown(Form::Count, 1_234_567.0), "1,234,567");
        assert_eq!((shown(Form::Trend, 3.0), shown(Form::Trend, -3.0)), ("+3.0".into(), "-3.0".into()));
        assert_eq!((shown(Form::Bytes, 2e9), shown(Form::Share, 0.25)), ("2.00 GB".into(), "25 %".into()));
        assert_eq!(shown(Form::Seconds, 0.25), "250.0 ms");
    }

    #[test]
    fn what_is_too_wide_is_cut_or_rounded() {
        let fit = |at: usize, cell: Cell, width| COLUMNS[at].fit(&cell, width);
        assert_eq!(fit(0, Cell::text("käse-topic"), 5), "käse…");
        assert_eq!(fit(0, Cell::text("käse"), 4), "käse");
        assert_eq!(fit(1, Cell::Number(123_456_789.0), 8), "1e8");
    }
}
