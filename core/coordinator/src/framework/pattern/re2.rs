//! RE2's syntax, as RE2/J and so Kafka reads it, in the words of our engine.
//!
//! The two agree on nearly everything; where they do not, the same text would match other names. What an expression
//! says to RE2 is spelled out so that it says that here: `[a&&b]`, `[a--b]` and `[[a]b]` have no sets within sets, `{`
//! that counts nothing is a letter, `\d`, `\w`, `\s` and `\b` are those of ASCII, `\Q…\E` and octal numbers are known.
//! What RE2 does not take is refused: `a**`, counts above a thousand, flags such as `x`, escapes that mean nothing.
//! What neither takes (look-around, references back) our engine refuses by itself.
//!
//! # Source
//! RE2/J 1.8 `Parser`; the table in this file's tests was held against it.

/// The most that RE2 repeats.
const COUNT_MAX: u32 = 1_000;
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

type Wrong = String;

/// # Errors
/// In words, what RE2 would not take.
pub(super) fn translated(pattern: &str) -> Result<String, Wrong> {
    let mut walk = Walk { rest: pattern, out: String::with_capacity(pattern.len() + 16) };
    walk.expression()?;
    Ok(walk.out)
}

struct Walk<'a> {
    rest: &'a str,
    out: String,
}

/// What follows `{`.
enum Counts {
    Are(String),
    AreNone,
}

