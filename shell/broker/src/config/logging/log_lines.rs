//! Where log lines are written: one event is one line, whatever names it quotes.
//!
//! Names come from clients, and a name with a line break in it would forge a line of its own. Control characters are
//! written as `\\n` or `\\u{1b}`. A line that is longer than [`LINE_BYTES_MAX`] is cut. The escapes of colours on a
//! terminal stay: names hold none, tracing-subscriber escapes those.
//!
//! Neighbours: config/logging/json_lines.rs, whose lines are JSON; config/logging/log_file.rs.

use std::io::{self, Write};

/// Longer lines quote more than an operator reads.
const LINE_BYTES_MAX: usize = 8 << 10;
const ESCAPE: char = '\u{1b}';

/// Writes each event as one line. tracing-subscriber hands over an event in one call.
#[derive(Debug)]
pub struct Lines<W>(pub W);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        match one_line(event) {
            None => self.0.write_all(event)?,
            Some(line) => self.0.write_all(line.as_bytes())?,
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The line of an event; `None`: it is one as it stands.
fn one_line(event: &[u8]) -> Option<String> {
    let text = event.strip_suffix(b"\n").unwrap_or(event);
    // Above 0x7f are the parts of letters, and the control characters that begin with 0xc2.
    let is_plain = |byte: &u8| !matches!(byte, 0..=0x1a | 0x1c..=0x1f | 0x7f | 0xc2 | 0xe2);
    if text.len() <= LINE_BYTES_MAX && text.iter().all(is_plain) {
        return None;
    }
    let text = String::from_utf8_lossy(text);
    let kept = &text[..text.floor_char_boundary(LINE_BYTES_MAX)];
    let mut line = String::with_capacity(kept.len() + 64);
    for char in kept.chars() {
        // Two of Unicode's separators break lines as well.
        match char {
            ESCAPE => line.push(char),
            '\u{2028}' | '\u{2029}' => line.extend(char.escape_unicode()),
            _ if char.is_control() => line.extend(char.escape_debug()),
            _ => line.push(char),
        }
    }
    if kept.len() < text.len() {
        line.push_str(&format!(" … ({} bytes more)", text.len() - kept.len()));
    }
    line.push('\n');
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(event: &str) -> String {
        let mut lines = Lines(Vec::new());
        lines.write_all(event.as_bytes()).expect("written");
        String::from_utf8(lines.0).expect("text")
    }

    #[test]
    fn event_with_line_breaks_is_one_line() {
        assert_eq!(written("group a\n2026 ERROR b\r\n"), "group a\\n2026 ERROR b\\r\n");
        assert_eq!(written("\u{85}\u{9b}31m\u{2028}x\0\n"), "\\u{85}\\u{9b}31m\\u{2028}x\\0\n");
    }

    #[test]
    fn plain_event_is_written_as_it_stands() {
        let plain = "\u{1b}[32m INFO\u{1b}[0m topic=käse … “quoted”\n";
        assert_eq!(written(plain), plain);
        assert!(one_line(b"INFO topic=t\n").is_none());
    }

    #[test]
    fn long_event_is_cut() {
        let line = written(&format!("{}\n", "é".repeat(10_000)));
        assert!(line.ends_with("é … (11808 bytes more)\n"), "{}", &line[line.len() - 40..]);
    }
}
