//! The set of ACLs that decisions are taken with, and its creation on a broker.
//!
//! A line of the set: `ALLOW User:u7 * WRITE TOPIC LITERAL topic-7`. Of ten ACLs six name a topic, two a prefix, one
//! denies a topic at another host, one names a group; one of a thousand is for every topic. Half of the
//! topics and prefixes are the caller's. The names that are asked for
//! are topics with an ACL, topics under a prefix, and topics with none, a third each.

use crate::Wrong;
use barnabas_client::Connection;
use barnabas_metadata::access::Acl;
use barnabas_security::{Operation, PatternType, Permission, ResourceType};
use barnabas_wire::messages::CreateAclsRequest;
use barnabas_wire::messages::create_acls_request::AclCreation;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// Whom decisions are asked for.
pub const CALLER: &str = "User:caller";
const NAMES: usize = 999;
/// Kafka's controller takes at most 10,000 records at once.
const AT_ONCE: usize = 1_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Whose topic or prefix it is: those of every second ten are the caller's.
fn owner(at: usize) -> String {
    if (at / 10).is_multiple_of(2) { CALLER.to_owned() } else { format!("User:u{at}") }
}

fn line(at: usize) -> String {
    if at % 1000 == 9 {
        return format!("ALLOW User:u{at} * READ TOPIC LITERAL *");
    }
    let owner = owner(at);
    match at % 10 {
        0..=5 => format!("ALLOW {owner} * WRITE TOPIC LITERAL topic-{at}"),
        6 | 7 => format!("ALLOW {owner} * WRITE TOPIC PREFIXED team-{at:06}-"),
        8 => format!("DENY {owner} 10.9.9.9 WRITE TOPIC LITERAL topic-{}", at - 8),
        _ => format!("ALLOW {owner} * READ GROUP LITERAL group-{at}"),
    }
}

pub fn write_set(count: usize, acls: &str, topics: &str) -> Result<Value, Wrong> {
    let (mut lines, mut names) = (String::new(), String::new());
    for at in 0..count {
        writeln!(lines, "{}", line(at))?;
    }
    for at in 0..NAMES {
        let place = (at * 97 % count.max(10)) / 10 * 10;
        match at % 3 {
            0 => writeln!(names, "topic-{place}")?,
            1 => writeln!(names, "team-{:06}-orders", place + 6)?,
            _ => writeln!(names, "other-{place}")?,
        }
    }
    std::fs::write(acls, lines)?;
    std::fs::write(topics, names)?;
    Ok(json!({ "acls": count, "names": NAMES }))
}

macro_rules! named {
    ($type:ty, $name:expr) => {
        <$type>::ALL_OF_THEM
            .iter()
            .find(|one| one.name() == $name)
            .map(|one| one.code())
            .ok_or_else(|| format!("{} is no {}", $name, stringify!($type)))?
    };
}

pub fn parse(line: &str) -> Result<Acl, Wrong> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [permission, principal, host, operation, resource, pattern, name] = words[..] else {
        return Err(format!("{line:?} has not seven words").into());
    };
    Ok(Acl {
        resource_type: named!(ResourceType, resource),
        resource_name: name.into(),
        pattern_type: named!(PatternType, pattern),
        principal: principal.into(),
        host: host.into(),
        operation: named!(Operation, operation),
        permission: named!(Permission, permission),
    })
}

pub fn read_set(path: &str) -> Result<Vec<Acl>, Wrong> {
    std::fs::read_to_string(path)?.lines().map(parse).collect()
}

fn creation(acl: &Acl) -> AclCreation {
    AclCreation {
        resource_type: acl.resource_type,
        resource_name: (&*acl.resource_name).into(),
        resource_pattern_type: acl.pattern_type,
        principal: (&*acl.principal).into(),
        host: (&*acl.host).into(),
        operation: acl.operation,
        permission_type: acl.permission,
        ..Default::default()
    }
}

/// Creates the set on a broker, and that the principal may write topics of the prefix.
pub fn create(bootstrap: &str, path: &str, principal: &str, prefix: &str) -> Result<Value, Wrong> {
    let mut acls = read_set(path)?;
    acls.push(parse(&format!("ALLOW {principal} * WRITE TOPIC PREFIXED {prefix}"))?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connection = Connection::open(bootstrap, "security", PATIENCE).await?;
        for piece in acls.chunks(AT_ONCE) {
            let request =
                CreateAclsRequest { creations: piece.iter().map(creation).collect(), ..Default::default() };
            let answer = connection.call(&request).await?;
            if let Some(refused) = answer.results.iter().find(|result| result.error_code != 0) {
                let text = refused.error_message.as_deref().unwrap_or("");
                return Err(format!("CreateAcls is refused: {} {text}", refused.error_code).into());
            }
        }
        Ok(json!({ "acls": acls.len() }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_gives_the_caller_half_of_the_topics_and_prefixes() {
        let acls: Vec<Acl> = (0..1_000).map(|at| parse(&line(at)).expect("a line of the set")).collect();
        let of_caller = |one: &&Acl| &*one.principal == CALLER && one.permission == Permission::Allow.code();
        let topics = acls.iter().filter(|one| one.resource_type == ResourceType::Topic.code());
        // Eight of ten are topics and prefixes that are allowed.
        assert_eq!(topics.filter(of_caller).count(), 400);
        assert_eq!(acls.iter().filter(|one| &*one.resource_name == "*").count(), 1);
    }

    #[test]
    fn line_of_six_words_is_refused() {
        assert!(parse("ALLOW User:a * WRITE TOPIC LITERAL").is_err());
        assert!(parse("ALLOW User:a * WRITES TOPIC LITERAL t").is_err());
    }
}
