//! JAAS: the login modules of `sasl.jaas.config`, and of the sections of a JAAS file.
//!
//! | file | answers |
//! |---|---|
//! | `tokens` | the words of either form, as Java's StreamTokenizer parts them |
//! | `modules` | what the options of Kafka's four login modules mean |
//!
//! Option values are secrets: none stands in an error.
//!
//! # Source
//! Kafka 4 `JaasConfig`, `JaasContext`; the JDK's `sun.security.provider.ConfigFile`.

mod modules;
#[cfg(test)]
mod tests;
mod tokens;

pub use modules::{Krb5Login, LoginModule, ModuleError, OAuthBearerLogin, PlainLogin, ScramLogin};

use crate::Secret;
use tokens::{Form, Token, Tokens};

const EXAMPLE: &str =
    r#"org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";"#;

/// Whether a login module must succeed. Kafka logs in with one module at a time, so the flag changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlFlag {
    Required,
    Requisite,
    Sufficient,
    Optional,
}

/// One login module with its options, in the order of the text. A key that stands twice has its last value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub class: String,
    pub flag: ControlFlag,
    options: Vec<(String, Secret)>,
}

/// A section of a JAAS file: `KafkaServer { … };`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    pub entries: Vec<Entry>,
}

/// An error in a JAAS text, with its position. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("JAAS, line {line}, column {column}: {what}. Example: {example}")]
pub struct JaasError {
    pub line: usize,
    pub column: usize,
    pub what: String,
    example: &'static str,
}

impl Entry {
    /// The value of an option.
    pub fn option(&self, key: &str) -> Option<&Secret> {
        self.options.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub fn options(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.options.iter().map(|(name, value)| (name.as_str(), value))
    }

    fn set(&mut self, key: String, value: Secret) {
        match self.options.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = value,
            None => self.options.push((key, value)),
        }
    }
}

/// The modules of a `sasl.jaas.config` value. Kafka takes exactly one where it reads this: see [`parse_one`].
///
/// # Errors
/// The text is not `class flag key=value …;`, or it is empty.
pub fn parse_config(text: &str) -> Result<Vec<Entry>, JaasError> {
    let mut tokens = Tokens::new(text, Form::Config);
    let mut entries = Vec::new();
    while tokens.peek() != &Token::End {
        entries.push(entry(&mut tokens)?);
    }
    if entries.is_empty() {
        Err(error(&tokens, "Login module not specified in JAAS config"))
    } else {
        Ok(entries)
    }
}

/// The one module of a `sasl.jaas.config` value.
///
/// # Errors
/// As [`parse_config`], or more than one module.
pub fn parse_one(text: &str) -> Result<Entry, JaasError> {
    let mut entries = parse_config(text)?;
    match (entries.len(), entries.pop()) {
        (1, Some(entry)) => Ok(entry),
        (count, _) => {
            let what = format!("JAAS config property contains {count} login modules, should be 1 module");
            Err(JaasError { line: 1, column: 1, what, example: EXAMPLE })
        }
    }
}

/// The sections of a JAAS file, `java.security.auth.login.config`.
///
/// `${/}` becomes a slash. Other `${…}` are Java's system properties and are refused.
///
/// # Errors
/// The text is not `name { class flag key=value …; … };` any number of times, or two sections have one name.
pub fn parse_file(text: &str) -> Result<Vec<Section>, JaasError> {
    let mut tokens = Tokens::new(text, Form::File);
    let mut sections: Vec<Section> = Vec::new();
    while tokens.peek() != &Token::End {
        let section = section(&mut tokens)?;
        if sections.iter().any(|other| other.name == section.name) {
            return Err(error(
                &tokens,
                format!("a second section {:?}: expected each name once", section.name),
            ));
        }
        sections.push(section);
    }
    Ok(sections)
}

