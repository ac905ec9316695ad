//! `super.users`: principals that may do everything, without regard to ACLs.
//!
//! Source: Kafka 4.4 `StandardAuthorizer.getConfiguredSuperUsers`, `SecurityUtils.parseKafkaPrincipal`.

use std::collections::BTreeSet;

use barnabas_base::Text;

/// The principals of `super.users`, compared as whole strings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuperUsers(BTreeSet<Text>);

/// An entry of `super.users` that is no principal. Kafka does not start with one either.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "super.users: `{0}` is no principal; expected principals such as `User:admin;User:CN=broker,OU=x`, separated by semicolons"
)]
pub struct SuperUserError(pub String);

impl SuperUsers {
    /// Reads the setting: principals separated by `;`, with blanks around them. Distinguished names keep their commas.
    ///
    /// # Errors
    /// An entry without a colon.
    pub fn parse(setting: &str) -> Result<Self, SuperUserError> {
        let entries = setting.split(';').map(str::trim).filter(|entry| !entry.is_empty());
        entries
            .map(|entry| {
                if entry.contains(':') {
                    Ok(Text::from(entry))
                } else {
                    Err(SuperUserError(entry.to_owned()))
                }
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Entries that look like several principals with commas between them. To Kafka each is one principal, a name that
    /// no client has: `User:a,User:b`. A distinguished name has commas of its own.
    pub fn joined_by_commas(&self) -> impl Iterator<Item = &Text> {
        self.0.iter().filter(|entry| entry.split(',').skip(1).any(begins_with_a_type))
    }

    pub fn contains(&self, principal: &str) -> bool {
        self.0.contains(principal)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Text> {
        self.0.iter()
    }
}

/// `User:b`, and not `OU=x:y`.
fn begins_with_a_type(text: &str) -> bool {
    let kind = text.trim_start().split_once(':').map_or("", |(kind, _)| kind);
    !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn super_users_are_split_at_semicolons() {
        let parsed = SuperUsers::parse(" User:bob ;;User:CN=alice,OU=x; Group:ops:eu;").unwrap();
        let listed: Vec<&str> = parsed.iter().map(Text::as_str).collect();
        assert_eq!(listed, ["Group:ops:eu", "User:CN=alice,OU=x", "User:bob"]);
        assert!(parsed.contains("User:bob"));
        assert!(!parsed.contains("User:Bob"), "case counts");
        assert!(!parsed.contains("bob"));
        assert_eq!(SuperUsers::parse(""), Ok(SuperUsers::default()));
    }

    #[test]
    fn principals_with_commas_between_them_are_found() {
        let found = |setting: &str| -> Vec<String> {
            SuperUsers::parse(setting).unwrap().joined_by_commas().map(ToString::to_string).collect()
        };
        assert_eq!(found("User:a,User:b;User:c"), ["User:a,User:b"]);
        assert_eq!(found("User:CN=a,OU=x, User:b"), ["User:CN=a,OU=x, User:b"]);
        assert_eq!(found("User:CN=a,OU=x:y,O=z;User:b"), <[&str; 0]>::default());
    }

    #[test]
    fn super_users_without_colon_are_refused() {
        assert_eq!(SuperUsers::parse("User:a;bob"), Err(SuperUserError("bob".to_owned())));
    }

    /// Kafka compares strings: `User:*` in `super.users` is a user of that name, not everybody.
    #[test]
    fn super_users_have_no_wildcard() {
        assert!(!SuperUsers::parse("User:*").unwrap().contains("User:bob"));
    }
}
