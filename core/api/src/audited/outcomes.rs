//! What an answer says became of each resource.

use barnabas_wire::messages::{
    AlterClientQuotasResponse, AlterPartitionReassignmentsResponse, DeleteAclsResponse, DeleteTopicsResponse,
    ElectLeadersResponse, ResponseBody,
};

use super::subjects::acl_name;
use super::{ACL, Edit, Outcomes, QUOTA, SCRAM, Subject, config_type, entity};

const TOPIC: &str = "TOPIC";

/// The first that is a refusal.
fn worst(codes: impl Iterator<Item = i16>) -> i16 {
    codes.into_iter().find(|code| *code != 0).unwrap_or(0)
}

impl Outcomes {
    fn whole(code: i16) -> Self {
        Self { whole: code, ..Self::default() }
    }

    fn named(kind: &'static str, each: impl Iterator<Item = (String, i16)>) -> Self {
        Self::of_all(each.map(|(name, code)| (kind, name, code)))
    }

    /// A resource that is named twice has the refusal, if either was refused.
    fn of_all(each: impl Iterator<Item = (&'static str, String, i16)>) -> Self {
        let mut outcomes = Self::default();
        for (kind, name, code) in each {
            let known = outcomes.by_name.entry((kind, name)).or_insert(code);
            *known = worst([*known, code].into_iter());
        }
        outcomes
    }

    fn placed(codes: impl Iterator<Item = i16>) -> Self {
        Self { by_place: codes.collect(), ..Self::default() }
    }
}

pub(super) fn of(answer: &ResponseBody) -> Outcomes {
    match answer {
        ResponseBody::CreateTopics(answer) => {
            Outcomes::named(TOPIC, answer.topics.iter().map(|one| (one.name.to_string(), one.error_code)))
        }
        ResponseBody::DeleteTopics(answer) => deleted(answer),
        ResponseBody::CreatePartitions(answer) => {
            Outcomes::named(TOPIC, answer.results.iter().map(|one| (one.name.to_string(), one.error_code)))
        }
        ResponseBody::DeleteRecords(answer) => Outcomes::named(
            TOPIC,
            answer
                .topics
                .iter()
                .map(|one| (one.name.to_string(), worst(one.partitions.iter().map(|part| part.error_code)))),
        ),
        ResponseBody::AlterConfigs(answer) => Outcomes::of_all(
            answer
                .responses
                .iter()
                .map(|one| (config_type(one.resource_type), one.resource_name.to_string(), one.error_code)),
        ),
        ResponseBody::IncrementalAlterConfigs(answer) => Outcomes::of_all(
            answer
                .responses
                .iter()
                .map(|one| (config_type(one.resource_type), one.resource_name.to_string(), one.error_code)),
        ),
        ResponseBody::AlterPartitionReassignments(answer) => reassigned(answer),
        ResponseBody::AlterReplicaLogDirs(answer) => Outcomes::named(
            TOPIC,
            answer.results.iter().map(|one| {
                (one.topic_name.to_string(), worst(one.partitions.iter().map(|part| part.error_code)))
            }),
        ),
        ResponseBody::ElectLeaders(answer) => elected(answer),
        ResponseBody::UpdateFeatures(answer) => {
            let results = answer.results.iter().map(|one| (one.feature.to_string(), one.error_code));
            Outcomes { whole: answer.error_code, ..Outcomes::named("FEATURE", results) }
        }
        other => of_access(other).unwrap_or_else(|| of_groups_and_nodes(other)),
    }
}

fn of_access(answer: &ResponseBody) -> Option<Outcomes> {
    Some(match answer {
        ResponseBody::CreateAcls(answer) => Outcomes::placed(answer.results.iter().map(|one| one.error_code)),
        ResponseBody::DeleteAcls(answer) => acls_deleted(answer),
        ResponseBody::AlterClientQuotas(answer) => quotas(answer),
        ResponseBody::AlterUserScramCredentials(answer) => {
            Outcomes::named(SCRAM, answer.results.iter().map(|one| (one.user.to_string(), one.error_code)))
        }
        ResponseBody::CreateDelegationToken(answer) if answer.error_code == 0 => {
            let principal = |kind: &str, name: &str| format!("{kind}:{name}");
            let edits = [
                Edit::to("owner", principal(&answer.principal_type, &answer.principal_name)),
                Edit::to("expires_at_ms", answer.expiry_timestamp_ms),
                Edit::to("expires_at_the_latest_ms", answer.max_timestamp_ms),
            ];
            let token = Subject::new("CREATE", "DELEGATION_TOKEN", &*answer.token_id).with(edits);
            Outcomes { found: vec![(token, 0)], ..Outcomes::default() }
        }
        ResponseBody::CreateDelegationToken(answer) => Outcomes::whole(answer.error_code),
        ResponseBody::RenewDelegationToken(answer) => Outcomes::whole(answer.error_code),
        ResponseBody::ExpireDelegationToken(answer) => Outcomes::whole(answer.error_code),
        _ => return None,
    })
}

fn of_groups_and_nodes(answer: &ResponseBody) -> Outcomes {
    match answer {
        ResponseBody::DeleteGroups(answer) => Outcomes::named(
            "GROUP",
            answer.results.iter().map(|one| (one.group_id.to_string(), one.error_code)),
        ),
        ResponseBody::OffsetDelete(answer) => {
            let parts = answer.topics.iter().flat_map(|topic| &topic.partitions);
            Outcomes::whole(worst([answer.error_code].into_iter().chain(parts.map(|part| part.error_code))))
        }
        ResponseBody::AlterShareGroupOffsets(answer) => {
            let parts = answer.responses.iter().flat_map(|topic| &topic.partitions);
            Outcomes::whole(worst([answer.error_code].into_iter().chain(parts.map(|part| part.error_code))))
        }
        ResponseBody::DeleteShareGroupOffsets(answer) => {
            let topics = answer.responses.iter().map(|topic| topic.error_code);
            Outcomes::whole(worst([answer.error_code].into_iter().chain(topics)))
        }
        ResponseBody::UnregisterBroker(answer) => Outcomes::whole(answer.error_code),
        ResponseBody::UnregisterController(answer) => Outcomes::whole(answer.error_code),
        ResponseBody::AddRaftVoter(answer) => Outcomes::whole(answer.error_code),
        ResponseBody::RemoveRaftVoter(answer) => Outcomes::whole(answer.error_code),
        // Another API's answer: it says nothing of the request.
        _ => Outcomes::whole(barnabas_base::ErrorCode::UnknownServerError.code()),
    }
}

/// By name, and by id where the answer hides the name.
fn deleted(answer: &DeleteTopicsResponse) -> Outcomes {
    let each = answer.responses.iter().map(|one| {
        let name = one.name.as_ref().map_or_else(|| one.topic_id.to_string(), |name| name.to_string());
        (name, one.error_code)
    });
    Outcomes::named(TOPIC, each)
}

fn reassigned(answer: &AlterPartitionReassignmentsResponse) -> Outcomes {
    let topics = answer.responses.iter();
    let each =
        topics.map(|one| (one.name.to_string(), worst(one.partitions.iter().map(|part| part.error_code))));
    Outcomes { whole: answer.error_code, ..Outcomes::named(TOPIC, each) }
}

fn elected(answer: &ElectLeadersResponse) -> Outcomes {
    let topics = answer.replica_election_results.iter();
    let each = topics
        .map(|one| (one.topic.to_string(), worst(one.partition_result.iter().map(|part| part.error_code))));
    Outcomes { whole: answer.error_code, ..Outcomes::named(TOPIC, each) }
}

/// The ACLs that each filter deleted. Filters that were refused or deleted none stand for themselves.
fn acls_deleted(answer: &DeleteAclsResponse) -> Outcomes {
    let matched = answer.filter_results.iter().flat_map(|filter| &filter.matching_acls);
    let found = matched.map(|one| {
        let of = (one.resource_type, &*one.resource_name, one.pattern_type, &*one.principal, &*one.host);
        (Subject::new("DELETE", ACL, acl_name(of, one.operation, one.permission_type)), one.error_code)
    });
    let found = found.collect();
    Outcomes { found, ..Outcomes::placed(answer.filter_results.iter().map(|filter| filter.error_code)) }
}

fn quotas(answer: &AlterClientQuotasResponse) -> Outcomes {
    let each = answer.entries.iter().map(|entry| {
        let parts = entry.entity.iter().map(|part| (&*part.entity_type, part.entity_name.as_deref()));
        (entity(parts), entry.error_code)
    });
    Outcomes::named(QUOTA, each)
}
