//! Lists: filtered, sorted, and given page by page. A cursor names the last row that was given, not its place, so that
//! rows that come or go meanwhile neither repeat nor hide others.

use crate::http::call::Place;
use crate::http::problem::Problem;
use crate::http::shape::{Param, Shape};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::cmp::Ordering;

const LIMIT_MAX: usize = 10_000;

pub const QUERY: &[Param] = &[
    Param { name: "q", shape: Shape::Text, about: "Only rows whose name has this text, in any case" },
    Param {
        name: "sort",
        shape: Shape::Text,
        about: "A field of the rows; with - in front from the largest on",
    },
    Param { name: "limit", shape: Shape::Int, about: "At most so many rows, 1 to 10000; absent: all" },
    Param { name: "cursor", shape: Shape::Text, about: "`next` of the page before" },
];

/// A page of a list.
#[derive(Debug, PartialEq)]
pub struct Listed {
    pub data: Vec<Value>,
    /// Rows that the filter lets through, on all pages.
    pub total: usize,
    /// The cursor of the next page; null: this is the last.
    pub next: Option<String>,
}

/// What the query asks of `rows`, whose names are in the field `name`. They are objects with the same fields.
///
/// # Errors
/// A field that the rows do not have; a limit that is none; a cursor of another order.
pub fn listed(at: &Place, mut rows: Vec<Value>, name: &str, fields: &[&str]) -> Result<Listed, Problem> {
    let order = at.query("sort").unwrap_or(name);
    let (field, is_down) = order.strip_prefix('-').map_or((order, false), |field| (field, true));
    if !fields.contains(&field) {
        return Err(Problem::bad(format!(
            "sort takes {}, not '{}'",
            fields.join(", "),
            field.escape_debug()
        )));
    }
    let limit = match at.query("limit") {
        None => usize::MAX,
        Some(word) => {
            let limit = word.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
            limit.ok_or_else(|| Problem::bad(format!("limit takes 1 to {LIMIT_MAX}")))?
        }
    };
    let after = at.query("cursor").map(|word| read(word, order)).transpose()?;
    if let Some(wanted) = at.query("q").map(str::to_lowercase) {
        rows.retain(|row| row[name].as_str().is_some_and(|name| name.to_lowercase().contains(&wanted)));
    }
    let total = rows.len();
    let compared = |one: (&Value, &Value), other: (&Value, &Value)| {
        let by_field = compare(one.0, other.0);
        let by_field = if is_down { by_field.reverse() } else { by_field };
        by_field.then_with(|| compare(one.1, other.1))
    };
    rows.sort_by(|one, other| compared((&one[field], &one[name]), (&other[field], &other[name])));
    if let Some((value, last)) = after {
        rows.retain(|row| compared((&row[field], &row[name]), (&value, &last)).is_gt());
    }
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(|last| write(order, &last[field], &last[name]));
    Ok(Listed { data: rows, total, next })
}

/// Null first, then false, true, numbers, texts.
fn compare(one: &Value, other: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        _ => 3,
    };
    match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Number(one), Value::Number(other)) => one.as_i64().cmp(&other.as_i64()),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        _ => rank(one).cmp(&rank(other)),
    }
}

fn write(order: &str, value: &Value, name: &Value) -> String {
    URL_SAFE_NO_PAD.encode(json!([order, value, name]).to_string())
}

fn read(cursor: &str, order: &str) -> Result<(Value, Value), Problem> {
    let wrong = || Problem::bad("cursor takes the `next` of a page of the same list, sorted the same way");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
    let (sorted, value, name): (String, Value, Value) =
        serde_json::from_slice(&bytes).map_err(|_| wrong())?;
    if sorted == order { Ok((value, name)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[&str] = &["name", "bytes"];

    fn rows() -> Vec<Value> {
        let rows = [("b", json!(5)), ("d", json!(7)), ("a", json!(5)), ("C", Value::Null)];
        rows.into_iter().map(|(name, bytes)| json!({ "name": name, "bytes": bytes })).collect()
    }

    fn asked(query: &str, rows: Vec<Value>) -> Result<Listed, Problem> {
        let at = Place { query: Place::read_query(Some(query)).expect("sound"), ..Default::default() };
        listed(&at, rows, "name", FIELDS)
    }

    fn names(listed: &Listed) -> String {
        listed.data.iter().filter_map(|row| row["name"].as_str()).collect()
    }

    #[test]
    fn list_is_filtered_and_sorted() {
        assert_eq!(names(&asked("", rows()).expect("sound")), "Cabd");
        assert_eq!(names(&asked("sort=-bytes", rows()).expect("sound")), "dabC");
        let one = asked("q=c", rows()).expect("sound");
        assert_eq!((names(&one).as_str(), one.total, one.next), ("C", 1, None));
        for bad in ["sort=size", "limit=0", "limit=10001", "limit=x", "cursor=x", "cursor=e30"] {
            assert_eq!(asked(bad, rows()).expect_err(bad).status, 400);
        }
    }

    #[test]
    fn pages_follow_each_other_while_rows_come_and_go() {
        let mut seen = String::new();
        let (mut query, mut known) = ("sort=bytes&limit=2".to_owned(), rows());
        loop {
            let page = asked(&query, known.clone()).expect("sound");
            seen += &names(&page);
            let Some(next) = page.next else { break };
            // The last row of the page goes, and one comes before it.
            known.retain(|row| row["name"] != "a");
            known.push(json!({ "name": "0", "bytes": 1 }));
            query = format!("sort=bytes&limit=2&cursor={next}");
        }
        assert_eq!(seen, "Cabd");
        let next = asked("limit=1", rows()).expect("sound").next.expect("more");
        assert_eq!(
            asked(&format!("sort=-name&cursor={next}"), rows()).expect_err("another order").status,
            400
        );
    }
}
