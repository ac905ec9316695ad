//! Which authorizer the operator has configured.

use crate::super_users::{SuperUserError, SuperUsers};
use barnabas_metadata::config::BrokerConfig;

pub const CLASS: &str = "authorizer.class.name";
pub const SUPER_USERS: &str = "super.users";
pub const SHADOW: &str = "authorizer.shadow";
pub const ALLOW_EVERYONE: &str = "allow.everyone.if.no.acl.found";

/// What the file says of authorization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorizerSettings {
    pub super_users: SuperUsers,
    pub allow_everyone: bool,
    pub is_shadow: bool,
}

impl AuthorizerSettings {
    /// `None`: no authorizer.
    ///
    /// # Errors
    /// `super.users` names no principals.
    pub fn read(config: &BrokerConfig) -> Result<Option<Self>, SuperUserError> {
        if config.value(CLASS).is_none_or(|class| class.trim().is_empty()) {
            return Ok(None);
        }
        let given = |key: &str| config.given().get(key).unwrap_or("");
        let super_users = SuperUsers::parse(given(SUPER_USERS))?;
        // As Java's Boolean.parseBoolean: every other word means false.
        let allow_everyone = given(ALLOW_EVERYONE).trim().eq_ignore_ascii_case("true");
        let is_shadow = config.value(SHADOW) == Some("true");
        Ok(Some(Self { super_users, allow_everyone, is_shadow }))
    }

    /// What an operator should know that it allows.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.is_shadow {
            warnings.push(format!(
                "{SHADOW} is true: no request is denied. What ACLs would deny is logged as `would be denied`. To enforce \
                 ACLs, remove the setting and restart"
            ));
        }
        if self.super_users.contains("User:ANONYMOUS") {
            warnings.push(format!(
                "{SUPER_USERS} names User:ANONYMOUS: every client without authentication may do everything"
            ));
        }
        for entry in self.super_users.joined_by_commas() {
            warnings.push(format!(
                "{SUPER_USERS}: '{entry}' is one principal, as in Kafka. Principals are separated by semicolons: \
                 User:admin;User:broker"
            ));
        }
        if self.allow_everyone {
            warnings.push(format!(
                "{ALLOW_EVERYONE} is true: every client may do everything to a resource without ACLs"
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::Text;
    use barnabas_metadata::config::StaticConfig;

    fn read(pairs: &[(&str, &str)]) -> Result<Option<AuthorizerSettings>, SuperUserError> {
        let pairs = pairs.iter().map(|(key, value)| (Text::from(*key), Text::from(*value)));
        let (given, _) = StaticConfig::check(pairs.collect()).expect("settings");
        AuthorizerSettings::read(&BrokerConfig::new(given))
    }

    const STANDARD: (&str, &str) = (CLASS, "org.apache.kafka.metadata.authorizer.StandardAuthorizer");

    #[test]
    fn settings_without_a_class_are_no_authorizer() {
        assert_eq!(read(&[(SUPER_USERS, "User:a")]), Ok(None));
        assert_eq!(read(&[STANDARD]), Ok(Some(AuthorizerSettings::default())));
        assert_eq!(read(&[STANDARD, (SUPER_USERS, "alice")]), Err(SuperUserError("alice".to_owned())));
    }

    #[test]
    fn each_setting_that_lets_everyone_in_is_warned_of() {
        let all = [STANDARD, (SUPER_USERS, "User:ANONYMOUS"), (SHADOW, "true"), (ALLOW_EVERYONE, "TRUE")];
        let warnings = read(&all).expect("sound").expect("an authorizer").warnings();
        for (warning, key) in warnings.iter().zip([SHADOW, SUPER_USERS, ALLOW_EVERYONE]) {
            assert!(warning.starts_with(key), "{warning}");
        }
        assert_eq!(warnings.len(), 3);
        let joined =
            read(&[STANDARD, (SUPER_USERS, "User:a,User:b")]).expect("sound").expect("an authorizer");
        let warnings = joined.warnings();
        assert!(
            warnings.len() == 1 && warnings[0].contains("'User:a,User:b' is one principal"),
            "{warnings:?}"
        );
        let sound = read(&[STANDARD, (SUPER_USERS, "User:a")]).expect("sound").expect("an authorizer");
        assert_eq!(sound.warnings(), <[String; 0]>::default());
    }
}
