//! The resources that the flags name, and one ACL, as Kafka prints them.

use super::RESOURCES;
use crate::command_line::args::{is_given, text, texts};
use barnabas_metadata::access::Acl;
use barnabas_security::acl::{CLUSTER_NAME, MATCH, name_of};
use barnabas_security::{Operation, PatternType, Permission, ResourceType};
use clap::ArgMatches;
use std::fmt;

/// In filters: a pattern of any type with exactly this name.
const ANY: i8 = 1;

/// What an ACL is for or, in a filter, what is looked for. Numbers are Kafka's: a newer one may not be known here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern {
    pub resource_type: i8,
    pub name: String,
    pub pattern_type: i8,
}

/// Who may or may not do what, from where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub principal: String,
    pub host: String,
    pub operation: i8,
    pub permission: i8,
}

impl Pattern {
    /// Kafka's names of its two types.
    pub fn type_names(&self) -> [&'static str; 2] {
        let kind = ResourceType::from_code(self.resource_type).map(ResourceType::name);
        let pattern = match self.pattern_type {
            MATCH => "MATCH",
            code => name_of(PatternType::from_code(code).map(PatternType::name), code),
        };
        [name_of(kind, self.resource_type), pattern]
    }
}

impl Entry {
    /// Kafka's names of its operation and its permission.
    pub fn names(&self) -> [&'static str; 2] {
        let operation = Operation::from_code(self.operation).map(Operation::name);
        let permission = Permission::from_code(self.permission).map(Permission::name);
        [name_of(operation, self.operation), name_of(permission, self.permission)]
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [kind, pattern] = self.type_names();
        write!(f, "ResourcePattern(resourceType={kind}, name={}, patternType={pattern})", self.name)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [operation, permission] = self.names();
        let Self { principal, host, .. } = self;
        write!(f, "(principal={principal}, host={host}, operation={operation}, permissionType={permission})")
    }
}

/// One ACL as Kafka prints a binding.
pub fn binding(acl: &Acl) -> String {
    let (pattern, entry) = of_acl(acl);
    format!("(pattern={pattern}, entry={entry})")
}

pub fn of_acl(acl: &Acl) -> (Pattern, Entry) {
    let pattern = Pattern {
        resource_type: acl.resource_type,
        name: acl.resource_name.to_string(),
        pattern_type: acl.pattern_type,
    };
    let entry = Entry {
        principal: acl.principal.to_string(),
        host: acl.host.to_string(),
        operation: acl.operation,
        permission: acl.permission,
    };
    (pattern, entry)
}

/// `--resource-pattern-type` as a number.
fn pattern_type(matches: &ArgMatches) -> i8 {
    match text(matches, "resource-pattern-type").unwrap_or_default().to_uppercase().as_str() {
        "PREFIXED" => PatternType::Prefixed.code(),
        "MATCH" => MATCH,
        "ANY" => ANY,
        _ => PatternType::Literal.code(),
    }
}

pub fn cluster() -> Pattern {
    Pattern {
        resource_type: ResourceType::Cluster.code(),
        name: CLUSTER_NAME.to_owned(),
        pattern_type: PatternType::Literal.code(),
    }
}

/// Those that the flags name. The cluster is one only where names are literal, as in Kafka.
pub fn named(matches: &ArgMatches) -> Vec<Pattern> {
    let pattern_type = pattern_type(matches);
    let mut found = Vec::new();
    for flag in RESOURCES.into_iter().filter(|flag| *flag != "cluster") {
        let resource_type = type_of_flag(flag).code();
        let trimmed = |name: &str| name.trim().to_owned();
        found.extend(texts(matches, flag).map(trimmed).map(|name| Pattern {
            resource_type,
            name,
            pattern_type,
        }));
    }
    let means_cluster = is_given(matches, "cluster") || is_given(matches, "idempotent");
    if means_cluster && pattern_type == PatternType::Literal.code() {
        found.push(cluster());
    }
    found
}

fn type_of_flag(flag: &str) -> ResourceType {
    match flag {
        "topic" => ResourceType::Topic,
        "group" => ResourceType::Group,
        "transactional-id" => ResourceType::TransactionalId,
        "delegation-token" => ResourceType::DelegationToken,
        "user-principal" => ResourceType::User,
        _ => ResourceType::Cluster,
    }
}

/// `topic:orders`, `cluster`, `user:User:alice`: as `--explain` and `--who-can` name a resource.
pub fn resource(word: &str) -> Option<(ResourceType, String)> {
    let (kind, name) = word.split_once(':').unwrap_or((word, ""));
    let kind = kind.to_ascii_lowercase().replace('_', "-");
    let flag = if kind == "user" { "user-principal" } else { kind.as_str() };
    let flag = RESOURCES.into_iter().find(|known| *known == flag)?;
    match (type_of_flag(flag), name) {
        (ResourceType::Cluster, "" | CLUSTER_NAME) => Some((ResourceType::Cluster, CLUSTER_NAME.to_owned())),
        (ResourceType::Cluster, _) | (_, "") => None,
        (kind, name) => Some((kind, name.to_owned())),
    }
}

/// `Read`, `DESCRIBE_CONFIGS`, `describeconfigs`.
pub fn operation(word: &str) -> Option<Operation> {
    let bare = |text: &str| text.replace('_', "").to_ascii_lowercase();
    Operation::ALL_OF_THEM.iter().copied().find(|operation| bare(operation.name()) == bare(word.trim()))
}

/// As Kafka's tool writes an operation: `DescribeConfigs`.
pub fn pascal(operation: Operation) -> String {
    let words = operation.name().split('_').map(|word| {
        let (first, rest) = word.split_at(1);
        format!("{first}{}", rest.to_ascii_lowercase())
    });
    words.collect()
}
