//! What came out: one line for each figure, with its bar where there is one.

use std::time::Duration;

/// The bar of what is right or wrong, whatever the machine has to do besides.
const MUST: &str = "must";

/// One figure.
#[derive(Debug)]
struct Row {
    what: String,
    bar: String,
    ours: String,
    met: Option<bool>,
}

/// The figures of a run, in the order in which they were measured.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
    said: Vec<String>,
}

impl Table {
    /// A heading between figures.
    pub fn heading(&mut self, text: &str) {
        println!("\n== {text}");
        self.rows.push(Row {
            what: format!("**{text}**"),
            bar: String::new(),
            ours: String::new(),
            met: None,
        });
    }

    /// A figure without a bar.
    pub fn note(&mut self, what: &str, ours: impl Into<String>) {
        self.push(what, "", ours.into(), None);
    }

    /// A figure that must be there: `true`, or the run has failed.
    pub fn is(&mut self, what: &str, ours: impl Into<String>, holds: bool) {
        self.push(what, MUST, ours.into(), Some(holds));
    }

    /// A time with the most that it may be.
    pub fn within(&mut self, what: &str, took: Duration, most: Duration) {
        self.push(what, &format!("≤ {}", seconds(most)), seconds(took), Some(took <= most));
    }

    /// A number with the most that it may be.
    pub fn at_most(&mut self, what: &str, ours: u64, most: u64, unit: &str) {
        let (bar, ours_text) =
            (format!("≤ {} {unit}", thousands(most)), format!("{} {unit}", thousands(ours)));
        self.push(what, bar.trim_end(), ours_text.trim_end().to_owned(), Some(ours <= most));
    }

    /// A piece of the last line.
    pub fn say(&mut self, words: String) {
        self.said.push(words);
    }

    fn push(&mut self, what: &str, bar: &str, ours: String, met: Option<bool>) {
        let verdict = verdict(met);
        println!("{what:<74} {bar:>14} {ours:>22} {verdict}");
        self.rows.push(Row { what: what.to_owned(), bar: bar.to_owned(), ours, met });
    }

    /// The bars that were met.
    pub fn met(&self) -> usize {
        self.rows.iter().filter(|row| row.met == Some(true)).count()
    }

    /// What was missed; `only_musts`: without times and sizes, which other work on the machine makes worse.
    pub fn missed(&self, only_musts: bool) -> Vec<&str> {
        let missed = self.rows.iter().filter(|row| row.met == Some(false));
        missed.filter(|row| !only_musts || row.bar == MUST).map(|row| row.what.as_str()).collect()
    }

    /// The table, to be quoted.
    pub fn print(&self) {
        println!("\n| what | bar | Barnabas | |\n|---|---|---|---|");
        for Row { what, bar, ours, met } in &self.rows {
            println!("| {what} | {bar} | {ours} | {} |", verdict(*met));
        }
    }

    /// The one line to be quoted.
    pub fn line(&self) -> String {
        self.said.join("; ")
    }
}

fn verdict(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "met",
        Some(false) => "MISSED",
        None => "",
    }
}

/// A time as people read it.
pub fn seconds(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    match ms {
        ..10.0 => format!("{ms:.1} ms"),
        ..1000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.2} s", ms / 1e3),
    }
}

/// 1234567 as 1,234,567.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
