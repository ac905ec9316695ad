//! What the person at the keyboard looks at, and what each key changes.
//!
//! Pure: a key in, the next state out.

use super::sheet::{Sorting, View};
use super::sheets::{columns, first_sorting};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Letters of a filter.
const FILTER_MAX: usize = 64;
/// Rows by which a page moves.
const PAGE: usize = 15;

/// The keys, as the help shows them.
pub const KEYS: &[(&str, &str)] = &[
    ("1 2 3 4 5", "nodes, topics, groups, clients, hotspots"),
    ("Tab, → and ←", "the next and the previous view"),
    ("j k, ↓ ↑", "a row down, up"),
    ("PgDn PgUp", "a page down, up"),
    ("g G, Home End", "the first row, the last"),
    ("Enter", "all figures of the row, and the command that describes it"),
    ("s S", "sort by the next column, by the one before"),
    ("r", "reverse the order"),
    ("/", "show rows that contain a text; Enter keeps it, Esc removes it"),
    ("Space", "look again now"),
    ("p", "pause, and go on"),
    ("? h", "this help"),
    ("q, Ctrl-C", "leave"),
];

/// What covers the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    Nothing,
    Help,
    Details,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Stay,
    /// Another view, or a wish: the cluster is asked at once.
    Look,
    Leave,
}

/// See the file's header.
#[derive(Debug, Clone)]
pub struct Viewing {
    pub view: View,
    pub sortings: [Sorting; 5],
    /// The row that is marked, in the order shown.
    pub selected: usize,
    pub filter: String,
    pub is_typing: bool,
    pub is_paused: bool,
    pub over: Over,
}

impl Viewing {
    pub fn new(view: View) -> Self {
        Self {
            view,
            sortings: View::ALL.map(first_sorting),
            selected: 0,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            over: Over::Nothing,
        }
    }

    pub fn sorting(&self) -> Sorting {
        self.sortings[self.view as usize]
    }

