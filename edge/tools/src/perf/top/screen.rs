//! The screen: a snapshot and what is looked at → cells of a terminal. For 80 × 24, and legible without colours.
//!
//! Pure: `--once` prints the same cells as text.

use super::sheet::{Cell, Column, HIDDEN, REST, Sheet, View};
use super::sheets::{Snapshot, columns};
use super::viewing::{KEYS, Over, Viewing};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// Lines of notes above a table; what is longer is cut.
const NOTES_MAX: usize = 6;

/// What is shown beside the snapshot.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// The flags by which a command reaches the same cluster.
    pub connect: String,
    /// Between two looks.
    pub interval_s: f64,
    /// Why there is no newer snapshot.
    pub trouble: Option<String>,
}

/// Lines from the top of an area.
struct Lines<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    y: u16,
}

impl Lines<'_> {
    fn left(&self) -> usize {
        usize::from(self.area.bottom().saturating_sub(self.y))
    }

    fn line(&mut self, text: &str, style: Style) {
        if self.left() > 0 {
            let width = usize::from(self.area.width);
            self.buffer.set_stringn(self.area.x, self.y, text, width, style);
            self.y += 1;
        }
    }
}

/// Draws all of `area`.
pub fn draw(
    snapshot: Option<&Snapshot>,
    viewing: &Viewing,
    status: &Status,
    area: Rect,
    buffer: &mut Buffer,
) {
    if area.height < 2 || area.width == 0 {
        return;
    }
    let body = Rect { height: area.height - 1, ..area };
    let mut lines = Lines { buffer, area: body, y: area.y };
    lines.line(&title(snapshot, viewing, status), Style::new());
    tabs(&mut lines, viewing.view);
    match (viewing.over, snapshot) {
        (Over::Help, _) => help(&mut lines),
        (_, None) => lines.line("Asking the cluster …", Style::new()),
        (over, Some(snapshot)) => {
            lines.line(&totals(snapshot), Style::new());
            match snapshot.sheets.get(&viewing.view) {
                None => lines.line("Asking the cluster …", Style::new()),
                Some(sheet) if over == Over::Details => details(&mut lines, sheet, viewing, status),
                Some(sheet) => table(&mut lines, sheet, snapshot, viewing),
            }
        }
    }
    let foot = Rect { y: area.bottom() - 1, height: 1, ..area };
    let mut lines = Lines { buffer: lines.buffer, area: foot, y: foot.y };
    lines.line(&footer(viewing, status), Style::new().add_modifier(Modifier::DIM));
}

fn title(snapshot: Option<&Snapshot>, viewing: &Viewing, status: &Status) -> String {
    let Some(snapshot) = snapshot else { return "barnabas top".to_owned() };
    let seconds = snapshot.taken_ms.div_euclid(1000).rem_euclid(86_400);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let pace = if viewing.is_paused { "paused".to_owned() } else { format!("every {} s", status.interval_s) };
    format!(
        "barnabas top  {}  {}  {hours:02}:{minutes:02}:{seconds:02} UTC  {pace}",
        snapshot.cluster,
        several(snapshot.nodes, "node")
    )
}

