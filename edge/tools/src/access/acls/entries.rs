//! The ACLs that the flags name: for each resource, who may or may not do what.

use super::patterns::{Entry, Pattern, cluster, named, operation};
use crate::ToolError;
use crate::command_line::args::{is_given, texts};
use barnabas_security::acl::WILDCARD;
use barnabas_security::{Operation, Permission, ResourceType};
use clap::ArgMatches;
use std::collections::{BTreeMap, BTreeSet};

/// What is to be added or removed. No entries: all that a filter finds.
pub type Wanted = BTreeMap<Pattern, BTreeSet<Entry>>;

/// # Errors
/// No resource; a principal that is none; an operation that the resource does not have.
pub fn wanted(matches: &ArgMatches) -> Result<Wanted, ToolError> {
    let patterns = named(matches);
    if patterns.is_empty() {
        return Err(ToolError::Usage(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or \
             --delegation-token <Delegation Token ID>"
                .to_owned(),
        ));
    }
    let mut wanted = Wanted::new();
    let (is_producer, is_consumer) = (is_given(matches, "producer"), is_given(matches, "consumer"));
    if !is_producer && !is_consumer {
        let operations = operations(matches, &patterns)?;
        let entries = entries(matches, &operations)?;
        wanted.extend(patterns.iter().map(|pattern| (pattern.clone(), entries.clone())));
    }
    let mut give = |pattern: &Pattern, operations: &[Operation]| {
        let entries = entries(matches, operations)?;
        wanted.entry(pattern.clone()).or_default().extend(entries);
        Ok::<_, ToolError>(())
    };
    use Operation::{Create, Describe, IdempotentWrite, Read, Write};
    for pattern in &patterns {
        match ResourceType::from_code(pattern.resource_type) {
            Some(ResourceType::Topic) if is_producer => give(pattern, &[Write, Describe, Create])?,
            Some(ResourceType::TransactionalId) if is_producer => give(pattern, &[Write, Describe])?,
            _ => {}
        }
        match ResourceType::from_code(pattern.resource_type) {
            Some(ResourceType::Topic) if is_consumer => give(pattern, &[Read, Describe])?,
            Some(ResourceType::Group) if is_consumer => give(pattern, &[Read])?,
            _ => {}
        }
    }
    if is_given(matches, "idempotent") {
        give(&cluster(), &[IdempotentWrite])?;
    }
    check_operations(&wanted)?;
    Ok(wanted)
}

fn operations(matches: &ArgMatches, patterns: &[Pattern]) -> Result<Vec<Operation>, ToolError> {
    let words: Vec<&str> = texts(matches, "operation").collect();
    if words.is_empty() {
        return Ok(vec![Operation::All]);
    }
    let unknown = |word: &&str| {
        let (kind, supported) = supported(&patterns[0]);
        ToolError::Usage(format!("no operation is called '{word}': {kind} supports {supported}"))
    };
    words.iter().map(|word| operation(word).ok_or_else(|| unknown(word))).collect()
}

fn check_operations(wanted: &Wanted) -> Result<(), ToolError> {
    for (pattern, entries) in wanted {
        let known = ResourceType::from_code(pattern.resource_type).map_or(&[][..], ResourceType::operations);
        let fits = |entry: &Entry| {
            let asked = Operation::from_code(entry.operation);
            asked.is_some_and(|asked| asked == Operation::All || known.contains(&asked))
        };
        if !entries.iter().all(fits) {
            let (kind, supported) = supported(pattern);
            return Err(ToolError::Usage(format!(
                "ResourceType {kind} only supports operations {supported}"
            )));
        }
    }
    Ok(())
}

/// The name of the resource's type, and its operations as a list.
fn supported(pattern: &Pattern) -> (&'static str, String) {
    let Some(kind) = ResourceType::from_code(pattern.resource_type) else {
        return ("UNKNOWN", "[]".to_owned());
    };
    let names: Vec<&str> = kind.operations().iter().map(|operation| operation.name()).collect();
    (kind.name(), format!("[{}, ALL]", names.join(", ")))
}

/// Every combination of principals, operations and hosts, allowed and denied.
fn entries(matches: &ArgMatches, operations: &[Operation]) -> Result<BTreeSet<Entry>, ToolError> {
    let mut entries = BTreeSet::new();
    for (principals, hosts, permission) in [
        ("allow-principal", "allow-host", Permission::Allow),
        ("deny-principal", "deny-host", Permission::Deny),
    ] {
        let hosts: Vec<&str> = if is_given(matches, hosts) {
            texts(matches, hosts).map(str::trim).collect()
        } else {
            vec![WILDCARD]
        };
        for principal in texts(matches, principals).map(str::trim) {
            check_principal(principal)?;
            for (operation, host) in
                operations.iter().flat_map(|one| hosts.iter().map(move |host| (one, host)))
            {
                entries.insert(Entry {
                    principal: principal.to_owned(),
                    host: (*host).to_owned(),
                    operation: operation.code(),
                    permission: permission.code(),
                });
            }
        }
    }
    Ok(entries)
}

/// # Errors
/// No type in front of the name.
pub fn check_principal(principal: &str) -> Result<(), ToolError> {
    match principal.split_once(':') {
        Some((kind, _)) if !kind.is_empty() => Ok(()),
        _ => Err(ToolError::Usage(format!(
            "expected a string in format principalType:principalName but got {principal}. Example: User:alice"
        ))),
    }
}
