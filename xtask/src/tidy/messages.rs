//! The page of log messages (docs/operations/messages.md) against the code: each message of WARN and ERROR has an
//! entry, with its level, and each entry has a message.
//!
//! A message is the literal of a `tracing::warn!` or `tracing::error!`; what it fills in reads `…` on the page. Where
//! a site only passes a text on, [`PASSED_ON`] names what words it, and each text there needs an entry. Texts that are
//! written at INFO as well may stand on the page with that level.

use super::is_test;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/operations/messages.md";

/// Fewer letters than this are no text that an operator could look up.
const LETTERS_MIN: usize = 11;

/// Sites that pass texts on, and the items that word them: the site's file, its message, and file and start of each
/// item.
type PassedOn = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const PASSED_ON: &[PassedOn] = &[
    (
        "shell/broker/src/controller/quorum_worker.rs",
        "…",
        &[("core/quorum/src/node/stall.rs", "pub fn look(")],
    ),
    (
        "shell/broker/src/node/cluster/authority.rs",
        "…",
        &[("core/security/src/authorizer/settings.rs", "pub fn warnings(")],
    ),
    (
        "shell/broker/src/node/cluster_events.rs",
        "…",
        &[
            ("core/metadata/src/events/lines.rs", "pub fn happened("),
            ("core/metadata/src/events/lines.rs", "fn text("),
            ("core/metadata/src/events/leaderless.rs", "fn line("),
        ],
    ),
    (
        "shell/broker/src/node/logins.rs",
        "OAUTHBEARER: …",
        &[("core/sasl/src/oauth/settings/validator.rs", "pub fn warning(")],
    ),
    (
        "shell/broker/src/server.rs",
        "…",
        &[
            ("core/config/src/values.rs", "fn unprefixed("),
            ("core/config/src/values.rs", "fn repeated("),
            ("core/metadata/src/config/properties.rs", "pub enum Warning"),
            ("core/metadata/src/config/contradictions.rs", "&str, &str)] = &["),
            ("core/metadata/src/config/contradictions.rs", "fn retention("),
            ("core/metadata/src/config/contradictions.rs", "fn heartbeats_too_rare("),
            ("core/metadata/src/config/contradictions.rs", "fn no_replicas("),
        ],
    ),
    (
        "shell/broker/src/server/listeners/handshakes.rs",
        "…: …",
        &[
            ("shell/tls/src/suites.rs", "pub fn warnings("),
            ("shell/tls/src/stores/material.rs", "let trust = trust_store.map("),
        ],
    ),
    (
        "shell/broker/src/server/membership.rs",
        "…",
        &[
            ("core/identity/src/roles.rs", "pub fn role_notices("),
            ("core/identity/src/roles.rs", "fn voter_without_role("),
            ("core/identity/src/roles.rs", "fn not_voting("),
        ],
    ),
    (
        "shell/broker/src/server/membership.rs",
        "…: …",
        &[("core/quorum/src/node/repair.rs", "pub enum Repair {")],
    ),
    (
        "shell/broker/src/server/start.rs",
        "…",
        &[
            ("core/config/src/insecure.rs", "pub fn check_one("),
            ("core/config/src/insecure.rs", "fn without_effect("),
        ],
    ),
    ("shell/broker/src/upkeep/placement/lost.rs", "…", &[("core/log-dirs/src/lost.rs", "pub fn said(")]),
];

/// Texts of those items that are no message of their own: parts of others, and refusals of a start.
const NO_MESSAGES: &[&str] = &[
    "It follows the quorum, and votes once it is added: barnabas metadata-quorum add-controller",
    "must be unlimited (-1), or at least 1",
    "is not true, and the listener … takes clients of other machines without authentication. Set it if that is meant; \
     else bind to 127.0.0.1, or use SASL_SSL (barnabas security init makes all that it needs)",
];

/// A message of the code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    /// With `…` for what is filled in.
    text: String,
    /// None: that of the site that passes it on.
    level: Option<&'static str>,
    at: String,
}

/// Compares the page with every source of the product.
pub fn check(root: &Path, files: &[PathBuf], findings: &mut Vec<String>) {
    let Ok(page) = std::fs::read_to_string(root.join(PAGE)) else {
        findings.push(format!("{PAGE}: missing"));
        return;
    };
    let entries = entries(&page);
    let mut used = BTreeSet::new();
    for message in messages(root, files, findings) {
        let Some(levels) = entries.get(message.text.as_str()) else {
            let level = message.level.unwrap_or("WARN or ERROR");
            findings.push(format!("{PAGE}: no entry for `{}` ({level}, {})", message.text, message.at));
            continue;
        };
        used.insert(message.text.clone());
        if let Some(level) = message.level.filter(|level| !levels.contains(level)) {
            findings.push(format!("{PAGE}: `{}` is written at {level} ({})", message.text, message.at));
        }
    }
    for entry in entries.keys().filter(|entry| !used.contains(**entry)) {
        findings.push(format!("{PAGE}: no code writes `{entry}`"));
    }
}

/// Text and levels of each row of the page's tables.
fn entries(page: &str) -> BTreeMap<&str, Vec<&str>> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.filter_map(|(text, rest)| Some((text, rest.split_once(" |")?.0.split(", ").collect()))).collect()
}

