//! One field of a JSON value, found by its path and compared as it was written: numbers are decimal texts of any
//! length, never doubles.
//!
//! | path | names |
//! |---|---|
//! | `customer.id` | field `id` of field `customer` |
//! | `lines[0].price` | of the first element of `lines` |
//! | `$`, or an empty one | the whole value |

use crate::http::problem::Problem;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

const STEPS_MAX: usize = 16;

/// A test of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonTest {
    path: Vec<Step>,
    operation: Operation,
    /// `None`: with `exists` alone.
    wanted: Option<Wanted>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Element(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

pub const OPERATIONS: &[&str] = &["exists", "eq", "ne", "lt", "le", "gt", "ge"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Text(String),
    Number(String),
    /// `true`, `false` or `null`.
    Word(String),
}

impl JsonTest {
    /// `wanted`: JSON, or else a text without its quotation marks. Without `operation`: `eq`, or `exists` where
    /// there is nothing to compare with.
    ///
    /// # Errors
    /// The path or the operation is none; a value is missing, or is an object or a list.
    pub fn read(path: &str, operation: Option<&str>, wanted: Option<&str>) -> Result<Self, Problem> {
        let bad = || Problem::bad(format!("op takes one of {}", OPERATIONS.join(", ")));
        let operation = match operation {
            None if wanted.is_none() => Operation::Exists,
            None | Some("eq") => Operation::Equal,
            Some("exists") => Operation::Exists,
            Some("ne") => Operation::NotEqual,
            Some("lt") => Operation::Less,
            Some("le") => Operation::LessOrEqual,
            Some("gt") => Operation::Greater,
            Some("ge") => Operation::GreaterOrEqual,
            Some(_) => return Err(bad()),
        };
        match (operation, wanted) {
            (Operation::Exists, Some(_)) => return Err(Problem::bad("op=exists takes no value")),
            (Operation::Exists, None) => {}
            (_, None) => return Err(Problem::bad("value is missing")),
            (_, Some(_)) => {}
        }
        let wanted = wanted.map(read_wanted).transpose()?;
        Ok(Self { path: steps(path)?, operation, wanted })
    }

    /// Whether `bytes` are JSON whose field passes. A field that is not there passes no test.
    pub fn passes(&self, bytes: &[u8]) -> bool {
        let Some(found) = find(bytes, &self.path) else { return false };
        let Some(wanted) = &self.wanted else { return true };
        let order = compare(found, wanted);
        match self.operation {
            Operation::Exists => true,
            Operation::Equal => order == Some(Ordering::Equal),
            Operation::NotEqual => order != Some(Ordering::Equal),
            Operation::Less => order == Some(Ordering::Less),
            Operation::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Operation::Greater => order == Some(Ordering::Greater),
            Operation::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

fn steps(path: &str) -> Result<Vec<Step>, Problem> {
    let wrong = || Problem::bad("json takes a path such as customer.id or lines[0].price");
    let path = path.strip_prefix('$').unwrap_or(path);
    let path = path.strip_prefix('.').unwrap_or(path);
    let mut steps = Vec::new();
    if path.is_empty() {
        return Ok(steps);
    }
    for part in path.split('.') {
        let (name, mut rest) = part.find('[').map_or((part, ""), |at| part.split_at(at));
        if !name.is_empty() {
            steps.push(Step::Field(name.to_owned()));
        } else if rest.is_empty() || !steps.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let inner = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let (number, behind) = inner.ok_or_else(wrong)?;
            steps.push(Step::Element(number.parse().map_err(|_| wrong())?));
            rest = behind;
        }
    }
    if steps.len() > STEPS_MAX {
        return Err(Problem::bad(format!("json takes a path of {STEPS_MAX} steps at most")));
    }
    Ok(steps)
}

fn read_wanted(text: &str) -> Result<Wanted, Problem> {
    let Ok(value) = serde_json::from_str::<&RawValue>(text) else { return Ok(Wanted::Text(text.to_owned())) };
    match value.get().as_bytes().first() {
        Some(b'"') => Ok(Wanted::Text(
            serde_json::from_str(value.get()).map_err(|error| Problem::bad(format!("value: {error}")))?,
        )),
        Some(b'{' | b'[') => Err(Problem::bad("value takes a text, a number, true, false or null")),
        Some(b't' | b'f' | b'n') => Ok(Wanted::Word(value.get().to_owned())),
        _ => Ok(Wanted::Number(value.get().to_owned())),
    }
}

/// `None`: of two kinds, or of a kind without an order and not the same.
fn compare(found: &str, wanted: &Wanted) -> Option<Ordering> {
    let first = found.as_bytes().first()?;
    match wanted {
        Wanted::Text(wanted) if *first == b'"' => {
            let found: String = serde_json::from_str(found).ok()?;
            Some(found.cmp(wanted))
        }
        Wanted::Number(wanted) if *first == b'-' || first.is_ascii_digit() => {
            Some(Decimal::read(found).cmp(&Decimal::read(wanted)))
        }
        Wanted::Word(wanted) => (found == wanted).then_some(Ordering::Equal),
        Wanted::Text(_) | Wanted::Number(_) => None,
    }
}

/// A number of JSON as sign, digits and where the point is: ±0.d₁d₂… × 10^exponent.
#[derive(Debug, PartialEq, Eq)]
struct Decimal<'a> {
    is_negative: bool,
    exponent: i64,
    /// Without zeros at either end; empty: zero.
    digits: Cow<'a, [u8]>,
}

impl<'a> Decimal<'a> {
    /// `text`: a number of JSON.
    fn read(text: &'a str) -> Self {
        let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        // Beyond 64 bits the sign alone counts.
        let power = power.strip_prefix('+').unwrap_or(power);
        let limit = if power.starts_with('-') { i64::MIN / 4 } else { i64::MAX / 4 };
        let power = power.parse::<i64>().unwrap_or(limit).clamp(i64::MIN / 4, i64::MAX / 4);
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Cow<'a, [u8]> = match part {
            "" => Cow::Borrowed(whole.as_bytes()),
            part => Cow::Owned([whole.as_bytes(), part.as_bytes()].concat()),
        };
        let zeros = all.iter().take_while(|digit| **digit == b'0').count();
        let end = all.len() - all.iter().rev().take_while(|digit| **digit == b'0').count();
        if zeros == all.len() {
            return Self { is_negative: false, exponent: 0, digits: Cow::Borrowed(b"") };
        }
        let digits = match all {
            Cow::Borrowed(all) => Cow::Borrowed(&all[zeros..end]),
            Cow::Owned(all) => Cow::Owned(all[zeros..end].to_vec()),
        };
        Self { is_negative, exponent: power + whole.len() as i64 - zeros as i64, digits }
    }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let (mine, its) = (sign(self), sign(other));
        let size = || self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits));
        match mine.cmp(&its) {
            Ordering::Equal if mine > 0 => size(),
            Ordering::Equal if mine < 0 => size().reverse(),
            order => order,
        }
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What lies at the end of the path, as it was written. The last of fields with one name counts.
fn find<'a>(bytes: &'a [u8], path: &[Step]) -> Option<&'a str> {
    let mut found = serde_json::from_slice::<&RawValue>(bytes).ok()?.get();
    for step in path {
        let value = match step {
            Step::Field(name) => {
                let fields: BTreeMap<String, &RawValue> = serde_json::from_str(found).ok()?;
                *fields.get(name)?
            }
            Step::Element(at) => {
                let elements: Vec<&RawValue> = serde_json::from_str(found).ok()?;
                *elements.get(*at)?
            }
        };
        found = value.get();
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(path: &str, operation: Option<&str>, wanted: Option<&str>, bytes: &str) -> bool {
        JsonTest::read(path, operation, wanted).expect("sound").passes(bytes.as_bytes())
    }

    #[test]
    fn field_is_found_by_its_path() {
        let text = r#"{"a":{"b":[1,{"c":"x\n"}]},"d":null,"a.b":2,"e":1,"e":2}"#;
        for (path, wanted) in
            [("a.b[0]", "1"), ("$.a.b[1].c", r#""x\n""#), ("d", "null"), ("e", "2"), (".e", "2")]
        {
            assert!(passes(path, None, Some(wanted), text), "{path}");
        }
        for path in ["a.c", "a.b[2]", "a.b.c", "d.x", "e[0]", "f", "a[0]"] {
            assert!(!passes(path, None, None, text), "{path}");
            assert!(!passes(path, Some("ne"), Some("1"), text), "{path} is not there");
        }
        assert!(passes("", None, Some("17"), " 17 ") && passes("[1][0]", None, Some("3"), "[1,[3]]"));
        for bytes in ["", "{", r#"{"e":2} x"#, "text", "\u{feff}{}"] {
            assert!(!passes("e", None, None, bytes), "{bytes}");
        }
        for bad in ["a..b", "a[", "a[x]", "a[0", "a.[0]", &["a"; 17].join(".")] {
            assert_eq!(JsonTest::read(bad, None, None).expect_err(bad).status, 400);
        }
    }

    #[test]
    fn numbers_are_compared_as_they_are_written() {
        let order = |one: &str, other: &str| Decimal::read(one).cmp(&Decimal::read(other));
        let rising = [
            "-1e400",
            "-9223372036854775808",
            "-9223372036854775807.5",
            "-1",
            "-0.1",
            "0",
            "1e-400",
            "0.1",
            "1",
            "9007199254740992",
            "9007199254740993",
            "9223372036854775807",
            "18446744073709551615",
            "1234567890123456789012345678901234567890",
            "1e400",
            "1e99999999999999999999",
        ];
        for (at, one) in rising.iter().enumerate() {
            for (place, other) in rising.iter().enumerate() {
                assert_eq!(order(one, other), at.cmp(&place), "{one} {other}");
            }
        }
        for (one, other) in
            [("-0", "0.0e7"), ("1", "1.000"), ("100", "1E+2"), ("0.5", "50e-2"), ("-2.0", "-2")]
        {
            assert_eq!(order(one, other), Ordering::Equal, "{one} {other}");
        }
        let text = r#"{"n":9007199254740993}"#;
        assert!(passes("n", None, Some("9007199254740993"), text));
        assert!(!passes("n", None, Some("9007199254740992"), text), "as doubles they are the same");
        assert!(passes("n", Some("gt"), Some("9007199254740992"), text));
    }

    #[test]
    fn kinds_are_not_mixed() {
        let text = r#"{"n":"7","t":true,"s":"b","o":{}}"#;
        assert!(!passes("n", None, Some("7"), text) && passes("n", None, Some("\"7\""), text));
        assert!(passes("n", Some("ne"), Some("7"), text) && !passes("n", Some("lt"), Some("8"), text));
        assert!(passes("t", None, Some("true"), text) && !passes("t", Some("gt"), Some("false"), text));
        assert!(passes("s", Some("ge"), Some("b"), text) && passes("s", Some("lt"), Some("ba"), text));
        assert!(passes("o", None, None, text) && passes("o", Some("ne"), Some("x"), text));
        for (operation, value) in
            [(Some("eq"), None), (Some("exists"), Some("1")), (Some("like"), Some("1")), (None, Some("[1]"))]
        {
            assert_eq!(JsonTest::read("a", operation, value).expect_err("refused").status, 400);
        }
    }
}
