//! ACLs: listed, made one by one or many at once, deleted by a filter.

use super::check_cluster;
use crate::http::call::{Answer, Call, Fields, Place};
use crate::http::percent;
use crate::http::problem::Problem;
use crate::kafka::acls::{self, ANY, Acl, OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES};
use serde_json::{Value, json};

pub async fn list(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let filter = filter(&call.at, false)?;
    let rows = acls::describe(&mut call.cluster, &filter).await?;
    let rows = rows.iter().map(|acl| document(call, acl)).collect();
    Ok(call.list("KafkaAclList", &["acls"], rows))
}

/// The query as a filter. A deletion has to name what it is about: an empty query would delete every ACL.
fn filter(at: &Place, is_deletion: bool) -> Result<Acl, Problem> {
    let number = |key: &str, names: &[&str]| match at.query(key) {
        None if is_deletion => Err(Problem::bad(format!("{key} is missing: ANY stands for all"))),
        None => Ok(ANY),
        Some(word) => acls::number(names, word).ok_or_else(|| wrong(key, names, word)),
    };
    let text = |key: &str| at.query(key).map(str::to_owned);
    Ok(Acl {
        resource_type: number("resource_type", RESOURCES)?,
        resource_name: text("resource_name"),
        pattern_type: number("pattern_type", PATTERNS)?,
        principal: text("principal"),
        host: text("host"),
        operation: number("operation", OPERATIONS)?,
        permission: number("permission", PERMISSIONS)?,
    })
}

fn wrong(key: &str, names: &[&str], word: &str) -> Problem {
    Problem::bad(format!("{key} takes {}, not '{}'", names[1..].join(", "), word.escape_debug()))
}

pub async fn create(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let acl = read(&call.fields()?)?;
    acls::create(&mut call.cluster, std::slice::from_ref(&acl)).await?;
    Ok(Answer::created(address(call, &acl), None))
}

pub async fn create_batch(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let rows: Vec<Acl> =
        call.fields_of(&["data"])?.objects("data")?.iter().map(read).collect::<Result<_, _>>()?;
    if rows.is_empty() {
        return Err(Problem::bad("data is missing, or empty"));
    }
    acls::create(&mut call.cluster, &rows).await?;
    Ok(Answer::created(call.at.url(call.cluster.id(), &["acls"]), None))
}

const ACL: &[&str] =
    &["resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission"];

fn read(row: &Fields) -> Result<Acl, Problem> {
    row.only(ACL)?;
    let number = |key: &str, names: &[&str]| {
        let word = row.needed_text(key)?;
        acls::number(names, &word)
            .filter(|number| *number != ANY)
            .ok_or_else(|| wrong(key, &names[1..], &word))
    };
    Ok(Acl {
        resource_type: number("resource_type", RESOURCES)?,
        resource_name: Some(row.needed_text("resource_name")?),
        pattern_type: number("pattern_type", PATTERNS)?,
        principal: Some(row.needed_text("principal")?),
        host: Some(row.needed_text("host")?),
        operation: number("operation", OPERATIONS)?,
        permission: number("permission", PERMISSIONS)?,
    })
}

pub async fn delete(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let filter = filter(&call.at, true)?;
    let gone = acls::delete(&mut call.cluster, &filter).await?;
    let rows: Vec<Value> = gone.iter().map(|acl| document(call, acl)).collect();
    Ok(Answer::json(json!({ "data": rows })))
}

fn document(call: &Call, acl: &Acl) -> Value {
    json!({
        "kind": "KafkaAcl",
        "metadata": { "self": address(call, acl) },
        "cluster_id": call.cluster.id(),
        "resource_type": acls::name(RESOURCES, acl.resource_type),
        "resource_name": acl.resource_name,
        "pattern_type": acls::name(PATTERNS, acl.pattern_type),
        "principal": acl.principal,
        "host": acl.host,
        "operation": acls::name(OPERATIONS, acl.operation),
        "permission": acls::name(PERMISSIONS, acl.permission),
    })
}

/// The list with this ACL alone.
fn address(call: &Call, acl: &Acl) -> String {
    let text = |text: &Option<String>| percent::encode(text.as_deref().unwrap_or_default());
    format!(
        "{}?resource_type={}&resource_name={}&pattern_type={}&principal={}&host={}&operation={}&permission={}",
        call.at.url(call.cluster.id(), &["acls"]),
        acls::name(RESOURCES, acl.resource_type),
        text(&acl.resource_name),
        acls::name(PATTERNS, acl.pattern_type),
        text(&acl.principal),
        text(&acl.host),
        acls::name(OPERATIONS, acl.operation),
        acls::name(PERMISSIONS, acl.permission),
    )
}