fn several(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn tabs(lines: &mut Lines<'_>, view: View) {
    let (y, mut x) = (lines.y, lines.area.x);
    if lines.left() == 0 {
        return;
    }
    for (at, tab) in View::ALL.into_iter().enumerate() {
        let (text, style) = match tab == view {
            true => (format!("[{} {}]", at + 1, tab.name()), Style::new().add_modifier(Modifier::REVERSED)),
            false => (format!(" {} {} ", at + 1, tab.name()), Style::new()),
        };
        let room = usize::from(lines.area.right().saturating_sub(x));
        x = lines.buffer.set_stringn(x, y, text, room, style).0;
    }
    lines.y += 1;
}

fn totals(snapshot: &Snapshot) -> String {
    let totals = &snapshot.totals;
    format!(
        "{}, {}: {} under-replicated, {} without a leader; controller {}",
        several(totals.topics, "topic"),
        several(totals.partitions, "partition"),
        totals.under_replicated,
        totals.leaderless,
        snapshot.controller
    )
}

fn help(lines: &mut Lines<'_>) {
    lines.line("", Style::new());
    for (keys, what) in KEYS {
        lines.line(&format!("  {keys:<14} {what}"), Style::new());
    }
    lines.line("", Style::new());
    lines.line("  \"-\": the cluster does not tell it, or there is no second look yet.", Style::new());
}

/// A width for each column; 0: not shown.
fn widths(columns: &[Column], width: u16) -> Vec<u16> {
    let shown = || columns.iter().filter(|column| column.width != HIDDEN);
    let fixed: u16 = shown().map(|column| if column.width == REST { 0 } else { column.width }).sum();
    let gaps = shown().count().saturating_sub(1) as u16;
    let rest = width.saturating_sub(fixed + gaps).max(8);
    columns.iter().map(|column| if column.width == REST { rest } else { column.width }).collect()
}

fn row(lines: &mut Lines<'_>, columns: &[Column], cells: &[String], style: Style) {
    if lines.left() == 0 {
        return;
    }
    let (y, mut x) = (lines.y, lines.area.x);
    if style.add_modifier.contains(Modifier::REVERSED) {
        lines.buffer.set_style(Rect { y, height: 1, ..lines.area }, style);
    }
    for ((column, width), cell) in columns.iter().zip(widths(columns, lines.area.width)).zip(cells) {
        let room = width.min(lines.area.right().saturating_sub(x));
        if room == 0 {
            continue;
        }
        let blanks = if column.is_text() { 0 } else { width.saturating_sub(cell.chars().count() as u16) };
        let at = (x + blanks).min(lines.area.right());
        lines.buffer.set_stringn(at, y, cell, usize::from(room.saturating_sub(blanks)), style);
        x = (x + width + 1).min(lines.area.right());
    }
    lines.y += 1;
}

fn table(lines: &mut Lines<'_>, sheet: &Sheet, snapshot: &Snapshot, viewing: &Viewing) {
    let notes = sheet.rows.notes.iter().chain(&snapshot.notes);
    let notes: Vec<String> =
        notes.flat_map(|note| wrapped(note, usize::from(lines.area.width))).take(NOTES_MAX).collect();
    notes.iter().for_each(|note| lines.line(note, Style::new()));
    let widths = widths(sheet.columns, lines.area.width);
    let sorting = viewing.sorting();
    let heading = |(at, column): (usize, &Column)| match (at == sorting.column, sorting.is_descending) {
        (true, true) => format!("{}▾", column.heading),
        (true, false) => format!("{}▴", column.heading),
        (false, _) => column.heading.to_owned(),
    };
    let headings: Vec<String> = sheet.columns.iter().enumerate().map(heading).collect();
    row(lines, sheet.columns, &headings, Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED));
    let order = sheet.order(sorting, &viewing.filter);
    let height = lines.left().max(1);
    let selected = viewing.selected.min(order.len().saturating_sub(1));
    let first = (selected / height) * height;
    for (at, index) in order.iter().enumerate().skip(first).take(height) {
        let cells = sheet.columns.iter().zip(&sheet.rows.rows[*index]).zip(&widths);
        let cells: Vec<String> =
            cells.map(|((column, cell), width)| column.fit(cell, usize::from(*width))).collect();
        let is_marked = at == selected;
        let style = if is_marked { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        row(lines, sheet.columns, &cells, style);
    }
    if order.is_empty() {
        lines.line(
            if viewing.filter.is_empty() { "There are none." } else { "None has that text." },
            Style::new(),
        );
    }
}

/// All columns of the marked row, and a command that tells more.
fn details(lines: &mut Lines<'_>, sheet: &Sheet, viewing: &Viewing, status: &Status) {
    let order = sheet.order(viewing.sorting(), &viewing.filter);
    let Some(cells) = order.get(viewing.selected.min(order.len().saturating_sub(1))) else { return };
    let cells = &sheet.rows.rows[*cells];
    lines.line("", Style::new());
    let width = usize::from(lines.area.width);
    for (column, cell) in sheet.columns.iter().zip(cells) {
        let text = format!("  {:<24} {}", column.key, column.show(cell));
        wrapped(&text, width).iter().for_each(|line| lines.line(line, Style::new()));
    }
    lines.line("", Style::new());
    for line in wrapped(&command(viewing.view, cells, &status.connect), width) {
        lines.line(&line, Style::new());
    }
}

/// The command that describes a row.
pub fn command(view: View, cells: &[Cell], connect: &str) -> String {
    let text = |key: &str| {
        let at = columns(view).iter().position(|column| column.key == key);
        match at.and_then(|at| cells.get(at)) {
            Some(Cell::Text(text)) => quoted(text),
            Some(Cell::Number(number)) => number.to_string(),
            _ => String::new(),
        }
    };
    let words = match view {
        View::Nodes => format!("log-dirs {connect} --describe --broker-list {}", text("node")),
        View::Topics => format!("topics {connect} --describe --topic {}", text("topic")),
        View::Groups => {
            let tool = match &*text("kind") {
                "share" => "share-groups",
                "streams" => "streams-groups",
                _ => "consumer-groups",
            };
            format!("{tool} {connect} --describe --group {}", text("group"))
        }
        View::Clients => format!("hotspots {connect}"),
        View::Hotspots => format!("hotspots {connect} --broker-list {}", text("node")),
    };
    format!("$ barnabas {words}")
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn footer(viewing: &Viewing, status: &Status) -> String {
    match &status.trouble {
        _ if viewing.is_typing => format!("/{}_", viewing.filter),
        Some(trouble) => format!("! {trouble}"),
        None if !viewing.filter.is_empty() => format!("only with \"{}\": Esc shows all", viewing.filter),
        None => "q leave  ? help  1-5 views  j k move  Enter details  s r sort  / filter  p pause".to_owned(),
    }
}

/// Lines of at most `width` letters, broken at blanks where there are any.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while rest.chars().count() > width.max(8) {
        let end = rest.char_indices().nth(width.max(8)).map_or(rest.len(), |(at, _)| at);
        let cut = rest[..end].rfind(' ').filter(|at| !rest[..*at].trim().is_empty()).unwrap_or(end);
        lines.push(rest[..cut].to_owned());
        rest = rest[cut..].trim_start();
    }
    lines.push(rest.to_owned());
    lines
}

/// A buffer as lines of text, without blanks at their ends.
pub fn plain(buffer: &Buffer) -> String {
    let area = buffer.area;
    let line = |y| (area.left()..area.right()).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    let lines = (area.top()..area.bottom()).map(|y| line(y).trim_end().to_owned() + "\n");
    lines.collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests;
