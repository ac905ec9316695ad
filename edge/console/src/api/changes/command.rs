//! The command line that makes the same change: it can be copied into a shell as it is.

use crate::http::callers::Lease;

/// `barnabas TOOL --bootstrap-server …`. With logins the user's own file of the client's settings follows.
pub fn begin(cluster: &Lease, tool: &str) -> Command {
    let mut command = Command(format!("barnabas {tool}"));
    command.flag("--bootstrap-server", &cluster.config().bootstrap);
    if cluster.user().is_some() {
        command.flag("--command-config", "client.properties");
    }
    command
}

#[derive(Debug)]
pub struct Command(String);

impl Command {
    pub fn word(&mut self, word: &str) -> &mut Self {
        self.0.push(' ');
        self.0.push_str(&quoted(word));
        self
    }

    pub fn flag(&mut self, flag: &str, value: &str) -> &mut Self {
        self.word(flag).word(value)
    }

    /// A file that the shell makes of `text`.
    pub fn file(&mut self, flag: &str, text: &str) -> &mut Self {
        self.word(flag);
        self.0.push_str(&format!(" <(echo {})", quoted(text)));
        self
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

/// A word that a POSIX shell takes as it is.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_command_as_they_are() {
        for (word, written) in [
            ("orders", "orders"),
            ("retention.ms=1000", "retention.ms=1000"),
            ("a b", "'a b'"),
            ("$(rm -r x)", "'$(rm -r x)'"),
            ("it's", r"'it'\''s'"),
            ("[a,b]", "'[a,b]'"),
            ("", "''"),
            ("é", "'é'"),
        ] {
            assert_eq!(quoted(word), written);
        }
        let mut command = Command("barnabas topics".to_owned());
        command.word("--delete").flag("--topic", "x;y").file("--file", "{}");
        assert_eq!(command.text(), "barnabas topics --delete --topic 'x;y' --file <(echo '{}')");
    }
}
