//! Decisions, one table for each rule. Facts: Kafka's `StandardAuthorizerTest`, `BaseAuthorizerTest`, KIP-11, KIP-290,
//! KIP-679 and KIP-1276.

mod world;

use barnabas_metadata::Image;
use barnabas_security::{Authorizer, Host, Operation, ResourceType, SuperUsers, Verdict};
use world::{acl, ask, authorizer, image, lines};

fn check(acls: &str, table: &[(&str, Verdict)]) {
    let authorizer = authorizer(acls);
    for (question, expected) in table {
        assert_eq!(ask(&authorizer, question), *expected, "{question}");
    }
}

use Verdict::{Allowed, Denied, NotAllowed, NotAllowedWithoutAcls, SuperUser};

#[test]
fn patterns_match_their_names_only() {
    check(
        "ALLOW User:bob * READ TOPIC LITERAL foo
         ALLOW User:bob * READ TOPIC PREFIXED bar
         ALLOW User:bob * READ GROUP LITERAL *
         ALLOW User:bob * READ TOPIC PREFIXED *x",
        &[
            ("User:bob 1.1.1.1 READ TOPIC foo", Allowed),
            ("User:bob 1.1.1.1 READ TOPIC foo2", NotAllowedWithoutAcls),
            ("User:bob 1.1.1.1 READ TOPIC fo", NotAllowedWithoutAcls),
            ("User:bob 1.1.1.1 READ TOPIC Foo", NotAllowedWithoutAcls),
            ("User:bob 1.1.1.1 READ TOPIC bar", Allowed),
            ("User:bob 1.1.1.1 READ TOPIC bark", Allowed),
            ("User:bob 1.1.1.1 READ TOPIC ba", NotAllowedWithoutAcls),
            ("User:bob 1.1.1.1 READ GROUP anything", Allowed),
            ("User:bob 1.1.1.1 READ GROUP *", Allowed),
            ("User:bob 1.1.1.1 READ TRANSACTIONAL_ID foo", NotAllowedWithoutAcls),
            // A prefix with a star in it is no wildcard.
            ("User:bob 1.1.1.1 READ TOPIC *xy", Allowed),
            ("User:bob 1.1.1.1 READ TOPIC yx", NotAllowedWithoutAcls),
        ],
    );
}

/// Kafka 4.3.1 and 4.4.0 do not answer the first two, and do not apply the wildcard to the next two:
/// docs/OTHERS-BUGS.md.
#[test]
fn names_before_and_after_the_wildcard_are_decided() {
    check(
        "ALLOW User:bob * READ GROUP LITERAL #x
         ALLOW User:bob * READ GROUP PREFIXED #yy
         DENY User:bob * WRITE GROUP LITERAL *
         ALLOW User:bob * DESCRIBE GROUP LITERAL *
         ALLOW User:* * ALTER GROUP LITERAL *",
        &[
            ("User:bob 1.1.1.1 READ GROUP #o", NotAllowed),
            ("User:bob 1.1.1.1 READ GROUP #y", NotAllowed),
            ("User:bob 1.1.1.1 WRITE GROUP *x", Denied),
            ("User:bob 1.1.1.1 DESCRIBE GROUP **", Allowed),
            ("User:* 1.1.1.1 ALTER GROUP g", Allowed),
            ("User:* 1.1.1.1 READ GROUP #x", NotAllowed),
        ],
    );
}

#[test]
fn resource_with_acls_for_others_is_not_allowed() {
    for pattern in ["LITERAL foo", "PREFIXED f", "LITERAL *"] {
        let image = lines(&format!("ALLOW User:alice * READ TOPIC {pattern}"));
        let everyone = Authorizer::new(&image, SuperUsers::default(), true);
        assert_eq!(ask(&everyone, "User:bob 1.1.1.1 READ TOPIC foo"), NotAllowed, "{pattern}");
        assert_eq!(ask(&everyone, "User:bob 1.1.1.1 READ GROUP foo"), Verdict::AllowedWithoutAcls);
    }
}

#[test]
fn deny_wins_wherever_it_stands() {
    for (allow, deny) in [
        ("LITERAL foo", "LITERAL foo"),
        ("LITERAL foo", "PREFIXED f"),
        ("LITERAL foo", "LITERAL *"),
        ("LITERAL *", "LITERAL foo"),
        ("PREFIXED fo", "PREFIXED f"),
        ("PREFIXED f", "PREFIXED fo"),
    ] {
        let acls = format!(
            "ALLOW User:bob * ALL TOPIC {allow}
             DENY User:bob * READ TOPIC {deny}"
        );
        check(
            &acls,
            &[("User:bob 1.1.1.1 READ TOPIC foo", Denied), ("User:bob 1.1.1.1 WRITE TOPIC foo", Allowed)],
        );
    }
}

