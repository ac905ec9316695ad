//! `acls`, as Kafka's `kafka-acls`: lists, adds and removes ACLs. Ours besides: why an operation is allowed or denied,
//! who may do something, which ACLs have no effect.
//!
//! | file | answers |
//! |---|---|
//! | `acls/patterns.rs` | which resources the flags name |
//! | `acls/entries.rs` | which ACLs the flags name |
//! | `acls/requests.rs` | DescribeAcls, CreateAcls, DeleteAcls |
//! | `acls/advice.rs` | why, who, and what has no effect: core/security over the cluster's ACLs |
//!
//! Source: Kafka 4.3 `AclCommand`.

mod advice;
mod entries;
mod patterns;
mod requests;
#[cfg(test)]
mod tests;

use crate::command_line::args::{
    check_goes_with, exactly_one, excludes, is_given, switch, text, texts, value, values,
};
use crate::command_line::connection::{
    bootstrap_controller, bootstrap_server, cluster_config, command_config,
};
use crate::output::table::{Layout, Table, is_json, output};
use crate::waiting::telling;
use crate::{ToolError, block_on, say};
use barnabas_client::{ClientError, Cluster, ClusterConfig};
use clap::{Arg, ArgMatches};
use entries::Wanted;
use patterns::{Entry, Pattern};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal};

const TOOL: &str = "acls";
/// Of these flags one says what to do. All but the first three are ours.
const ACTIONS: [&str; 7] = ["list", "add", "remove", "explain", "who-can", "shadowed", "without-resource"];
/// What names resources.
const RESOURCES: [&str; 6] =
    ["topic", "group", "cluster", "transactional-id", "delegation-token", "user-principal"];

/// The ACLs of each pattern.
type Listed = BTreeMap<Pattern, BTreeSet<Entry>>;

pub fn flags() -> Vec<Arg> {
    let mut flags = vec![
        bootstrap_server(),
        bootstrap_controller(),
        command_config(),
        switch("list", "List ACLs; those of a resource where one is named"),
        switch("add", "Add ACLs"),
        switch("remove", "Remove ACLs"),
        values("topic", "topic", "The topic; * is all topics"),
        values("group", "group", "The group; * is all groups"),
        switch("cluster", "The cluster"),
        values("transactional-id", "id", "The transactional id; * is all of them"),
        values("delegation-token", "id", "The delegation token's id; * is all of them"),
        values("user-principal", "principal", "The user, as a resource of CreateTokens and DescribeTokens"),
        value(
            "resource-pattern-type",
            "LITERAL|PREFIXED|ANY|MATCH",
            "How names are meant. With --list and --remove: ANY is either type, MATCH is every pattern that covers the name",
        )
        .ignore_case(true)
        .value_parser(["LITERAL", "PREFIXED", "ANY", "MATCH"]),
        values("operation", "operation", "Read, Write, Create, Describe …; All where it is left out"),
        values("allow-principal", "principal", "Who is allowed, for example User:alice; User:* is everyone"),
        values("deny-principal", "principal", "Who is denied; a DENY counts before every ALLOW"),
        values("allow-host", "host", "From where --allow-principal is allowed: an address; * where it is left out"),
        values("deny-host", "host", "From where --deny-principal is denied: an address; * where it is left out"),
        values("principal", "principal", "With --list: the ACLs of this principal alone"),
        switch("producer", "What a producer needs on --topic and --transactional-id"),
        switch("consumer", "What a consumer needs on --topic and --group"),
        switch("idempotent", "With --producer: IdempotentWrite on the cluster too"),
        switch("force", "Remove without asking"),
        output(),
    ];
    flags.extend(own_flags());
    flags
}

