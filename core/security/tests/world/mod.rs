//! ACLs written as lines, `ALLOW User:bob 10.0.0.1 READ TOPIC PREFIXED foo`, and an authorizer over them.

use barnabas_base::{Text, Uuid};
use barnabas_metadata::Image;
use barnabas_metadata::access::Acl;
use barnabas_security::{
    Authorizer, Host, Operation, PatternType, Permission, ResourceType, SuperUsers, Verdict,
};

macro_rules! named {
    ($type:ty, $name:expr) => {
        <$type>::ALL_OF_THEM
            .iter()
            .copied()
            .find(|it| it.name() == $name)
            .unwrap_or_else(|| panic!("{} is none of {}", $name, stringify!($type)))
    };
}

pub fn operation(name: &str) -> Operation {
    named!(Operation, name)
}

pub fn resource_type(name: &str) -> ResourceType {
    named!(ResourceType, name)
}

pub fn acl(line: &str) -> Acl {
    let [permission, principal, host, action, resource, pattern, name] =
        line.split_whitespace().collect::<Vec<_>>().try_into().expect("seven words");
    Acl {
        resource_type: resource_type(resource).code(),
        resource_name: Text::from(name),
        pattern_type: named!(PatternType, pattern).code(),
        principal: Text::from(principal),
        host: Text::from(host),
        operation: operation(action).code(),
        permission: named!(Permission, permission).code(),
    }
}

/// Ids count from 1 in the order of the ACLs.
pub fn id(number: u64) -> Uuid {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Uuid(bytes)
}

pub fn image(acls: impl IntoIterator<Item = Acl>) -> Image {
    let acls = acls.into_iter().enumerate().map(|(at, acl)| (id(at as u64 + 1), acl)).collect();
    Image { acls, ..Image::default() }
}

#[allow(dead_code)] // Not by every test.
pub fn lines(text: &str) -> Image {
    image(text.lines().filter(|line| !line.trim().is_empty()).map(acl))
}

#[allow(dead_code)] // Not by every test.
pub fn authorizer(text: &str) -> Authorizer {
    Authorizer::new(&lines(text), SuperUsers::parse("User:root").expect("what the test says"), false)
}

/// Asks `User:bob 127.0.0.1 READ TOPIC foo`.
#[allow(dead_code)] // Not by every test.
pub fn ask(authorizer: &Authorizer, question: &str) -> Verdict {
    let [principal, host, action, resource, name] =
        question.split_whitespace().collect::<Vec<_>>().try_into().expect("five words");
    let caller = authorizer.caller(principal, &Host::parse(host));
    authorizer.decide(&caller, operation(action), resource_type(resource), name)
}