#[test]
fn allow_of_read_write_delete_alter_implies_describe() {
    for operation in Operation::ALL_OF_THEM {
        use Operation::*;
        let describe = matches!(operation, All | Describe | Read | Write | Delete | Alter);
        let configs = matches!(operation, All | DescribeConfigs | AlterConfigs);
        let verdict = |is_allowed| if is_allowed { Allowed } else { NotAllowed };
        check(
            &format!("ALLOW User:bob * {operation} TOPIC LITERAL foo"),
            &[
                ("User:bob 1.1.1.1 DESCRIBE TOPIC foo", verdict(describe)),
                ("User:bob 1.1.1.1 DESCRIBE_CONFIGS TOPIC foo", verdict(configs)),
            ],
        );
    }
}

#[test]
fn deny_implies_nothing() {
    for operation in ["READ", "WRITE", "DELETE", "ALTER", "ALTER_CONFIGS"] {
        check(
            &format!(
                "ALLOW User:bob * ALL TOPIC LITERAL foo
                 DENY User:bob * {operation} TOPIC LITERAL foo"
            ),
            &[
                ("User:bob 1.1.1.1 DESCRIBE TOPIC foo", Allowed),
                ("User:bob 1.1.1.1 DESCRIBE_CONFIGS TOPIC foo", Allowed),
            ],
        );
    }
    check(
        "DENY User:bob * ALL TOPIC LITERAL foo
         ALLOW User:bob * DESCRIBE TOPIC LITERAL foo",
        &[("User:bob 1.1.1.1 DESCRIBE TOPIC foo", Denied)],
    );
}

#[test]
fn principals_match_whole_or_by_the_wildcard() {
    check(
        "ALLOW User:bob * READ TOPIC LITERAL foo
         ALLOW User:* * READ TOPIC LITERAL open
         ALLOW Group:* * READ TOPIC LITERAL grp",
        &[
            ("User:bob 1.1.1.1 READ TOPIC foo", Allowed),
            ("User:Bob 1.1.1.1 READ TOPIC foo", NotAllowed),
            ("Group:bob 1.1.1.1 READ TOPIC foo", NotAllowed),
            ("User:bobby 1.1.1.1 READ TOPIC foo", NotAllowed),
            ("User:ANONYMOUS 1.1.1.1 READ TOPIC open", Allowed),
            ("Role:any 1.1.1.1 READ TOPIC open", Allowed),
            // Only `User:*` is a wildcard.
            ("Group:bob 1.1.1.1 READ TOPIC grp", NotAllowed),
            ("Group:* 1.1.1.1 READ TOPIC grp", Allowed),
        ],
    );
}

#[test]
fn hosts_match_by_text_wildcard_or_range() {
    check(
        "ALLOW User:bob 10.0.0.1 READ TOPIC LITERAL a
         ALLOW User:bob 10.0.0.0/8 READ TOPIC LITERAL b
         DENY User:bob 10.1.0.0/16 READ TOPIC LITERAL b
         ALLOW User:bob 2001:db8::/32 READ TOPIC LITERAL c
         ALLOW User:bob 0:0:0:0:0:0:0:1 READ TOPIC LITERAL d
         ALLOW User:bob ::1 READ TOPIC LITERAL e
         ALLOW User:bob 10.0.0.0/99 READ TOPIC LITERAL f",
        &[
            ("User:bob 10.0.0.1 READ TOPIC a", Allowed),
            ("User:bob ::ffff:10.0.0.1 READ TOPIC a", Allowed),
            ("User:bob 10.0.0.2 READ TOPIC a", NotAllowed),
            ("User:bob 10.200.0.2 READ TOPIC b", Allowed),
            ("User:bob 10.1.0.2 READ TOPIC b", Denied),
            ("User:bob 11.0.0.2 READ TOPIC b", NotAllowed),
            ("User:bob 2001:db8::7 READ TOPIC c", Allowed),
            ("User:bob 2001:db9::7 READ TOPIC c", NotAllowed),
            ("User:bob ::1 READ TOPIC d", Allowed),
            // Kafka compares with Java's spelling, so that this entry matches no client.
            ("User:bob ::1 READ TOPIC e", NotAllowed),
            ("User:bob 10.0.0.1 READ TOPIC f", NotAllowed),
        ],
    );
}

#[test]
fn super_user_passes_every_deny() {
    check(
        "DENY User:* * ALL TOPIC LITERAL *
         DENY User:root * ALL CLUSTER LITERAL kafka-cluster",
        &[
            ("User:root 1.1.1.1 READ TOPIC foo", SuperUser),
            ("User:root 1.1.1.1 ALTER CLUSTER kafka-cluster", SuperUser),
            ("User:ROOT 1.1.1.1 READ TOPIC foo", Denied),
        ],
    );
}

#[test]
fn unknown_numbers_never_allow() {
    let with = |change: fn(&mut barnabas_metadata::access::Acl)| {
        let mut strange = acl("ALLOW User:bob * ALL TOPIC LITERAL foo");
        change(&mut strange);
        let authorizer = Authorizer::new(&image([strange]), SuperUsers::default(), true);
        ask(&authorizer, "User:bob 1.1.1.1 READ TOPIC foo")
    };
    assert_eq!(with(|acl| acl.operation = 99), NotAllowed);
    assert_eq!(with(|acl| acl.operation = 1), NotAllowed);
    assert_eq!(with(|acl| acl.permission = 99), Denied);
    assert_eq!(with(|acl| acl.principal = "bob".into()), NotAllowed);
    assert_eq!(with(|acl| acl.resource_type = 99), Verdict::AllowedWithoutAcls);
}

