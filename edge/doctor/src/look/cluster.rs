//! What belongs to the cluster as a whole: reassignments, quotas, ACLs, SCRAM credentials, transactions.

use super::ask::{Asker, checked};
use barnabas_base::ErrorCode;
use barnabas_findings::{Acl, Quota, Scram, Seen, Transaction, Unseen};
use barnabas_security::{Operation, Permission, ResourceType};
use barnabas_wire::messages::{
    DescribeAclsRequest, DescribeClientQuotasRequest, DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest, ListPartitionReassignmentsRequest, ListTransactionsRequest,
};

/// In filters of ACLs: whatever it is.
const ANY: i8 = 1;
/// A pattern type: the beginning of a name.
const PREFIXED: i8 = 4;

pub async fn reassigning(asker: &mut Asker) -> Seen<Vec<(String, i32)>> {
    let request =
        ListPartitionReassignmentsRequest { topics: None, timeout_ms: 10_000, ..Default::default() };
    let _waiting = asker.pending.begin("the controller (ListPartitionReassignments)".to_owned());
    let answer = asker.cluster.ask_controller(|_| request.clone()).await;
    let answer = answer.map_err(|error| Unseen(format!("reassignments: {error}")))?;
    checked("reassignments", answer.error_code, answer.error_message.as_deref())?;
    let rows = answer.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| (topic.name.to_string(), partition.partition_index))
    });
    Ok(rows.collect())
}

pub async fn quotas(asker: &mut Asker) -> Seen<Vec<Quota>> {
    let answer = asker.ask_any(|_| DescribeClientQuotasRequest::default()).await?;
    checked("client quotas", answer.error_code, answer.error_message.as_deref())?;
    let entries = answer.entries.unwrap_or_default();
    let rows = entries.iter().flat_map(|entry| {
        let part = |part: &barnabas_wire::messages::describe_client_quotas_response::EntityData| {
            (part.entity_type.to_string(), part.entity_name.as_ref().map(ToString::to_string))
        };
        let entity: Vec<_> = entry.entity.iter().map(part).collect();
        entry.values.iter().map(move |value| Quota {
            entity: entity.clone(),
            key: value.key.to_string(),
            value: value.value,
        })
    });
    Ok(rows.collect())
}

pub async fn acls(asker: &mut Asker) -> Seen<Vec<Acl>> {
    let request = DescribeAclsRequest {
        resource_type_filter: ANY,
        resource_name_filter: None,
        principal_filter: None,
        host_filter: None,
        pattern_type_filter: ANY,
        operation: ANY,
        permission_type: ANY,
        ..Default::default()
    };
    let answer = asker.ask_any(|_| request.clone()).await?;
    // Without an authorizer there are none.
    if ErrorCode::from_code(answer.error_code) == ErrorCode::SecurityDisabled {
        return Ok(Vec::new());
    }
    checked("ACLs", answer.error_code, answer.error_message.as_deref())?;
    let rows = answer.resources.iter().flat_map(|resource| {
        let kind = ResourceType::from_code(resource.resource_type).map_or("unknown", ResourceType::name);
        resource.acls.iter().map(move |acl| Acl {
            resource_type: kind.to_ascii_lowercase().replace('_', "-"),
            resource: resource.resource_name.to_string(),
            is_prefixed: resource.pattern_type == PREFIXED,
            principal: acl.principal.to_string(),
            host: acl.host.to_string(),
            operation: Operation::from_code(acl.operation).map_or("UNKNOWN", Operation::name).to_owned(),
            is_allow: Permission::from_code(acl.permission_type) == Some(Permission::Allow),
        })
    });
    Ok(rows.collect())
}

pub async fn scram(asker: &mut Asker) -> Seen<Vec<Scram>> {
    let request = DescribeUserScramCredentialsRequest { users: None, ..Default::default() };
    let answer = asker.ask_any(|_| request.clone()).await?;
    checked("SCRAM credentials", answer.error_code, answer.error_message.as_deref())?;
    let rows = answer.results.iter().flat_map(|user| {
        user.credential_infos.iter().map(|info| Scram {
            user: user.user.to_string(),
            mechanism: if info.mechanism == 1 { "SCRAM-SHA-256" } else { "SCRAM-SHA-512" }.to_owned(),
            iterations: info.iterations,
        })
    });
    Ok(rows.collect())
}

/// The open transactions of every coordinator.
pub async fn transactions(asker: &mut Asker, nodes: &[i32]) -> Seen<Vec<Transaction>> {
    let mut open = Vec::new();
    for node in nodes {
        let list = ListTransactionsRequest { state_filters: vec!["Ongoing".into()], ..Default::default() };
        let answer = asker.ask(*node, |_| list.clone()).await?;
        checked(&format!("transactions of node {node}"), answer.error_code, None)?;
        let ids: Vec<_> =
            answer.transaction_states.iter().map(|state| state.transactional_id.clone()).collect();
        if ids.is_empty() {
            continue;
        }
        let describe = DescribeTransactionsRequest { transactional_ids: ids, ..Default::default() };
        let answer = asker.ask(*node, |_| describe.clone()).await?;
        for state in answer.transaction_states {
            // It has ended since it was listed.
            let code = ErrorCode::from_code(state.error_code);
            let is_over = code == ErrorCode::None && state.transaction_start_time_ms < 0;
            if is_over || code == ErrorCode::TransactionalIdNotFound {
                continue;
            }
            checked(&format!("transaction {}", &*state.transactional_id), state.error_code, None)?;
            let partitions = state.topics.iter().flat_map(|topic| {
                topic.partitions.iter().map(|&number| (topic.topic.to_string(), number)).collect::<Vec<_>>()
            });
            open.push(Transaction {
                id: state.transactional_id.to_string(),
                producer_id: state.producer_id,
                started_ms: state.transaction_start_time_ms,
                timeout_ms: state.transaction_timeout_ms,
                partitions: partitions.collect(),
            });
        }
    }
    Ok(open)
}
