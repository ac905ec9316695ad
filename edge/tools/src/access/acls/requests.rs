//! DescribeAcls, CreateAcls and DeleteAcls.

use super::Listed;
use super::patterns::{Entry, Pattern, of_acl};
use barnabas_base::{Text, Uuid};
use barnabas_client::{ClientError, Cluster};
use barnabas_metadata::access::{Acl, Acls};
use barnabas_wire::messages::create_acls_request::AclCreation;
use barnabas_wire::messages::delete_acls_request::DeleteAclsFilter;
use barnabas_wire::messages::{CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest};
use std::collections::BTreeSet;

/// In every filter: whatever it is.
const ANY: i8 = 1;

/// The ACLs of these patterns; all where none is given.
pub async fn described(cluster: &mut Cluster, patterns: &[Pattern]) -> Result<Listed, ClientError> {
    let mut listed = Listed::new();
    let acls = acls(cluster, patterns).await?;
    for (pattern, entry) in acls.values().map(of_acl) {
        listed.entry(pattern).or_default().insert(entry);
    }
    Ok(listed)
}

/// The same with numbers of our own for ids: DescribeAcls does not tell the cluster's.
pub async fn acls(cluster: &mut Cluster, patterns: &[Pattern]) -> Result<Acls, ClientError> {
    let every = DescribeAclsRequest { resource_type_filter: ANY, pattern_type_filter: ANY, ..any_entry() };
    let of_pattern = |pattern: &Pattern| DescribeAclsRequest {
        resource_type_filter: pattern.resource_type,
        resource_name_filter: Some(pattern.name.as_str().into()),
        pattern_type_filter: pattern.pattern_type,
        ..any_entry()
    };
    let requests: Vec<DescribeAclsRequest> =
        if patterns.is_empty() { vec![every] } else { patterns.iter().map(of_pattern).collect() };
    let mut acls = Acls::new();
    for request in requests {
        let answer = cluster.ask_any(&request).await?;
        if answer.error_code != 0 {
            let why = answer.error_message.as_deref();
            return Err(ClientError::refused("describing ACLs", answer.error_code, why));
        }
        for resource in &answer.resources {
            for told in &resource.acls {
                let acl = Acl {
                    resource_type: resource.resource_type,
                    resource_name: Text::from(&*resource.resource_name),
                    pattern_type: resource.pattern_type,
                    principal: Text::from(&*told.principal),
                    host: Text::from(&*told.host),
                    operation: told.operation,
                    permission: told.permission_type,
                };
                acls.insert(Uuid((acls.len() as u128 + 1).to_be_bytes()), acl);
            }
        }
    }
    Ok(acls)
}

/// An absent name means any; the fields' default is the empty name.
fn any_entry() -> DescribeAclsRequest {
    DescribeAclsRequest {
        resource_name_filter: None,
        principal_filter: None,
        host_filter: None,
        operation: ANY,
        permission_type: ANY,
        ..Default::default()
    }
}

pub async fn create(
    cluster: &mut Cluster,
    pattern: &Pattern,
    entries: &BTreeSet<Entry>,
) -> Result<(), ClientError> {
    let creation = |entry: &Entry| AclCreation {
        resource_type: pattern.resource_type,
        resource_name: pattern.name.as_str().into(),
        resource_pattern_type: pattern.pattern_type,
        principal: entry.principal.as_str().into(),
        host: entry.host.as_str().into(),
        operation: entry.operation,
        permission_type: entry.permission,
        ..Default::default()
    };
    let request =
        CreateAclsRequest { creations: entries.iter().map(creation).collect(), ..Default::default() };
    let answer = cluster.ask_any(&request).await?;
    for (told, entry) in answer.results.iter().zip(entries) {
        if told.error_code != 0 {
            let what = format!("adding the ACL (pattern={pattern}, entry={entry})");
            return Err(ClientError::refused(what, told.error_code, told.error_message.as_deref()));
        }
    }
    Ok(())
}

/// Without entries: everything that the pattern finds.
pub async fn delete(
    cluster: &mut Cluster,
    pattern: &Pattern,
    entries: &BTreeSet<Entry>,
) -> Result<(), ClientError> {
    let every = DeleteAclsFilter {
        resource_type_filter: pattern.resource_type,
        resource_name_filter: Some(pattern.name.as_str().into()),
        pattern_type_filter: pattern.pattern_type,
        principal_filter: None,
        host_filter: None,
        operation: ANY,
        permission_type: ANY,
        ..Default::default()
    };
    let of_entry = |entry: &Entry| DeleteAclsFilter {
        principal_filter: Some(entry.principal.as_str().into()),
        host_filter: Some(entry.host.as_str().into()),
        operation: entry.operation,
        permission_type: entry.permission,
        ..every.clone()
    };
    let filters =
        if entries.is_empty() { vec![every.clone()] } else { entries.iter().map(of_entry).collect() };
    let answer = cluster.ask_any(&DeleteAclsRequest { filters, ..Default::default() }).await?;
    for told in &answer.filter_results {
        let failed = told.matching_acls.iter().map(|acl| (acl.error_code, &acl.error_message));
        let own = std::iter::once((told.error_code, &told.error_message));
        if let Some((code, message)) = own.chain(failed).find(|(code, _)| *code != 0) {
            return Err(ClientError::refused(
                format!("removing ACLs of `{pattern}`"),
                code,
                message.as_deref(),
            ));
        }
    }
    Ok(())
}