/// The section of a listener: `<listener>.KafkaServer` in lower case, else `KafkaServer`.
pub fn section_of_listener<'a>(sections: &'a [Section], listener: &str) -> Option<&'a Section> {
    let own = format!("{}.KafkaServer", listener.to_lowercase());
    let named = |name: &str| sections.iter().find(|section| section.name == name);
    named(&own).or_else(|| named("KafkaServer"))
}

fn section(tokens: &mut Tokens<'_>) -> Result<Section, JaasError> {
    let name = word(tokens, "a section's name")?;
    symbol(tokens, '{')?;
    let mut entries = Vec::new();
    while tokens.peek() != &Token::Symbol('}') {
        entries.push(entry(tokens)?);
    }
    symbol(tokens, '}')?;
    symbol(tokens, ';')?;
    Ok(Section { name, entries })
}

fn entry(tokens: &mut Tokens<'_>) -> Result<Entry, JaasError> {
    let class = word(tokens, "the class of a login module")?;
    let mut entry = Entry { class, flag: control_flag(tokens)?, options: Vec::new() };
    while tokens.peek() != &Token::Symbol(';') {
        if tokens.peek() == &Token::End {
            return Err(error(tokens, "JAAS config entry not terminated by semi-colon"));
        }
        let key = word(tokens, "the name of an option, or a semicolon")?;
        let missing = format!("Value not specified for key {key:?}: expected {key}=\"…\"");
        if tokens.peek() != &Token::Symbol('=') {
            return Err(error(tokens, missing));
        }
        tokens.next();
        let Token::Word(value) = tokens.peek() else {
            return Err(error(
                tokens,
                format!("{missing}; a value that begins with a digit, '.', '-' or '/' needs quotes"),
            ));
        };
        let value = expand(tokens, value.clone())?;
        tokens.next();
        entry.set(key, Secret::from(value));
    }
    tokens.next();
    Ok(entry)
}

fn control_flag(tokens: &mut Tokens<'_>) -> Result<ControlFlag, JaasError> {
    let flag = match tokens.peek() {
        Token::Word(word) => match word.to_uppercase().as_str() {
            "REQUIRED" => ControlFlag::Required,
            "REQUISITE" => ControlFlag::Requisite,
            "SUFFICIENT" => ControlFlag::Sufficient,
            "OPTIONAL" => ControlFlag::Optional,
            _ => {
                return Err(error(
                    tokens,
                    format!("Invalid login module control flag {word:?}, expected required"),
                ));
            }
        },
        _ => return Err(error(tokens, "Login module control flag not specified, expected required")),
    };
    tokens.next();
    Ok(flag)
}

fn expand(tokens: &Tokens<'_>, value: String) -> Result<String, JaasError> {
    if tokens.form() == Form::Config {
        return Ok(value);
    }
    let value = value.replace("${/}", "/");
    if value.contains("${") {
        return Err(error(
            tokens,
            "a value names a system property of Java with ${…}: expected the value itself",
        ));
    }
    Ok(value)
}

fn word(tokens: &mut Tokens<'_>, what: &str) -> Result<String, JaasError> {
    match tokens.peek().clone() {
        Token::Word(word) => {
            tokens.next();
            Ok(word)
        }
        other => Err(error(tokens, format!("expected {what}, found {}", other.describe()))),
    }
}

fn symbol(tokens: &mut Tokens<'_>, symbol: char) -> Result<(), JaasError> {
    if tokens.peek() == &Token::Symbol(symbol) {
        tokens.next();
        return Ok(());
    }
    Err(error(tokens, format!("expected '{symbol}', found {}", tokens.peek().describe())))
}

fn error(tokens: &Tokens<'_>, what: impl Into<String>) -> JaasError {
    let (line, column) = tokens.place();
    let example = match tokens.form() {
        Form::Config => EXAMPLE,
        Form::File => {
            r#"KafkaServer { org.apache.kafka.common.security.scram.ScramLoginModule required username="broker" password="secret"; };"#
        }
    };
    JaasError { line, column, what: what.into(), example }
}
