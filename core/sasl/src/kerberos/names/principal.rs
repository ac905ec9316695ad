//! A principal's name: components, a realm, and the text that both make.
//!
//! # Source
//! Kafka `KerberosName`; RFC 1964, 2.1.1.

/// `kafka/broker1.example.com@EXAMPLE.COM`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub components: Vec<String>,
    pub realm: String,
}

impl Principal {
    /// One or two components and a realm. `None`: another text, or an empty part.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, realm) = text.split_once('@')?;
        let components: Vec<String> = name.split('/').map(str::to_owned).collect();
        let is_sound = components.len() <= 2 && components.iter().all(|part| !part.is_empty());
        let is_sound = is_sound && !realm.is_empty() && !realm.contains(['/', '@']);
        is_sound.then(|| Self { components, realm: realm.to_owned() })
    }
}

impl std::fmt::Display for Principal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.components.join("/"), self.realm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_have_a_realm_and_at_most_two_components() {
        for text in ["kafka/host@R", "alice@EXAMPLE.COM"] {
            assert_eq!(Principal::parse(text).expect("a principal").to_string(), text);
        }
        for text in ["", "alice", "a/b/c@R", "@R", "a@", "a@b@c", "a/@R", "a@R/b"] {
            assert_eq!(Principal::parse(text), None, "{text}");
        }
    }
}
