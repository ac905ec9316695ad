//! What CreateAcls refuses, and what filters match. Facts: Kafka's `AclControlManagerTest`,
//! `ResourcePatternFilterTest`, `AclBindingTest`.

mod world;

use barnabas_base::ErrorCode;
use barnabas_metadata::MetadataVersion;
use barnabas_metadata::access::Acl;
use barnabas_security::acl::{ANY, MATCH};
use barnabas_security::{AclFilter, FilterError, binding};
use world::{acl, id, lines};

const NEWEST: MetadataVersion = MetadataVersion::LATEST;

/// 4.4-IV0, the last level without ranges.
fn before_ranges() -> MetadataVersion {
    MetadataVersion::from_level(31).expect("what the test says")
}

fn refusal(version: MetadataVersion, change: impl Fn(&mut Acl)) -> Option<(ErrorCode, String)> {
    let mut acl = acl("ALLOW User:bob * READ TOPIC LITERAL foo");
    change(&mut acl);
    binding::check(&acl, version).err().map(|error| (error.code(), error.to_string()))
}

#[test]
fn binding_check_refuses_with_kafkas_sentences() {
    type Change = fn(&mut Acl);
    let table: [(Change, &str); 14] = [
        (|acl| acl.resource_type = 0, "Invalid resourceType UNKNOWN"),
        (|acl| acl.resource_type = ANY, "Invalid resourceType ANY"),
        (|acl| acl.resource_type = 8, "Invalid resourceType UNKNOWN"),
        (|acl| acl.pattern_type = 0, "Invalid patternType UNKNOWN"),
        (|acl| acl.pattern_type = ANY, "Invalid patternType ANY"),
        (|acl| acl.pattern_type = MATCH, "Invalid patternType MATCH"),
        (|acl| acl.operation = 0, "Invalid operation UNKNOWN"),
        (|acl| acl.operation = ANY, "Invalid operation ANY"),
        (|acl| acl.permission = 0, "Invalid permissionType UNKNOWN"),
        (|acl| acl.permission = ANY, "Invalid permissionType ANY"),
        (|acl| acl.resource_name = "".into(), "Invalid empty resource name"),
        (|acl| acl.resource_type = 4, "The only valid name for the CLUSTER resource is kafka-cluster"),
        (
            |acl| acl.principal = "invalid".into(),
            "Could not parse principal from `invalid` (no colon is present separating the principal type from the principal name)",
        ),
        (
            |acl| acl.host = "192.168.0.0/33".into(),
            "Invalid CIDR notation `192.168.0.0/33`; expected a range such as 10.0.0.0/8 or 2001:db8::/32",
        ),
    ];
    for (change, sentence) in table {
        assert_eq!(refusal(NEWEST, change), Some((ErrorCode::InvalidRequest, sentence.to_owned())));
    }
    let empty = refusal(NEWEST, |acl| acl.host = "".into());
    assert_eq!(empty.map(|refused| refused.0), Some(ErrorCode::InvalidRequest));
}

#[test]
fn binding_check_takes_what_kafka_takes() {
    for version in [NEWEST, before_ranges()] {
        for host in ["*", "192.168.1.1", "2001:db8::1", "a-name"] {
            assert_eq!(refusal(version, |acl| acl.host = host.into()), None, "{host}");
        }
        let cluster = |acl: &mut Acl| (acl.resource_type, acl.resource_name) = (4, "kafka-cluster".into());
        assert_eq!(refusal(version, cluster), None);
        assert_eq!(refusal(version, |acl| acl.resource_name = "*".into()), None);
        // Kafka does not ask whether the operation exists on the resource.
        assert_eq!(refusal(version, |acl| acl.operation = 15), None);
    }
}

#[test]
fn binding_check_takes_ranges_from_their_metadata_version_on() {
    for range in ["192.168.0.0/24", "2001:db8::/32"] {
        assert_eq!(refusal(NEWEST, |acl| acl.host = range.into()), None);
        assert_eq!(
            refusal(before_ranges(), |acl| acl.host = range.into()),
            Some((
                ErrorCode::UnsupportedVersion,
                "CIDR-based ACL host patterns require metadata version 4.4-IV1 or later".to_owned()
            ))
        );
    }
}

const STORED: &str = "ALLOW User:bob * READ TOPIC LITERAL foo
     ALLOW User:bob * READ TOPIC PREFIXED foo
     ALLOW User:bob * READ TOPIC PREFIXED fo
     ALLOW User:* 10.0.0.1 ALL TOPIC LITERAL *
     DENY User:bob * READ GROUP LITERAL foo";

fn found(change: impl Fn(&mut AclFilter)) -> Vec<u64> {
    let image = lines(STORED);
    let mut filter = AclFilter::EVERY;
    change(&mut filter);
    assert_eq!(filter.check(), Ok(()));
    let number = |found| (1..=5).find(|number| id(*number) == found).expect("what the test says");
    filter.of(&image.acls).map(|(found, _)| number(found)).collect()
}

#[test]
fn filter_names_match_by_pattern_type() {
    let name = |pattern_type: i8, name: &'static str| {
        found(move |filter| (filter.pattern_type, filter.resource_name) = (pattern_type, Some(name.into())))
    };
    assert_eq!(name(ANY, "foo"), [1, 2, 5]);
    assert_eq!(name(3, "foo"), [1, 5]);
    assert_eq!(name(4, "foo"), [2]);
    assert_eq!(name(MATCH, "foo"), [1, 2, 3, 4, 5]);
    assert_eq!(name(MATCH, "foobar"), [2, 3, 4]);
    assert_eq!(name(MATCH, "other"), [4]);
    assert_eq!(name(MATCH, "*"), [4]);
    assert_eq!(name(ANY, "*"), [4]);
    assert_eq!(found(|filter| filter.pattern_type = MATCH), [1, 2, 3, 4, 5]);
    assert_eq!(found(|filter| filter.pattern_type = 4), [2, 3]);
}

#[test]
fn filter_entries_match_whole() {
    assert_eq!(found(|_| {}), [1, 2, 3, 4, 5]);
    assert_eq!(found(|filter| filter.resource_type = 3), [5]);
    assert_eq!(found(|filter| filter.principal = Some("User:bob".into())), [1, 2, 3, 5]);
    assert_eq!(found(|filter| filter.principal = Some("User:*".into())), [4]);
    assert_eq!(found(|filter| filter.host = Some("*".into())), [1, 2, 3, 5]);
    // As text: a filter on READ does not find ALL.
    assert_eq!(found(|filter| filter.operation = 3), [1, 2, 3, 5]);
    assert_eq!(found(|filter| filter.permission = 2), [5]);
}

#[test]
fn filter_with_unknown_numbers_is_refused() {
    type Change = fn(&mut AclFilter);
    let table: [(Change, FilterError, &str); 5] = [
        (|filter| filter.resource_type = 0, FilterError::Pattern, "Unknown patternFilter."),
        (|filter| filter.pattern_type = 0, FilterError::Pattern, "Unknown patternFilter."),
        (|filter| filter.pattern_type = 5, FilterError::Pattern, "Unknown patternFilter."),
        (|filter| filter.operation = 16, FilterError::Entry, "Unknown entryFilter."),
        (|filter| filter.permission = 0, FilterError::Entry, "Unknown entryFilter."),
    ];
    for (change, error, sentence) in table {
        let mut filter = AclFilter::EVERY;
        change(&mut filter);
        assert_eq!(filter.check(), Err(error));
        assert_eq!(error.to_string(), sentence);
    }
}