    /// `rows`: how many the filter leaves.
    pub fn press(&mut self, key: KeyEvent, rows: usize) -> Next {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Next::Leave;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Next::Stay;
        }
        if self.over != Over::Nothing {
            self.over = Over::Nothing;
            return if key.code == KeyCode::Char('q') { Next::Leave } else { Next::Stay };
        }
        let last = rows.saturating_sub(1);
        match key.code {
            KeyCode::Char('q') => return Next::Leave,
            KeyCode::Char(' ') => return Next::Look,
            KeyCode::Char(digit @ '1'..='5') => return self.go(View::ALL[digit as usize - '1' as usize]),
            KeyCode::Tab | KeyCode::Right => return self.go(View::ALL[(self.view as usize + 1) % 5]),
            KeyCode::BackTab | KeyCode::Left => return self.go(View::ALL[(self.view as usize + 4) % 5]),
            KeyCode::Char('j') | KeyCode::Down => self.selected = (self.selected + 1).min(last),
            KeyCode::Char('k') | KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::PageDown => self.selected = (self.selected + PAGE).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(PAGE),
            KeyCode::Char('g') | KeyCode::Home => self.selected = 0,
            KeyCode::Char('G') | KeyCode::End => self.selected = last,
            KeyCode::Enter if rows > 0 => self.over = Over::Details,
            KeyCode::Char('?' | 'h') => self.over = Over::Help,
            KeyCode::Char('s') => self.sort_by(1),
            KeyCode::Char('S') => self.sort_by(-1),
            KeyCode::Char('r') => {
                let sorting = &mut self.sortings[self.view as usize];
                sorting.is_descending = !sorting.is_descending;
            }
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Esc => self.filter.clear(),
            _ => {}
        }
        Next::Stay
    }

    fn go(&mut self, view: View) -> Next {
        if view == self.view {
            return Next::Stay;
        }
        (self.view, self.selected) = (view, 0);
        Next::Look
    }

    fn type_filter(&mut self, code: KeyCode) {
        self.selected = 0;
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) if self.filter.chars().count() < FILTER_MAX => self.filter.push(letter),
            _ => {}
        }
    }

    /// Columns that are not in the table are passed over.
    fn sort_by(&mut self, step: isize) {
        let columns = columns(self.view);
        let sorting = &mut self.sortings[self.view as usize];
        let mut at = sorting.column;
        loop {
            at = at.checked_add_signed(step).filter(|at| *at < columns.len()).unwrap_or(match step {
                1 => 0,
                _ => columns.len() - 1,
            });
            if columns[at].width != super::sheet::HIDDEN {
                break;
            }
        }
        *sorting = Sorting { column: at, is_descending: !columns[at].is_text() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(viewing: &mut Viewing, keys: &str) -> Next {
        let press = |letter| viewing.press(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE), 40);
        keys.chars().map(press).last().expect("a key")
    }

    fn strike(viewing: &mut Viewing, code: KeyCode) -> Next {
        viewing.press(KeyEvent::new(code, KeyModifiers::NONE), 40)
    }

    #[test]
    fn another_view_is_asked_for_at_once() {
        let mut viewing = Viewing::new(View::Nodes);
        assert_eq!((press(&mut viewing, "3"), viewing.view), (Next::Look, View::Groups));
        assert_eq!(press(&mut viewing, "3"), Next::Stay);
        strike(&mut viewing, KeyCode::Left);
        assert_eq!(viewing.view, View::Topics);
        strike(&mut viewing, KeyCode::BackTab);
        strike(&mut viewing, KeyCode::BackTab);
        assert_eq!(viewing.view, View::Hotspots);
    }

    #[test]
    fn mark_stays_within_the_rows() {
        let mut viewing = Viewing::new(View::Topics);
        press(&mut viewing, "kjj");
        assert_eq!(viewing.selected, 2);
        press(&mut viewing, "Gj");
        assert_eq!(viewing.selected, 39);
        strike(&mut viewing, KeyCode::PageUp);
        assert_eq!(viewing.selected, 24);
        let end = KeyEvent::new(KeyCode::End, KeyModifiers::NONE);
        viewing.press(end, 0);
        assert_eq!(viewing.selected, 0);
    }

    #[test]
    fn letters_belong_to_the_filter_while_it_is_typed() {
        let mut viewing = Viewing::new(View::Topics);
        press(&mut viewing, "/q1");
        assert_eq!((&*viewing.filter, viewing.view), ("q1", View::Topics));
        strike(&mut viewing, KeyCode::Backspace);
        strike(&mut viewing, KeyCode::Enter);
        assert_eq!((press(&mut viewing, "q"), &*viewing.filter), (Next::Leave, "q"));
        strike(&mut viewing, KeyCode::Esc);
        assert_eq!(viewing.filter, "");
        press(&mut viewing, "/");
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(viewing.press(ctrl_c, 0), Next::Leave);
        press(&mut viewing, &"x".repeat(100));
        assert_eq!(viewing.filter.len(), FILTER_MAX);
    }

    #[test]
    fn sorting_goes_round_the_columns_shown() {
        let mut viewing = Viewing::new(View::Nodes);
        press(&mut viewing, "S");
        assert_eq!(columns(View::Nodes)[viewing.sorting().column].key, "address");
        assert!(!viewing.sorting().is_descending, "texts rise");
        press(&mut viewing, "s");
        assert_eq!(viewing.sorting(), Sorting { column: 0, is_descending: true });
        press(&mut viewing, "r");
        assert!(!viewing.sorting().is_descending);
    }

    #[test]
    fn any_key_closes_the_help() {
        let mut viewing = Viewing::new(View::Nodes);
        press(&mut viewing, "?");
        assert_eq!(viewing.over, Over::Help);
        assert_eq!((press(&mut viewing, "3"), viewing.over), (Next::Stay, Over::Nothing));
        assert_eq!(viewing.view, View::Nodes);
    }
}
