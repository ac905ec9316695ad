//! Which ACL decided, which one is missing, who may, and which ACLs have no effect.

mod world;

use barnabas_base::Uuid;
use barnabas_metadata::access::Acl;
use barnabas_security::explain::{Explanation, Question, explain, who_can};
use barnabas_security::review::{Shadowed, shadowed, unused, without_resource};
use barnabas_security::{Authorizer, Host, ResourceType, SuperUsers};
use world::{acl, id, image, lines, operation, resource_type};

fn explained(acls: &str, question: &str) -> String {
    let image = lines(acls);
    let authorizer =
        Authorizer::new(&image, SuperUsers::parse("User:root").expect("what the test says"), false);
    let verdict = world::ask(&authorizer, question);
    let [principal, host, action, resource, resource_name] =
        question.split_whitespace().collect::<Vec<_>>().try_into().expect("five words");
    let question = Question {
        principal,
        host: &Host::parse(host),
        operation: operation(action),
        resource_type: resource_type(resource),
        resource_name,
    };
    match explain(&image.acls, &question, verdict) {
        Explanation::Allowed { id, .. } => format!("allowed by {}", number(id)),
        Explanation::Denied { id, .. } => format!("denied by {}", number(id)),
        Explanation::Missing { acl } => {
            let wanted =
                world::acl(&format!("ALLOW {principal} * {action} {resource} LITERAL {resource_name}"));
            assert_eq!(acl, wanted);
            "missing".to_owned()
        }
        other => format!("{other:?}"),
    }
}

fn number(of: Uuid) -> u64 {
    (1..=100).find(|number| id(*number) == of).expect("an id of a test")
}

#[test]
fn explanation_names_the_most_specific_acl() {
    let acls = "ALLOW User:bob * READ TOPIC LITERAL *
         ALLOW User:bob * READ TOPIC PREFIXED f
         ALLOW User:bob * READ TOPIC PREFIXED foo
         ALLOW User:* * READ TOPIC LITERAL foo
         ALLOW User:bob * WRITE TOPIC LITERAL foo
         DENY User:* * ALTER TOPIC LITERAL *
         DENY User:bob 10.0.0.1 ALTER TOPIC PREFIXED fo";
    for (question, expected) in [
        ("User:bob 1.1.1.1 READ TOPIC foo", "allowed by 4"),
        ("User:bob 1.1.1.1 READ TOPIC foobar", "allowed by 3"),
        ("User:bob 1.1.1.1 READ TOPIC f", "allowed by 2"),
        ("User:bob 1.1.1.1 READ TOPIC x", "allowed by 1"),
        ("User:bob 1.1.1.1 DESCRIBE TOPIC foo", "allowed by 5"),
        ("User:bob 10.0.0.1 ALTER TOPIC foo", "denied by 7"),
        ("User:bob 1.1.1.1 ALTER TOPIC foo", "denied by 6"),
        ("User:amy 1.1.1.1 WRITE TOPIC foo", "missing"),
        ("User:amy 1.1.1.1 READ GROUP g", "missing"),
        ("User:root 1.1.1.1 ALTER TOPIC foo", "SuperUser"),
    ] {
        assert_eq!(explained(acls, question), expected, "{question}");
    }
}

#[test]
fn who_can_lists_callers_that_no_deny_covers() {
    let image = lines(
        "ALLOW User:amy * WRITE TOPIC LITERAL x
         ALLOW User:bob * ALL TOPIC PREFIXED x
         ALLOW User:cat 10.0.0.1 WRITE TOPIC LITERAL *
         ALLOW User:dan * READ TOPIC LITERAL x
         ALLOW User:eve * WRITE TOPIC LITERAL xy
         DENY User:amy 10.0.0.1 WRITE TOPIC LITERAL x
         DENY User:cat 10.0.0.0/8 ALL TOPIC LITERAL x",
    );
    let found = who_can(&image.acls, operation("WRITE"), ResourceType::Topic, "x");
    let numbers = |list: &[(Uuid, &Acl)]| list.iter().map(|(id, _)| number(*id)).collect::<Vec<_>>();
    // Amy may from elsewhere; cat may not at all.
    assert_eq!(numbers(&found.allowed), [1, 2]);
    assert_eq!(numbers(&found.denied), [6, 7]);
}

