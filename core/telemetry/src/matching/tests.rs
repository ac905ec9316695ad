//! Which clients a `match` fits, and which values are refused.

use barnabas_base::{Text, Uuid};

use super::*;
use crate::Software;

fn client() -> Client {
    let software = Software::new("apache-kafka-java", "4.3.1");
    Client::new(Uuid([1; 16]), Some("app-7"), software, Text::from("10.0.0.5"), 40_001)
}

fn matches(value: &str) -> bool {
    Match::parse(value).unwrap_or_else(|error| panic!("{value}: {error}")).is_of(&client())
}

#[test]
fn all_entries_must_match_whole_values() {
    for fits in [
        "",
        "client_id=app-.*",
        "client_id = app-[0-9] , client_software_name=apache-kafka-java",
        "client_software_version=4\\.3\\..*",
        "client_source_address=10\\.0\\.0\\.\\d+",
        "client_source_port=4000[0-9]",
        "client_instance_id=AQEBAQEBAQEBAQEBAQEBAQ",
        "client_id=none,client_id=app-7",
        "client_id=a|app-7",
    ] {
        assert!(matches(fits), "{fits}");
    }
    for other in [
        "client_id=app",
        "client_id=app-.*,client_software_name=librdkafka",
        "client_id=app-7,client_id=none",
        "client_source_port=4",
        "client_instance_id=.",
    ] {
        assert!(!matches(other), "{other}");
    }
}

#[test]
fn client_without_id_matches_no_client_id() {
    let anonymous = Client { client_id: None, ..client() };
    let of = |value: &str| Match::parse(value).expect("a match").is_of(&anonymous);
    assert!(!of("client_id=.*"));
    assert!(of("client_software_name=.*"));
}

#[test]
fn bad_entries_are_refused_with_the_entry() {
    let why = |value: &str| check_match(value).map_or_else(|error| error.to_string(), |()| "ok".to_owned());
    assert_eq!(why("client_id=a.*, client_source_port=1"), "ok");
    // Java's split drops what is empty at the end.
    assert_eq!(why("client_id=a="), "ok");
    for entry in ["client=a", "client_id", "client_id=", "=a", "client_id=a=b", "Client_id=a"] {
        assert_eq!(why(entry), format!("Illegal client matching pattern: {entry}"));
    }
    assert_eq!(
        why("client_id=a.*,client_software_name=[a"),
        "Illegal client matching pattern: client_software_name=[a (unclosed character class)"
    );
    for entry in ["client_id=a)(b", "client_id=(a)\\1", "client_id=(?!a)b", "client_id=\\w{1000}{1000}"] {
        assert!(
            why(entry).starts_with(&format!("Illegal client matching pattern: {entry} (")),
            "{}",
            why(entry)
        );
    }
}
