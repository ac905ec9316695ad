//! What a decision costs, in steps: texts and rows compared, hash tables asked. Not in time, which machines differ in.

mod world;

use barnabas_metadata::access::Acl;
use barnabas_security::{Authorizer, Host, Operation, ResourceType, SuperUsers};
use world::{acl, image};

/// Ten thousand ACLs of a kind that one of the sets below is made of.
const ACLS: usize = 10_000;

/// A binary search among ten thousand: 2^14 is more than that, and one step looks at what was found.
const SEARCH: usize = 15;

/// The most steps that any of these decisions takes. The parts: one for the hash table of names, one for what all
/// prefixes begin with and [`SEARCH`] among them, and a search for each (principal, host) pair of the caller's among
/// the rows of each pattern that matches.
fn most_steps(acls: impl Iterator<Item = String>, principal: &str, names: &[&str]) -> usize {
    let acls: Vec<Acl> = acls.map(|line| acl(&line)).collect();
    assert_eq!(acls.len(), ACLS);
    let authorizer = Authorizer::new(&image(acls), SuperUsers::default(), false);
    assert_eq!(authorizer.acls(), ACLS);
    let caller = authorizer.caller(principal, &Host::parse("10.0.0.1"));
    let steps = |name: &&str| {
        let mut steps = 0;
        authorizer.decide_counted(&caller, Operation::Read, ResourceType::Topic, name, &mut steps);
        steps
    };
    names.iter().map(steps).max().expect("a name")
}

#[test]
fn literal_patterns_cost_one_hash() {
    let acls = (0..ACLS).map(|at| format!("ALLOW User:u{at} * READ TOPIC LITERAL topic-{at}"));
    assert!(most_steps(acls, "User:u77", &["topic-77", "topic-78", "none"]) <= 1 + 2);
}

#[test]
fn prefixed_patterns_cost_one_binary_search() {
    let acls = (0..ACLS).map(|at| format!("ALLOW User:u{at} * READ TOPIC PREFIXED team-{at:05}-"));
    assert!(most_steps(acls, "User:u77", &["team-00077-x", "team-09999-x", "a", "z"]) <= 1 + SEARCH + 2);
}

#[test]
fn many_principals_on_one_pattern_cost_one_binary_search() {
    for pattern in ["LITERAL topic", "PREFIXED top"] {
        let acls = (0..ACLS).map(|at| format!("ALLOW User:u{at} * READ TOPIC {pattern}"));
        assert!(most_steps(acls, "User:u77", &["topic"]) <= 1 + 2 + SEARCH, "{pattern}");
    }
}

#[test]
fn wildcard_pattern_costs_nothing_once_the_caller_is_known() {
    let acls = (0..ACLS).map(|at| format!("ALLOW User:u{at} * READ TOPIC LITERAL *"));
    assert!(most_steps(acls, "User:u77", &["topic"]) <= 1);
}

#[test]
fn many_hosts_cost_one_binary_search() {
    let host = |at: usize| format!("10.{}.{}.1", at / 250, at % 250);
    let acls = (0..ACLS).map(move |at| format!("DENY User:bob {} READ TOPIC LITERAL topic", host(at)));
    assert!(most_steps(acls, "User:bob", &["topic"]) <= 1 + SEARCH);
    let acls = (0..ACLS).map(move |at| format!("DENY User:bob {}/32 READ TOPIC LITERAL topic", host(at)));
    assert!(most_steps(acls, "User:bob", &["topic"]) <= 1 + SEARCH);
}

/// A storm of nested prefixes is the worst that there is: each of them matches, and each must be looked at.
#[test]
fn nested_prefixes_cost_one_look_each() {
    let name = "x".repeat(240);
    let nested =
        (0..ACLS).map(|at| format!("ALLOW User:u{at} * READ TOPIC PREFIXED {}", "x".repeat(1 + at % 240)));
    // Two searches: for the eight bytes that most of them share, and among these.
    assert!(most_steps(nested, "User:u77", &[&name]) <= 1 + 1 + 2 * 9 + 240 * 7);
}
