//! Random sets of ACLs, decided by the index and by a reference that looks at every ACL as the KIPs word it.
//!
//! The reference shares no code with the crate but the types of ACLs and addresses.

mod world;

use barnabas_metadata::access::Acl;
use barnabas_security::explain::{Explanation, Question, explain};
use barnabas_security::{Authorizer, Host, Operation, ResourceType, SuperUsers, Verdict};
use world::{acl, image};

/// xorshift64*: enough to be arbitrary.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

const NAMES: &[&str] = &["*", "a", "ab", "abc", "abd", "b", "ba", "é", "éa", "hardcode"];
const HOSTS: &[&str] = &["*", "*", "10.0.0.1", "10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32", "9.9.9.9"];
const PRINCIPALS: &[&str] = &["User:*", "User:a", "User:b", "Group:a"];
const OPERATIONS: &[&str] =
    &["ALL", "READ", "WRITE", "DESCRIBE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "DELETE"];

fn random_acl(random: &mut Random) -> Acl {
    let permission = random.of(&["ALLOW", "ALLOW", "DENY"]);
    let (principal, host) = (random.of(PRINCIPALS), random.of(HOSTS));
    let (operation, resource) = (random.of(OPERATIONS), random.of(&["TOPIC", "TOPIC", "GROUP"]));
    let (pattern, name) = (random.of(&["LITERAL", "PREFIXED"]), random.of(NAMES));
    acl(&format!("{permission} {principal} {host} {operation} {resource} {pattern} {name}"))
}

struct Asked<'a> {
    principal: &'a str,
    host: &'a str,
    operation: Operation,
    resource_type: ResourceType,
    name: &'a str,
}

fn random_question(random: &mut Random) -> Asked<'static> {
    let names = ["a", "ab", "abc", "abcd", "abd", "b", "bab", "c", "*", "é", "éab", "ê"];
    Asked {
        principal: random.of(&["User:a", "User:b", "User:c", "Group:a"]),
        host: random.of(&["10.0.0.1", "10.1.2.3", "9.9.9.9", "8.8.8.8", "2001:db8:0:0:0:0:0:7"]),
        operation: world::operation(random.of(&OPERATIONS[1..])),
        resource_type: world::resource_type(random.of(&["TOPIC", "GROUP"])),
        name: random.of(&names),
    }
}

/// KIP-11: "a principal is [allowed or denied] an operation from a host on a resource".
fn concerns_caller(acl: &Acl, principal: &str, host: &str) -> bool {
    let in_range = match &*acl.host {
        "10.0.0.0/8" => host.starts_with("10."),
        "10.1.0.0/16" => host.starts_with("10.1."),
        "2001:db8::/32" => host.starts_with("2001:db8:"),
        _ => false,
    };
    (&*acl.principal == "User:*" || &*acl.principal == principal)
        && (&*acl.host == "*" || &*acl.host == host || in_range)
}

/// KIP-290.
fn concerns_name(acl: &Acl, resource_type: ResourceType, name: &str) -> bool {
    let literal = acl.pattern_type == 3 && (&*acl.resource_name == name || &*acl.resource_name == "*");
    let prefixed = acl.pattern_type == 4 && name.starts_with(&*acl.resource_name);
    acl.resource_type == resource_type.code() && (literal || prefixed)
}

fn concerns_operation(acl: &Acl, operation: Operation) -> bool {
    let implies = match operation {
        Operation::Describe => [3, 4, 6, 7].contains(&acl.operation),
        Operation::DescribeConfigs => acl.operation == 11,
        _ => false,
    };
    acl.operation == 2 || acl.operation == operation.code() || (acl.permission == 3 && implies)
}

fn reference(acls: &[Acl], asked: &Asked<'_>, open: bool) -> Verdict {
    let on_resource: Vec<&Acl> =
        acls.iter().filter(|acl| concerns_name(acl, asked.resource_type, asked.name)).collect();
    let matching = |permission: i8| {
        on_resource.iter().any(|acl| {
            acl.permission == permission
                && concerns_caller(acl, asked.principal, asked.host)
                && concerns_operation(acl, asked.operation)
        })
    };
    match on_resource.is_empty() {
        true if open => Verdict::AllowedWithoutAcls,
        true => Verdict::NotAllowedWithoutAcls,
        false if matching(2) => Verdict::Denied,
        false if matching(3) => Verdict::Allowed,
        false => Verdict::NotAllowed,
    }
}