/// All messages, those that sites pass on included.
fn messages(root: &Path, files: &[PathBuf], findings: &mut Vec<String>) -> Vec<Message> {
    let mut found = Vec::new();
    let product = ["core", "shell", "edge"];
    for path in
        files.iter().filter(|path| product.iter().any(|rank| path.starts_with(rank)) && !is_test(path))
    {
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        for message in written(&text, &path.display().to_string()) {
            if has_words(&message.text) && !passes_on(path, &message.text) {
                found.push(message);
            } else if !passes_on(path, &message.text) {
                findings.push(format!(
                    "{}: passes `{}` on: name in xtask what words it",
                    message.at, message.text
                ));
            }
        }
    }
    for (file, start) in PASSED_ON.iter().flat_map(|(_, _, items)| *items) {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let Some(item) = text.find(start).map(|at| &text[at..]) else {
            findings.push(format!("{file}: has no `{start}`, which xtask says words log messages"));
            continue;
        };
        let worded = literals(block(item)).into_iter().map(|literal| normal(&literal));
        let worded = worded
            .filter(|text| text.contains(' ') && has_words(text) && !NO_MESSAGES.contains(&text.as_str()));
        found.extend(worded.map(|text| Message { text, level: None, at: (*file).to_owned() }));
    }
    found
}

fn passes_on(path: &Path, text: &str) -> bool {
    PASSED_ON.iter().any(|(site, message, _)| path == Path::new(site) && *message == text)
}

fn has_words(text: &str) -> bool {
    text.chars().filter(char::is_ascii_alphabetic).count() >= LETTERS_MIN
}

/// The messages that `text` writes itself.
fn written(text: &str, path: &str) -> Vec<Message> {
    let mut found = Vec::new();
    for (name, level) in [("warn!(", "WARN"), ("error!(", "ERROR")] {
        for (at, _) in text.match_indices(name) {
            let is_own_word = !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
            let line = text[..at].matches('\n').count() + 1;
            let Some(message) = is_own_word.then(|| message_of(block(&text[at..]))).flatten() else {
                continue;
            };
            found.push(Message { text: normal(&message), level: Some(level), at: format!("{path}:{line}") });
        }
    }
    found
}

/// The first argument of a macro that is a literal alone, after its fields.
fn message_of(call: &str) -> Option<String> {
    let (mut depth, mut begins) = (0_usize, true);
    let mut rest = call;
    while let Some(next) = rest.chars().next() {
        if next == '"' {
            let (literal, behind) = literal(rest);
            if depth == 1 && begins {
                return Some(literal);
            }
            (rest, begins) = (behind, false);
            continue;
        }
        match next {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        begins = (depth == 1 && matches!(next, '(' | ',')) || (begins && next.is_whitespace());
        rest = &rest[next.len_utf8()..];
    }
    None
}

/// From the first bracket of `text` to its end.
fn block(text: &str) -> &str {
    let start = text.find(['(', '{', '[']).unwrap_or(text.len());
    // A function's block is behind its arguments.
    let start = if text.contains("fn ") && text.find("fn ").is_some_and(|at| at < start) {
        text.find(" {\n").map_or(start, |at| at + 1)
    } else {
        start
    };
    let (mut depth, mut rest) = (0_usize, &text[start..]);
    while let Some(next) = rest.chars().next() {
        if next == '"' {
            rest = literal(rest).1;
            continue;
        }
        match next {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 1 => return &text[start..=text.len() - rest.len()],
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        rest = &rest[next.len_utf8()..];
    }
    &text[start..]
}

/// All string literals of `text`.
fn literals(text: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('"') {
        let (literal, behind) = literal(&rest[at..]);
        found.push(literal);
        rest = behind;
    }
    found
}

/// The literal at the start of `text`, its escapes resolved, and what stands behind it.
fn literal(text: &str) -> (String, &str) {
    let mut found = String::new();
    let mut rest = text[1..].chars();
    while let Some(next) = rest.next() {
        match next {
            '"' => break,
            '\\' => match rest.next() {
                Some('\n') => rest = rest.as_str().trim_start().chars(),
                Some('n') => found.push('\n'),
                Some(other) => found.push(other),
                None => break,
            },
            _ => found.push(next),
        }
    }
    (found, rest.as_str())
}

/// As the page has it: `…` for each place that is filled in, single blanks, without the number of lines left out.
fn normal(literal: &str) -> String {
    let mut text = String::new();
    let mut rest = literal.replace("{unsaid}", "");
    while let Some((before, behind)) = rest.split_once('{') {
        text.push_str(before);
        if !text.ends_with('…') {
            text.push('…');
        }
        rest = behind.split_once('}').map_or("", |(_, behind)| behind).to_owned();
    }
    text.push_str(&rest);
    // The page has messages between backticks.
    text.replace('`', "'").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Message, block, entries, literals, normal, written};

    #[test]
    fn message_is_the_literal_behind_the_fields() {
        let code =
            "tracing::warn!(%error, at = name(\"x\"), \"{} is full, \\\n    see {path:?}{unsaid}\", one());";
        let found = written(code, "a.rs");
        let text = "… is full, see …".to_owned();
        assert_eq!(found, [Message { text, level: Some("WARN"), at: "a.rs:1".into() }]);
        assert_eq!(written("compile_error!(\"no such thing here\")", "a.rs"), []);
    }

    #[test]
    fn worded_texts_are_those_of_the_item_alone() {
        let code =
            "fn text(kind: Kind) -> String {\n    format!(\"first {kind}\")\n}\nfn other() { \"second\" }";
        assert_eq!(literals(block(code)), ["first {kind}"]);
    }

    #[test]
    fn row_has_its_text_and_levels() {
        let page = "| message | level | cause |\n|---|---|---|\n| `a … b` | ERROR, WARN | the disk |\n";
        assert_eq!(entries(page).get("a … b").map(Vec::as_slice), Some(["ERROR", "WARN"].as_slice()));
        assert_eq!(normal("{a}{b} of  {c:?}"), "… of …");
    }
}
