//! Screens on ratatui's terminal for tests, 80 × 24.

use super::super::facts::Totals;
use super::super::sheet::Rows;
use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::BTreeMap;

fn status() -> Status {
    Status { connect: "--bootstrap-server h:1".into(), interval_s: 5.0, trouble: None }
}

fn of_topics(names: &[&str]) -> Snapshot {
    let row = |name: &&str| {
        let mut row = vec![Cell::text(*name)];
        row.extend([3.0, 2.0, 0.0, 0.0, 1234.5, 1e6, 2e6, 5e9].map(Cell::Number));
        row
    };
    let rows = Rows { rows: names.iter().map(row).collect(), notes: Vec::new() };
    Snapshot {
        taken_ms: 45_296_000,
        cluster: "c-1".into(),
        nodes: 3,
        controller: 2,
        totals: Totals { topics: names.len(), partitions: 6, under_replicated: 1, leaderless: 0 },
        sheets: BTreeMap::from([(View::Topics, Sheet { columns: columns(View::Topics), rows })]),
        notes: Vec::new(),
    }
}

fn terminal(snapshot: &Snapshot, viewing: &Viewing, status: &Status, size: (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a terminal");
    let drawn = terminal
        .draw(|frame| draw(Some(snapshot), viewing, status, frame.area(), frame.buffer_mut()))
        .expect("drawn");
    drawn.buffer.clone()
}

fn screen(snapshot: &Snapshot, viewing: &Viewing) -> Vec<String> {
    plain(&terminal(snapshot, viewing, &status(), (80, 24))).lines().map(str::to_owned).collect()
}

fn press(viewing: &mut Viewing, code: KeyCode) {
    viewing.press(KeyEvent::new(code, KeyModifiers::NONE), 40);
}

#[test]
fn screen_of_topics_fits_80_columns() {
    let lines = screen(&of_topics(&["orders", "a-topic-with-a-long-name"]), &Viewing::new(View::Topics));
    let expected = [
        "barnabas top  c-1  3 nodes  12:34:56 UTC  every 5 s",
        " 1 nodes [2 topics] 3 groups  4 clients  5 hotspots",
        "2 topics, 6 partitions: 1 under-replicated, 0 without a leader; controller 2",
        "topic                 part  RF  under  dead    rec/s▾     in/s    out/s     size",
        "a-topic-with-a-long…     3   2      0     0     1,234   1.0 MB   2.0 MB  5.00 GB",
        "orders                   3   2      0     0     1,234   1.0 MB   2.0 MB  5.00 GB",
    ];
    assert_eq!(lines[..6], expected);
    assert!(lines[23].starts_with("q leave") && lines[23].chars().count() <= 80, "{lines:?}");
}

#[test]
fn title_has_room_for_a_cluster_id() {
    let snapshot = Snapshot { cluster: "vORHPc3pTJi72MNc643Y7A".into(), ..of_topics(&[]) };
    let paces = Status { interval_s: 86_400.0, ..status() };
    let buffer = terminal(&snapshot, &Viewing::new(View::Topics), &paces, (80, 24));
    assert!(plain(&buffer).lines().next().is_some_and(|title| title.ends_with("every 86400 s")));
}

#[test]
fn every_view_has_room_for_its_columns() {
    for view in View::ALL {
        let widths = widths(columns(view), 80);
        let shown = widths.iter().filter(|width| **width > 0).count() as u16;
        assert!(widths.iter().sum::<u16>() + shown - 1 <= 80, "{view:?}: {widths:?}");
        let heading = |(column, width): (&Column, &u16)| {
            *width == 0 || column.heading.chars().count() < usize::from(*width)
        };
        assert!(
            columns(view).iter().zip(&widths).all(heading),
            "{view:?}: the mark of the order has no room"
        );
    }
}

#[test]
fn marked_row_stays_on_the_screen() {
    let names: Vec<String> = (0..100).map(|at| format!("t{at:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let snapshot = of_topics(&names);
    let mut viewing = Viewing::new(View::Topics);
    for at in [0, 18, 19, 57, 99, 500] {
        viewing.selected = at;
        let buffer = terminal(&snapshot, &viewing, &status(), (80, 24));
        let is_marked = |y: &u16| buffer[(0, *y)].modifier.contains(Modifier::REVERSED) && *y > 1;
        let marked: Vec<u16> = (0..24).filter(is_marked).collect();
        let line = |y: u16| (0..3).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        assert_eq!(marked.len(), 1, "at {at}");
        assert_eq!(line(marked[0]), format!("t{:02}", at.min(99)));
    }
}

#[test]
fn names_cannot_write_to_the_terminal() {
    let lines = screen(&of_topics(&["a\u{1b}[2Jb\nc\u{9b}"]), &Viewing::new(View::Topics));
    let row = &lines[4];
    assert!(row.starts_with("a[2Jbc "), "{row:?}");
    assert!(row.chars().all(|letter| !letter.is_control()));
}

#[test]
fn details_show_whole_names_and_a_command() {
    let snapshot = of_topics(&["it's a topic with a name that is longer than the column of names"]);
    let mut viewing = Viewing::new(View::Topics);
    press(&mut viewing, KeyCode::Enter);
    let text = screen(&snapshot, &viewing).join("\n");
    assert!(text.contains("longer than the"), "{text}");
    assert!(text.contains("$ barnabas topics --bootstrap-server h:1 --describe --topic 'it'\\''s"), "{text}");
    assert!(text.contains("rec") && text.contains("records_in_per_second    1,234"), "{text}");
}

#[test]
fn help_filter_and_trouble_are_shown() {
    let snapshot = of_topics(&["orders"]);
    let mut viewing = Viewing::new(View::Topics);
    press(&mut viewing, KeyCode::Char('?'));
    let text = screen(&snapshot, &viewing).join("\n");
    assert!(KEYS.iter().all(|(_, what)| text.contains(what)), "{text}");
    press(&mut viewing, KeyCode::Esc);
    press(&mut viewing, KeyCode::Char('/'));
    press(&mut viewing, KeyCode::Char('x'));
    let lines = screen(&snapshot, &viewing);
    assert_eq!((&*lines[4], &*lines[23]), ("None has that text.", "/x_"));
    let trouble = Status { trouble: Some("h:1 does not answer".into()), ..status() };
    let text = plain(&terminal(&snapshot, &Viewing::new(View::Topics), &trouble, (80, 24)));
    assert!(text.ends_with("! h:1 does not answer"));
}

#[test]
fn any_size_of_terminal_is_drawn() {
    let mut snapshot = of_topics(&["orders"]);
    snapshot.notes = vec!["a note that is longer than narrow terminals are, with words".to_owned()];
    for view in View::ALL {
        for size in [(1, 1), (1, 2), (5, 3), (20, 5), (79, 24), (300, 100)] {
            terminal(&snapshot, &Viewing::new(view), &status(), size);
        }
    }
}

#[test]
fn long_notes_are_broken_at_blanks() {
    assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
    assert_eq!(wrapped("abcdefghijk", 8), ["abcdefgh", "ijk"]);
}