/// KIP-679, as `Authorizer.authorizeByResourceType` says it.
fn reference_of_any(acls: &[Acl], asked: &Asked<'_>, open: bool) -> bool {
    let hard_coded = Asked { name: "hardcode", ..*asked };
    if matches!(reference(acls, &hard_coded, open), Verdict::Allowed | Verdict::AllowedWithoutAcls) {
        return true;
    }
    let own: Vec<&Acl> = acls
        .iter()
        .filter(|acl| acl.resource_type == asked.resource_type.code())
        .filter(|acl| concerns_caller(acl, asked.principal, asked.host))
        .filter(|acl| acl.operation == 2 || acl.operation == asked.operation.code())
        .collect();
    let of_every = |acl: &&Acl| acl.pattern_type == 3 && &*acl.resource_name == "*";
    let denies: Vec<&&Acl> = own.iter().filter(|acl| acl.permission == 2).collect();
    if denies.iter().any(|acl| of_every(acl)) {
        return false;
    }
    own.iter().filter(|acl| acl.permission == 3).any(|allow| {
        of_every(allow)
            || !denies.iter().any(|deny| match deny.pattern_type {
                3 => allow.pattern_type == 3 && allow.resource_name == deny.resource_name,
                _ => allow.resource_name.starts_with(&*deny.resource_name),
            })
    })
}

#[test]
fn index_decides_as_the_reference_does() {
    let mut random = Random(17);
    let mut verdicts = std::collections::BTreeMap::<String, usize>::new();
    for round in 0..3_000 {
        let size = random.below(if round % 3 == 0 { 4 } else { 24 });
        let acls: Vec<Acl> = (0..size).map(|_| random_acl(&mut random)).collect();
        let open = random.below(2) == 0;
        let image = image(acls.iter().cloned());
        let authorizer = Authorizer::new(&image, SuperUsers::default(), open);
        for _ in 0..40 {
            let asked = random_question(&mut random);
            let host = Host::parse(asked.host);
            let caller = authorizer.caller(asked.principal, &host);
            let verdict = authorizer.decide(&caller, asked.operation, asked.resource_type, asked.name);
            let context =
                || format!("{} {} {} {} {acls:#?}", asked.principal, asked.host, asked.operation, asked.name);
            assert_eq!(verdict, reference(&acls, &asked, open), "{}", context());
            let any = authorizer.allows_any(&caller, asked.operation, asked.resource_type);
            assert_eq!(any, reference_of_any(&acls, &asked, open), "any: {}", context());
            check_explanation(&image, &asked, &host, verdict);
            *verdicts.entry(format!("{verdict:?} any={any}")).or_default() += 1;
        }
    }
    // No kind of verdict is left out: five, each with and without an ACL for any resource, but for what cannot be both.
    assert!(verdicts.len() >= 8 && verdicts.values().all(|&count| count > 100), "{verdicts:?}");
}

/// The explanation names an ACL that decides as the verdict says.
fn check_explanation(image: &barnabas_metadata::Image, asked: &Asked<'_>, host: &Host, verdict: Verdict) {
    let question = Question {
        principal: asked.principal,
        host,
        operation: asked.operation,
        resource_type: asked.resource_type,
        resource_name: asked.name,
    };
    match (verdict, explain(&image.acls, &question, verdict)) {
        (Verdict::Allowed, Explanation::Allowed { acl, .. }) => assert_eq!(acl.permission, 3),
        (Verdict::Denied, Explanation::Denied { acl, .. }) => assert_eq!(acl.permission, 2),
        (Verdict::AllowedWithoutAcls, Explanation::AllowedWithoutAcls) => {}
        (Verdict::NotAllowed | Verdict::NotAllowedWithoutAcls, Explanation::Missing { acl }) => {
            let mended = [acl];
            let with_it = image_with(image, &mended);
            assert_eq!(reference(&with_it, asked, false), Verdict::Allowed);
        }
        (verdict, explanation) => panic!("{verdict:?} explained by {explanation:?}"),
    }
}

fn image_with(image: &barnabas_metadata::Image, more: &[Acl]) -> Vec<Acl> {
    image.acls.values().chain(more).cloned().collect()
}
