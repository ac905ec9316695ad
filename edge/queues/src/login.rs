//! A peer's login: SASL PLAIN and ANONYMOUS in AMQP's frames.
//!
//! SCRAM gives a listener no password, and one connection at most, so it is not offered to peers; the broker's users
//! may be of SCRAM all the same. Who a user is judges the broker: edge/queue-access/src/login.rs.

use barnabas_queue_access::{Claim, Denied, Logins};
use barnabas_sasl::Secret;
use bytes::Bytes;

/// SASL outcomes that end a login without success: the user or password is wrong; try again later.
pub const WRONG: u8 = 1;
const LATER: u8 = 4;

/// The SASL outcome of a login that was denied.
pub fn outcome(denied: Denied) -> u8 {
    match denied {
        Denied::Wrong => WRONG,
        Denied::Later => LATER,
    }
}

/// The SASL mechanisms that peers are offered.
pub fn offered(logins: &Logins) -> Vec<String> {
    let offered: &[&str] = if logins.needs_login() { &["PLAIN"] } else { &["ANONYMOUS", "PLAIN"] };
    offered.iter().map(|name| (*name).to_owned()).collect()
}

/// What the first frame of a login says. `None`: nothing that is taken here.
pub fn claim(logins: &Logins, mechanism: &str, response: Option<&Bytes>) -> Option<Claim> {
    match (mechanism, logins.needs_login()) {
        ("ANONYMOUS" | "PLAIN", false) => Some(Claim::Anonymous),
        ("PLAIN", true) => plain(response?),
        _ => None,
    }
}

/// RFC 4616: `authzid NUL authcid NUL passwd`. Acting for another user is not taken, as by Kafka.
fn plain(response: &Bytes) -> Option<Claim> {
    let text = std::str::from_utf8(response).ok()?;
    let mut parts = text.split('\0');
    let (acting_for, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    let is_whole = parts.next().is_none() && !user.is_empty() && !password.is_empty();
    let is_own = acting_for.is_empty() || acting_for == user;
    (is_whole && is_own).then(|| Claim::User(user.to_owned(), Secret::from(password)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_client::{ClusterConfig, Security};

    fn logins(protocol: &str) -> Logins {
        let security = Security::without_login([("security.protocol", protocol)]).expect("sound");
        let config = ClusterConfig { security, ..ClusterConfig::new("127.0.0.1:1", "test") };
        Logins::new(config, vec!["PLAIN".to_owned()])
    }

    #[test]
    fn plain_names_a_user_and_its_password() {
        let open = logins("SASL_PLAINTEXT");
        let user = |bytes: &'static [u8]| match claim(&open, "PLAIN", Some(&Bytes::from_static(bytes))) {
            Some(Claim::User(user, _)) => Some(user),
            _ => None,
        };
        assert_eq!(user(b"\0anna\0secret").as_deref(), Some("anna"));
        assert_eq!(user(b"anna\0anna\0secret").as_deref(), Some("anna"));
        for wrong in
            [&b"bert\0anna\0secret"[..], b"\0anna\0", b"\0\0secret", b"anna", b"\0a\0b\0c", b"\0\xff\0b"]
        {
            assert_eq!(user(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn anonymous_enters_only_where_the_broker_has_no_logins() {
        for mechanism in ["ANONYMOUS", "PLAIN"] {
            assert!(matches!(claim(&logins("PLAINTEXT"), mechanism, None), Some(Claim::Anonymous)));
        }
        assert!(claim(&logins("SASL_PLAINTEXT"), "ANONYMOUS", None).is_none());
        assert_eq!(offered(&logins("SASL_PLAINTEXT")), ["PLAIN"]);
    }
}