fn allows_any(acls: &str) -> bool {
    let authorizer = authorizer(acls);
    let caller = authorizer.caller("User:bob", &Host::parse("10.0.0.1"));
    authorizer.allows_any(&caller, Operation::Write, ResourceType::Topic)
}

/// KIP-679's table: an ALLOW counts unless everything that it names is denied.
#[test]
fn any_resource_needs_an_allow_that_is_not_wholly_denied() {
    let table = [
        ("", false),
        ("ALLOW User:bob * WRITE TOPIC LITERAL foo", true),
        ("ALLOW User:bob * ALL TOPIC PREFIXED foo", true),
        ("ALLOW User:* 10.0.0.1 WRITE TOPIC LITERAL foo", true),
        ("ALLOW User:bob 10.0.0.2 WRITE TOPIC LITERAL foo", false),
        ("ALLOW User:alice * WRITE TOPIC LITERAL foo", false),
        ("ALLOW User:bob * READ TOPIC LITERAL foo", false),
        ("ALLOW User:bob * WRITE GROUP LITERAL foo", false),
        ("ALLOW User:bob * WRITE TOPIC LITERAL foo\nDENY User:bob * WRITE TOPIC LITERAL foo", false),
        ("ALLOW User:bob * WRITE TOPIC LITERAL foo\nDENY User:bob * READ TOPIC LITERAL foo", true),
        ("ALLOW User:bob * WRITE TOPIC LITERAL foo\nDENY User:bob * WRITE TOPIC LITERAL bar", true),
        ("ALLOW User:bob * WRITE TOPIC LITERAL foo\nDENY User:bob * WRITE TOPIC PREFIXED fo", false),
        ("ALLOW User:bob * WRITE TOPIC LITERAL foo\nDENY User:bob * WRITE TOPIC LITERAL *", false),
        ("ALLOW User:bob * WRITE TOPIC PREFIXED foo\nDENY User:bob * WRITE TOPIC LITERAL foo", true),
        ("ALLOW User:bob * WRITE TOPIC PREFIXED foo\nDENY User:bob * WRITE TOPIC PREFIXED foobar", true),
        ("ALLOW User:bob * WRITE TOPIC PREFIXED foo\nDENY User:bob * WRITE TOPIC PREFIXED foo", false),
        ("ALLOW User:bob * WRITE TOPIC PREFIXED foo\nDENY User:* * ALL TOPIC PREFIXED f", false),
        ("ALLOW User:bob * WRITE TOPIC LITERAL *\nDENY User:bob * WRITE TOPIC PREFIXED foo", true),
        ("ALLOW User:bob * WRITE TOPIC LITERAL *\nDENY User:bob * WRITE TOPIC LITERAL hardcode", true),
        ("ALLOW User:bob * WRITE TOPIC LITERAL *\nDENY User:bob * WRITE TOPIC LITERAL *", false),
    ];
    for (acls, expected) in table {
        assert_eq!(allows_any(acls), expected, "{acls}");
    }
}

#[test]
fn any_resource_passes_super_users_and_open_clusters() {
    let denied = lines("DENY User:* * ALL TOPIC LITERAL *");
    let root = Authorizer::new(&denied, SuperUsers::parse("User:bob").expect("what the test says"), false);
    let open = Authorizer::new(&Image::default(), SuperUsers::default(), true);
    for authorizer in [root, open] {
        let caller = authorizer.caller("User:bob", &Host::parse("10.0.0.1"));
        assert!(authorizer.allows_any(&caller, Operation::Write, ResourceType::Topic));
    }
}

#[test]
fn authorized_operations_are_the_bits_of_what_is_allowed() {
    let authorizer = authorizer(
        "ALLOW User:bob * READ TOPIC LITERAL foo
         ALLOW User:bob * ALTER_CONFIGS TOPIC PREFIXED f
         DENY User:bob * DESCRIBE TOPIC LITERAL *",
    );
    let caller = authorizer.caller("User:bob", &Host::parse("10.0.0.1"));
    let bits = authorizer.authorized_operations(&caller, ResourceType::Topic, "foo");
    assert_eq!(bits, 1 << 3 | 1 << 10 | 1 << 11);
    let root = authorizer.caller("User:root", &Host::parse("10.0.0.1"));
    assert_eq!(authorizer.authorized_operations(&root, ResourceType::Group, "g"), 0b1101_0100_1000);
}

#[test]
#[should_panic(expected = "a caller of another image")]
fn caller_of_another_image_is_a_bug() {
    let mut later = lines("ALLOW User:bob * READ TOPIC LITERAL foo");
    later.provenance.end = barnabas_base::Offset(1);
    let caller = authorizer("").caller("User:bob", &Host::parse("10.0.0.1"));
    let authorizer = Authorizer::new(&later, SuperUsers::default(), false);
    authorizer.decide(&caller, Operation::Read, ResourceType::Topic, "foo");
}