impl<'a> Walk<'a> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn skip(&mut self, what: &str) -> bool {
        match self.rest.strip_prefix(what) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// As much as fits, at most `most` bytes of ASCII.
    fn take(&mut self, most: usize, fits: impl Fn(char) -> bool) -> &'a str {
        let length =
            self.rest.chars().take(most).take_while(|letter| fits(*letter)).map(char::len_utf8).sum();
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn letter(&mut self, letter: char) {
        self.out.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4])));
    }

    fn expression(&mut self) -> Result<(), Wrong> {
        let mut is_repeated = false;
        while let Some(next) = self.next() {
            let repetition = match next {
                '*' | '+' | '?' => Counts::Are(next.to_string()),
                '{' => self.counts()?,
                _ => Counts::AreNone,
            };
            if let Counts::Are(repetition) = repetition {
                if is_repeated {
                    return Err(format!("{repetition} repeats a repetition"));
                }
                self.out.push_str(&repetition);
                if self.skip("?") {
                    self.out.push('?');
                }
                is_repeated = true;
                continue;
            }
            is_repeated = false;
            match next {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                '{' => self.letter('{'),
                other => self.out.push(other),
            }
        }
        Ok(())
    }

    /// `n}`, `n,}` or `n,m}`; anything else makes the brace a letter.
    fn counts(&mut self) -> Result<Counts, Wrong> {
        let Some((inside, rest)) = self.rest.split_once('}') else { return Ok(Counts::AreNone) };
        let (least, most) = match inside.split_once(',') {
            Some((least, most)) => (least, Some(most)),
            None => (inside, None),
        };
        let is_number = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|digit| digit.is_ascii_digit())
                && !(text.len() > 1 && text.starts_with('0'))
        };
        if !is_number(least) || !most.is_none_or(|most| most.is_empty() || is_number(most)) {
            return Ok(Counts::AreNone);
        }
        let count = |text: &str| text.parse::<u32>().ok().filter(|count| *count <= COUNT_MAX);
        let upper = match most.filter(|most| !most.is_empty()) {
            Some(most) => count(most),
            None => count(least).map(|_| COUNT_MAX),
        };
        match (count(least), upper) {
            (Some(least), Some(upper)) if least <= upper => {
                self.rest = rest;
                Ok(Counts::Are(format!("{{{inside}}}")))
            }
            _ => Err(format!("{{{inside}}} counts what cannot be counted")),
        }
    }

    /// After `(`: a name, or flags that RE2 knows, or nothing of the kind.
    fn group(&mut self) -> Result<(), Wrong> {
        self.out.push('(');
        if !self.skip("?") {
            return Ok(());
        }
        self.out.push('?');
        if self.rest.starts_with("P<") || self.rest.starts_with('<') {
            return Ok(());
        }
        let flags = self.take(usize::MAX, |letter| !matches!(letter, ':' | ')'));
        if !flags.chars().all(|flag| matches!(flag, 'i' | 'm' | 's' | 'U' | '-')) {
            return Err(format!("(?{flags} is no group"));
        }
        if flags.ends_with('-') {
            return Err(format!("(?{flags} takes nothing away"));
        }
        self.out.push_str(flags);
        Ok(())
    }

    /// After a backslash that stands in no class.
    fn escape(&mut self) -> Result<(), Wrong> {
        let next = self.next().ok_or("a backslash stands at the end")?;
        match next {
            'Q' => {
                let (quoted, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
                self.out.push_str(&regex::escape(quoted));
                self.rest = rest;
            }
            'A' => self.out.push_str(r"\A"),
            'z' => self.out.push_str(r"\z"),
            'b' => self.out.push_str(r"(?-u:\b)"),
            'B' => self.out.push_str(r"(?-u:\B)"),
            _ => {
                if !self.set(next)? {
                    let letter = self.escaped(next)?;
                    self.letter(letter);
                }
            }
        }
        Ok(())
    }

    /// `\d` and its like, `\pL`, `\p{Greek}`; within a class or not. Gives whether it was one.
    fn set(&mut self, kind: char) -> Result<bool, Wrong> {
        let set = match kind {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            's' => r"[\t\n\f\r ]",
            'S' => r"[^\t\n\f\r ]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            'p' | 'P' => return self.property(kind == 'P').map(|()| true),
            _ => return Ok(false),
        };
        self.out.push_str(set);
        Ok(true)
    }

    fn property(&mut self, mut is_not: bool) -> Result<(), Wrong> {
        let name = if self.skip("{") {
            is_not ^= self.skip("^");
            let (name, rest) = self.rest.split_once('}').ok_or("a property has no end")?;
            self.rest = rest;
            name
        } else {
            self.take(1, |_| true)
        };
        if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            return Err(format!("{name} is no property"));
        }
        self.out.push_str(if is_not { r"\P{" } else { r"\p{" });
        self.out.push_str(name);
        self.out.push('}');
        Ok(())
    }

    /// The letter that an escape stands for.
    fn escaped(&mut self, kind: char) -> Result<char, Wrong> {
        let is_octal = |letter: char| matches!(letter, '0'..='7');
        let code = match kind {
            'a' => 0x07,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'v' => 0x0b,
            // One digit alone would be a reference back, which RE2 has not.
            '0'..='7' if kind == '0' || self.rest.starts_with(is_octal) => {
                let more = self.take(2, is_octal);
                u32::from_str_radix(&format!("{kind}{more}"), 8).unwrap_or(u32::MAX)
            }
            'x' if self.skip("{") => {
                let digits = self.take(6, |letter| letter.is_ascii_hexdigit());
                if !self.skip("}") {
                    return Err(r"\x{ has no end".to_owned());
                }
                u32::from_str_radix(digits, 16).unwrap_or(u32::MAX)
            }
            'x' => match self.take(2, |letter| letter.is_ascii_hexdigit()) {
                digits if digits.len() == 2 => u32::from_str_radix(digits, 16).unwrap_or(u32::MAX),
                _ => return Err(r"\x needs two digits".to_owned()),
            },
            letter if letter.is_ascii() && !letter.is_ascii_alphanumeric() => u32::from(letter),
            letter => return Err(format!(r"\{letter} means nothing")),
        };
        char::from_u32(code).ok_or_else(|| format!(r"\{kind} is no letter"))
    }

    /// After `[`.
    fn class(&mut self) -> Result<(), Wrong> {
        self.out.push('[');
        if self.skip("^") {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            if !is_first && self.skip("]") {
                self.out.push(']');
                return Ok(());
            }
            is_first = false;
            if self.posix()? {
                continue;
            }
            let begin = self.rest;
            if self.skip(r"\")
                && let Some(kind) = self.next()
                && self.set(kind)?
            {
                continue;
            }
            self.rest = begin;
            let low = self.of_class()?;
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]") && self.rest.len() > 1;
            let high = if is_range && self.skip("-") { self.of_class()? } else { low };
            if high < low {
                return Err(format!("{low}-{high} goes backwards"));
            }
            self.letter(low);
            if is_range {
                self.out.push('-');
                self.letter(high);
            }
        }
    }

    /// `[:alpha:]`.
    fn posix(&mut self) -> Result<bool, Wrong> {
        let Some((name, rest)) = self.rest.strip_prefix("[:").and_then(|rest| rest.split_once(":]")) else {
            return Ok(false);
        };
        if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("[:{name}:] is no class"));
        }
        self.out.push_str(&format!("[:{name}:]"));
        self.rest = rest;
        Ok(true)
    }

    /// One letter of a class.
    fn of_class(&mut self) -> Result<char, Wrong> {
        match self.next().ok_or("a class has no end")? {
            '\\' => {
                let kind = self.next().ok_or("a backslash stands at the end")?;
                self.escaped(kind)
            }
            letter => Ok(letter),
        }
    }
}