fn shadows(acls: &str) -> Vec<(u64, u64)> {
    let image = lines(acls);
    shadowed(&image.acls).into_iter().map(|Shadowed { acl, by }| (number(acl), number(by))).collect()
}

#[test]
fn shadowed_acls_are_those_that_another_takes_in() {
    for (acls, expected) in [
        ("ALLOW User:b * READ TOPIC LITERAL x\nALLOW User:b * READ TOPIC PREFIXED x", vec![(1, 2)]),
        ("ALLOW User:b * READ TOPIC LITERAL x\nALLOW User:* * ALL TOPIC LITERAL *", vec![(1, 2)]),
        ("ALLOW User:b * DESCRIBE TOPIC LITERAL x\nALLOW User:b * READ TOPIC LITERAL x", vec![(1, 2)]),
        (
            "ALLOW User:b 10.0.0.1 READ TOPIC LITERAL x\nALLOW User:b 10.0.0.0/8 READ TOPIC LITERAL x",
            vec![(1, 2)],
        ),
        ("ALLOW User:b * READ TOPIC PREFIXED xy\nDENY User:b * ALL TOPIC PREFIXED x", vec![(1, 2)]),
        // The same ACL twice: the second goes.
        ("ALLOW User:b * READ TOPIC LITERAL x\nALLOW User:b * READ TOPIC LITERAL x", vec![(2, 1)]),
        // READ implies DESCRIBE, which the DENY leaves.
        ("ALLOW User:b * READ TOPIC LITERAL x\nDENY User:b * READ TOPIC LITERAL x", vec![]),
        ("DENY User:b * READ TOPIC LITERAL x\nALLOW User:* * ALL TOPIC LITERAL *", vec![]),
        ("DENY User:b * DESCRIBE TOPIC LITERAL x\nDENY User:b * READ TOPIC LITERAL x", vec![]),
        ("ALLOW User:b * READ TOPIC LITERAL x\nALLOW User:a * READ TOPIC PREFIXED x", vec![]),
        ("ALLOW User:b * READ TOPIC LITERAL x\nALLOW User:b * READ GROUP PREFIXED x", vec![]),
        ("ALLOW User:b * READ TOPIC LITERAL *\nALLOW User:b * READ TOPIC PREFIXED *", vec![(2, 1)]),
        ("ALLOW User:b * READ TOPIC PREFIXED x\nALLOW User:b * READ TOPIC LITERAL x", vec![(2, 1)]),
    ] {
        assert_eq!(shadows(acls), expected, "{acls}");
    }
}

/// Ten thousand ACLs, each of its own: found by pattern and principal, not by comparing all with all.
#[test]
fn shadowed_acls_of_many_are_found() {
    let own = (0..10_000).map(|at| acl(&format!("ALLOW User:u{at} * READ TOPIC PREFIXED team-{at:05}-")));
    let more = [acl("ALLOW User:u7 * READ TOPIC LITERAL team-00007-orders")];
    let found = shadowed(&image(own.chain(more)).acls);
    assert_eq!(found, [Shadowed { acl: id(10_001), by: id(8) }]);
}

#[test]
fn unused_acls_concern_nothing_that_was_asked() {
    let image = lines(
        "ALLOW User:bob * READ TOPIC LITERAL x
         ALLOW User:bob * WRITE TOPIC LITERAL x
         DENY User:* * ALL TOPIC LITERAL x
         ALLOW User:bob * READ TOPIC LITERAL y
         ALLOW User:bob * READ TOPIC PREFIXED z
         ALLOW User:bob * READ TOPIC LITERAL *",
    );
    let host = Host::parse("10.0.0.1");
    let asked = Question {
        principal: "User:bob",
        host: &host,
        operation: operation("READ"),
        resource_type: ResourceType::Topic,
        resource_name: "x",
    };
    assert_eq!(unused(&image.acls, [asked]), [id(2), id(4), id(5)]);
    assert_eq!(unused(&image.acls, []).len(), 6);
    assert_eq!(without_resource(&image.acls, ResourceType::Topic, ["x", "zz"]), [id(4)]);
    assert_eq!(without_resource(&image.acls, ResourceType::Group, ["x"]), []);
}
