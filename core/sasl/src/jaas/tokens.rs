//! Java's StreamTokenizer with the settings of Kafka's JaasConfig and of the JDK's ConfigFile.
//!
//! Words are letters, digits, `. - _ $` and what lies from U+00A0 on; a word that begins with a digit, `.` or `-` is a
//! number, and no option may be one. `/` begins a comment. A quoted string ends at the end of its line.

use std::iter::Peekable;
use std::str::Chars;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `sasl.jaas.config`
    Config,
    /// A file: `*` is a letter, and a string in single quotes is no word.
    File,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Number,
    Symbol(char),
    End,
}

impl Token {
    /// What it is, without what it says: it may be a password.
    pub fn describe(&self) -> String {
        match self {
            Self::Word(_) => "a word".into(),
            Self::Number => "a number without quotes".into(),
            Self::Symbol(symbol) => format!("{symbol:?}"),
            Self::End => "the end".into(),
        }
    }
}

pub(super) struct Tokens<'a> {
    form: Form,
    rest: Peekable<Chars<'a>>,
    next: Token,
    /// Where `next` begins.
    place: (usize, usize),
    line: usize,
    column: usize,
}

impl<'a> Tokens<'a> {
    pub fn new(text: &'a str, form: Form) -> Self {
        let rest = text.chars().peekable();
        let mut tokens = Self { form, rest, next: Token::End, place: (1, 1), line: 1, column: 1 };
        tokens.next();
        tokens
    }

    pub fn form(&self) -> Form {
        self.form
    }

    pub fn peek(&self) -> &Token {
        &self.next
    }

    pub fn place(&self) -> (usize, usize) {
        self.place
    }

    /// Goes one token on.
    pub fn next(&mut self) {
        self.skip_blanks();
        self.place = (self.line, self.column);
        self.next = match self.rest.peek().copied() {
            None => Token::End,
            Some('0'..='9' | '.' | '-') => self.number(),
            Some(letter) if self.is_letter(letter) => self.word(),
            Some(quote @ ('"' | '\'')) => self.quoted(quote),
            Some(symbol) => {
                self.take();
                Token::Symbol(symbol)
            }
        };
    }

    fn take(&mut self) -> Option<char> {
        let taken = self.rest.next();
        match taken {
            Some('\n') => (self.line, self.column) = (self.line + 1, 1),
            Some(_) => self.column += 1,
            None => {}
        }
        taken
    }

    fn skip_blanks(&mut self) {
        while let Some(&next) = self.rest.peek() {
            match next {
                '\0'..=' ' => drop(self.take()),
                '/' => self.skip_comment(),
                _ => return,
            }
        }
    }

    /// `/* … */`, or a slash and the rest of the line: StreamTokenizer takes a single slash for a comment too.
    fn skip_comment(&mut self) {
        self.take();
        if self.rest.peek() != Some(&'*') {
            while self.rest.peek().is_some_and(|&next| next != '\n' && next != '\r') {
                self.take();
            }
            return;
        }
        self.take();
        let mut before = ' ';
        while let Some(now) = self.take() {
            if before == '*' && now == '/' {
                return;
            }
            before = now;
        }
    }

    fn is_letter(&self, letter: char) -> bool {
        matches!(letter, 'a'..='z' | 'A'..='Z' | '_' | '$' | '-' | '\u{a0}'..)
            || letter == '*' && self.form == Form::File
    }

    fn word(&mut self) -> Token {
        let mut word = String::new();
        while let Some(&next) = self.rest.peek() {
            if !self.is_letter(next) && !matches!(next, '0'..='9' | '.') {
                break;
            }
            word.push(next);
            self.take();
        }
        Token::Word(word)
    }

    fn number(&mut self) -> Token {
        if self.rest.peek() == Some(&'-') {
            self.take();
            if !matches!(self.rest.peek(), Some('0'..='9' | '.')) {
                return Token::Symbol('-');
            }
        }
        let mut has_dot = false;
        while let Some(&next) = self.rest.peek() {
            match next {
                '.' if !has_dot => has_dot = true,
                '0'..='9' => {}
                _ => break,
            }
            self.take();
        }
        Token::Number
    }

    fn quoted(&mut self, quote: char) -> Token {
        self.take();
        let mut text = String::new();
        loop {
            match self.rest.peek().copied() {
                None | Some('\n' | '\r') => break,
                Some(end) if end == quote => {
                    self.take();
                    break;
                }
                Some('\\') => {
                    self.take();
                    text.extend(self.escaped());
                }
                Some(next) => {
                    self.take();
                    text.push(next);
                }
            }
        }
        if quote == '\'' && self.form == Form::File { Token::Symbol('\'') } else { Token::Word(text) }
    }

    /// What follows a backslash: C's letters, up to three octal digits, or the character itself.
    fn escaped(&mut self) -> Option<char> {
        let next = self.take()?;
        Some(match next {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '0'..='7' => {
                let mut value = next as u8 - b'0';
                for _ in 0..if next <= '3' { 2 } else { 1 } {
                    let Some(digit @ '0'..='7') = self.rest.peek().copied() else { break };
                    self.take();
                    value = value << 3 | (digit as u8 - b'0');
                }
                char::from(value)
            }
            other => other,
        })
    }
}