fn own_flags() -> [Arg; 4] {
    [
        values(
            "explain",
            "principal operation resource",
            "Ours: why PRINCIPAL may do OPERATION to RESOURCE, or may not. Example: --explain User:alice Read topic:orders 10.0.0.1",
        )
        .num_args(3..=4),
        values(
            "who-can",
            "operation resource",
            "Ours: the principals that may do OPERATION to RESOURCE. Example: --who-can Write topic:orders",
        )
        .num_args(2),
        switch("shadowed", "Ours: the ACLs that one other ACL makes useless"),
        switch("without-resource", "Ours: the ACLs of topics and groups that match none that there is"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = exactly_one(matches, &ACTIONS)?;
    check_together(matches, action)?;
    let config = cluster_config(matches, "barnabas-acls")?;
    let mut cluster = Cluster::new(config.clone());
    match action {
        "list" => list(matches, config, &mut cluster),
        "add" => add(matches, config, &mut cluster),
        "remove" => remove(matches, config, &mut cluster),
        _ => {
            let question = advice::Advice::read(matches, action)?;
            let work = question.lines(&mut cluster);
            let lines = block_on(async { Ok(telling(TOOL, config, work).await?) })?;
            lines.iter().try_for_each(|line| say(line))
        }
    }
}

/// Kafka's rules, and that what is ours stands alone.
fn check_together(matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
    let roles = ["producer", "consumer"];
    let who = ["allow-host", "allow-principal", "deny-host", "deny-principal"];
    excludes(matches, "list", &[&roles[..], &who[..]].concat())?;
    check_goes_with(matches, action, &[("output", &["list"])])?;
    for role in roles {
        excludes(matches, role, &["operation", "deny-principal", "deny-host"])?;
    }
    let usage = |text: &str| Err(ToolError::Usage(text.to_owned()));
    if ACTIONS[3..].contains(&action) {
        let besides = [&RESOURCES[..], &roles[..], &who[..], &["operation", "principal"][..]].concat();
        excludes(matches, action, &besides)?;
    }
    if is_given(matches, "principal") && action != "list" {
        return usage("The --principal option is only available if --list is set");
    }
    if is_given(matches, "producer") && !is_given(matches, "topic") {
        return usage("With --producer you must specify a --topic");
    }
    if is_given(matches, "idempotent") && !is_given(matches, "producer") {
        return usage("The --idempotent option is only available if --producer is set");
    }
    let has_both = is_given(matches, "topic") && is_given(matches, "group");
    let has_others = is_given(matches, "cluster") || is_given(matches, "transactional-id");
    if is_given(matches, "consumer") && (!has_both || (!is_given(matches, "producer") && has_others)) {
        return usage(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option \
             should be specified.",
        );
    }
    Ok(())
}

fn list(matches: &ArgMatches, config: ClusterConfig, cluster: &mut Cluster) -> Result<(), ToolError> {
    let patterns = patterns::named(matches);
    let principals: Vec<&str> = texts(matches, "principal").collect();
    principals.iter().try_for_each(|principal| entries::check_principal(principal))?;
    let listed =
        block_on(async { Ok(telling(TOOL, config, requests::described(cluster, &patterns)).await?) })?;
    if is_json(matches) {
        let is_meant =
            |entry: &Entry| principals.is_empty() || principals.contains(&entry.principal.as_str());
        return table(&listed, is_meant).print(matches);
    }
    if principals.is_empty() {
        return show(&listed);
    }
    for principal in principals {
        say(&format!("ACLs for principal `{principal}`"))?;
        let of_principal = |(pattern, entries): (&Pattern, &BTreeSet<Entry>)| {
            let kept: BTreeSet<Entry> =
                entries.iter().filter(|entry| entry.principal == principal).cloned().collect();
            (!kept.is_empty()).then(|| (pattern.clone(), kept))
        };
        show(&listed.iter().filter_map(of_principal).collect())?;
    }
    Ok(())
}

/// A row for each ACL, for `--output json`.
fn table(listed: &Listed, is_meant: impl Fn(&Entry) -> bool) -> Table {
    let headings =
        ["ResourceType", "Name", "PatternType", "Principal", "Host", "Operation", "PermissionType"];
    let empty = Table::new(Layout::Blanks);
    let mut table = headings.into_iter().fold(empty, |table, heading| table.text(heading, 0));
    for (pattern, entries) in listed {
        for entry in entries.iter().filter(|entry| is_meant(entry)) {
            let [kind, pattern_type] = pattern.type_names();
            let [operation, permission] = entry.names();
            table.row([
                kind,
                &pattern.name,
                pattern_type,
                &entry.principal,
                &entry.host,
                operation,
                permission,
            ]);
        }
    }
    table
}

fn show(listed: &Listed) -> Result<(), ToolError> {
    for (pattern, entries) in listed {
        say(&format!("Current ACLs for resource `{pattern}`:\n{}\n", lines(entries)))?;
    }
    Ok(())
}

/// One in each line, indented.
fn lines(entries: &BTreeSet<Entry>) -> String {
    let lines: Vec<String> = entries.iter().map(|entry| format!("\t{entry}")).collect();
    lines.join("\n")
}

fn add(matches: &ArgMatches, config: ClusterConfig, cluster: &mut Cluster) -> Result<(), ToolError> {
    let kind = text(matches, "resource-pattern-type").unwrap_or_default().to_uppercase();
    if ["ANY", "MATCH"].contains(&kind.as_str()) {
        return Err(ToolError::Usage(format!(
            "A '--resource-pattern-type' value of '{kind}' is not valid when adding acls."
        )));
    }
    let wanted = entries::wanted(matches)?;
    if wanted.values().any(BTreeSet::is_empty) {
        return Err(ToolError::Usage(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
                .to_owned(),
        ));
    }
    block_on(async { Ok(telling(TOOL, config, add_all(cluster, &wanted)).await?) })?
}

/// Errors of the cluster outside, of standard output inside.
async fn add_all(cluster: &mut Cluster, wanted: &Wanted) -> Result<Result<(), ToolError>, ClientError> {
    for (pattern, entries) in wanted {
        let listed = requests::described(cluster, std::slice::from_ref(pattern)).await?;
        let known = listed.get(pattern).cloned().unwrap_or_default();
        for entry in entries.intersection(&known) {
            if let Err(error) = say(&format!("Acl (pattern={pattern}, entry={entry}) already exists.")) {
                return Ok(Err(error));
            }
        }
        let missing: BTreeSet<Entry> = entries.difference(&known).cloned().collect();
        if missing.is_empty() {
            continue;
        }
        let text = format!("Adding ACLs for resource `{pattern}`: \n {}\n", lines(&missing));
        if let Err(error) = say(&text) {
            return Ok(Err(error));
        }
        requests::create(cluster, pattern, &missing).await?;
    }
    Ok(Ok(()))
}

fn remove(matches: &ArgMatches, config: ClusterConfig, cluster: &mut Cluster) -> Result<(), ToolError> {
    for (pattern, entries) in &entries::wanted(matches)? {
        let question = if entries.is_empty() {
            format!("Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)")
        } else {
            format!(
                "Are you sure you want to remove ACLs: \n {}\n from resource filter `{pattern}`? (y/n)",
                lines(entries)
            )
        };
        if is_given(matches, "force") || confirmed(&question)? {
            let work = requests::delete(cluster, pattern, entries);
            block_on(async { Ok(telling(TOOL, config.clone(), work).await?) })?;
        }
    }
    Ok(())
}

fn confirmed(question: &str) -> Result<bool, ToolError> {
    say(question)?;
    let input = std::io::stdin();
    let mut answer = String::new();
    let bytes = input.lock().read_line(&mut answer).map_err(ToolError::Input)?;
    if bytes == 0 && !input.is_terminal() {
        return Err(ToolError::Usage(
            "standard input ended without an answer: expected y or n, or --force".to_owned(),
        ));
    }
    Ok(answer.trim_end_matches(['\r', '\n']).eq_ignore_ascii_case("y"))
}
