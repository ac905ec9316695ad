//! The resources that a request is to change, with what they are now.

use barnabas_base::{PartitionIndex, Text, Uuid};
use barnabas_metadata::access::{QuotaEntity, ScramMechanism};
use barnabas_metadata::config::{self, ConfigKey, broker_rate};
use barnabas_metadata::{Image, Resource, ResourceType};
use barnabas_security::{Operation, PatternType, Permission, ResourceType as AclType, acl};
use barnabas_wire::Str;
use barnabas_wire::messages::{
    AlterClientQuotasRequest, AlterPartitionReassignmentsRequest, AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest, CreateAclsRequest, CreateTopicsRequest, DeleteAclsRequest,
    DeleteRecordsRequest, DeleteTopicsRequest, ElectLeadersRequest, RequestBody,
};

use super::{Edit, Subject, config_type, entity};

const TOPIC: &str = "TOPIC";
const GROUP: &str = "GROUP";
const CLUSTER: &str = "CLUSTER";
const TOKEN: &str = "DELEGATION_TOKEN";
/// Stands for the value of a sensitive configuration.
const HIDDEN: &str = "[hidden]";

/// `None`: the request changes nothing.
pub(super) fn of(body: &RequestBody, image: &Image) -> Option<Vec<Subject>> {
    Some(match body {
        RequestBody::CreateTopics(request) if !request.validate_only => created(request),
        RequestBody::DeleteTopics(request) => deleted(request, image),
        RequestBody::CreatePartitions(request) if !request.validate_only => {
            let topics = request.topics.iter();
            topics
                .map(|topic| Subject::new("ALTER", TOPIC, &*topic.name).with([partitions(topic, image)]))
                .collect()
        }
        RequestBody::DeleteRecords(request) => records_deleted(request),
        RequestBody::AlterConfigs(request) if !request.validate_only => {
            let resources = request.resources.iter();
            resources
                .map(|resource| {
                    let configs =
                        resource.configs.iter().map(|config| (&config.name, 0, config.value.as_ref()));
                    altered(resource.resource_type, &resource.resource_name, configs, image)
                })
                .collect()
        }
        RequestBody::IncrementalAlterConfigs(request) if !request.validate_only => {
            let resources = request.resources.iter();
            resources
                .map(|resource| {
                    let configs = resource.configs.iter();
                    let configs =
                        configs.map(|config| (&config.name, config.config_operation, config.value.as_ref()));
                    altered(resource.resource_type, &resource.resource_name, configs, image)
                })
                .collect()
        }
        RequestBody::AlterPartitionReassignments(request) => reassigned(request, image),
        RequestBody::AlterReplicaLogDirs(request) => moved(request),
        RequestBody::ElectLeaders(request) => elected(request),
        RequestBody::UpdateFeatures(request) if !request.validate_only => {
            let updates = request.feature_updates.iter();
            updates
                .map(|update| {
                    let name = &*update.feature;
                    let from = Some(image.features.level(name).to_string());
                    let to = Some(update.max_version_level.to_string());
                    Subject::new("ALTER", "FEATURE", name).with([Edit { name: "level".to_owned(), from, to }])
                })
                .collect()
        }
        other => return of_access(other, image).or_else(|| of_groups_and_nodes(other)),
    })
}

/// ACLs, users, quotas, tokens.
fn of_access(body: &RequestBody, image: &Image) -> Option<Vec<Subject>> {
    Some(match body {
        RequestBody::CreateAcls(request) => acls_created(request),
        RequestBody::DeleteAcls(request) => acl_filters(request),
        RequestBody::AlterClientQuotas(request) if !request.validate_only => quotas(request, image),
        RequestBody::AlterUserScramCredentials(request) => credentials(request, image),
        RequestBody::CreateDelegationToken(request) => {
            let owner = request.owner_principal_type.as_ref().zip(request.owner_principal_name.as_ref());
            let owner = owner.map(|(kind, name)| Edit::to("owner", format!("{}:{}", &**kind, &**name)));
            let renewers = request.renewers.iter();
            let renewers = renewers
                .map(|one| Edit::to("renewer", format!("{}:{}", &*one.principal_type, &*one.principal_name)));
            let edits = owner
                .into_iter()
                .chain(renewers)
                .chain([Edit::to("max_lifetime_ms", request.max_lifetime_ms)]);
            vec![Subject::new("CREATE", TOKEN, "").with(edits)]
        }
        RequestBody::RenewDelegationToken(request) => {
            vec![
                Subject::new("RENEW", TOKEN, "").with([Edit::to("renew_period_ms", request.renew_period_ms)]),
            ]
        }
        RequestBody::ExpireDelegationToken(request) => {
            vec![
                Subject::new("EXPIRE", TOKEN, "")
                    .with([Edit::to("expiry_period_ms", request.expiry_time_period_ms)]),
            ]
        }
        _ => return None,
    })
}

fn of_groups_and_nodes(body: &RequestBody) -> Option<Vec<Subject>> {
    Some(match body {
        RequestBody::DeleteGroups(request) => {
            request.groups_names.iter().map(|name| Subject::new("DELETE", GROUP, &**name)).collect()
        }
        RequestBody::OffsetDelete(request) => {
            let topics = request
                .topics
                .iter()
                .flat_map(|topic| topic.partitions.iter().map(move |part| (topic, part)));
            let removed = topics.map(|(topic, part)| {
                let name = format!("offset of {}-{}", &*topic.name, part.partition_index);
                Edit { name, from: None, to: None }
            });
            vec![Subject::new("DELETE", GROUP, &*request.group_id).with(removed)]
        }
        RequestBody::AlterShareGroupOffsets(request) => {
            let topics = request
                .topics
                .iter()
                .flat_map(|topic| topic.partitions.iter().map(move |part| (topic, part)));
            let set = topics.map(|(topic, part)| {
                Edit::to(
                    format!("start offset of {}-{}", &*topic.topic_name, part.partition_index),
                    part.start_offset,
                )
            });
            vec![Subject::new("ALTER", GROUP, &*request.group_id).with(set)]
        }
        RequestBody::DeleteShareGroupOffsets(request) => {
            let topics = request.topics.iter();
            let removed = topics.map(|topic| Edit {
                name: format!("offsets of {}", &*topic.topic_name),
                from: None,
                to: None,
            });
            vec![Subject::new("DELETE", GROUP, &*request.group_id).with(removed)]
        }
        RequestBody::UnregisterBroker(request) => {
            vec![Subject::new("DELETE", "BROKER", request.broker_id.to_string())]
        }
        RequestBody::UnregisterController(request) => {
            vec![Subject::new("DELETE", "CONTROLLER", request.controller_id.to_string())]
        }
        RequestBody::AddRaftVoter(request) => {
            let listeners = request.listeners.iter();
            let listeners = listeners.map(|one| Edit::to(&*one.name, format!("{}:{}", &*one.host, one.port)));
            vec![Subject::new("CREATE", "VOTER", request.voter_id.to_string()).with(listeners)]
        }
        RequestBody::RemoveRaftVoter(request) => {
            vec![Subject::new("DELETE", "VOTER", request.voter_id.to_string())]
        }
        _ => return None,
    })
}

fn records_deleted(request: &DeleteRecordsRequest) -> Vec<Subject> {
    let topics = request.topics.iter();
    let before =
        |offset: i64| if offset == -1 { "the high watermark".to_owned() } else { offset.to_string() };
    topics
        .map(|topic| {
            let parts = topic.partitions.iter();
            Subject::new("DELETE", TOPIC, &*topic.name).with(parts.map(|part| {
                Edit::to(format!("records of partition {} before", part.partition_index), before(part.offset))
            }))
        })
        .collect()
}

fn moved(request: &AlterReplicaLogDirsRequest) -> Vec<Subject> {
    let moved = request.dirs.iter().flat_map(|dir| dir.topics.iter().map(move |topic| (dir, topic)));
    moved
        .map(|(dir, topic)| {
            let parts = topic.partitions.iter();
            Subject::new("ALTER", TOPIC, &*topic.name)
                .with(parts.map(|part| Edit::to(format!("log directory of partition {part}"), &*dir.path)))
        })
        .collect()
}

fn created(request: &CreateTopicsRequest) -> Vec<Subject> {
    let topics = request.topics.iter();
    topics
        .map(|topic| {
            // Where the client assigns replicas, the request says -1 for both.
            let count = match topic.assignments.len() {
                0 => topic.num_partitions.to_string(),
                assigned => assigned.to_string(),
            };
            let assigned = topic.assignments.iter().map(|one| {
                Edit::to(format!("replicas of partition {}", one.partition_index), list(&one.broker_ids))
            });
            let configs = topic.configs.iter().map(|config| Edit {
                name: config.name.to_string(),
                from: None,
                to: config.value.as_ref().map(|value| shown(ResourceType::Topic, &config.name, value)),
            });
            let edits =
                [Edit::to("partitions", count), Edit::to("replication_factor", topic.replication_factor)];
            Subject::new("CREATE", TOPIC, &*topic.name).with(edits.into_iter().chain(assigned).chain(configs))
        })
        .collect()
}

fn deleted(request: &DeleteTopicsRequest, image: &Image) -> Vec<Subject> {
    let named = request.topic_names.iter().map(|name| Subject::new("DELETE", TOPIC, &**name));
    let states = request.topics.iter().map(|state| {
        let by_id = state.topic_id != Uuid::ZERO && state.name.is_none();
        let id = state.topic_id.to_string();
        let known = image.topics.by_id(state.topic_id).map(|topic| topic.name.to_string());
        let name = state.name.as_ref().map(|name| name.to_string()).or(known);
        let subject = Subject::new("DELETE", TOPIC, name.unwrap_or_else(|| id.clone()));
        if by_id {
            subject.with([Edit { name: super::ID.to_owned(), from: Some(id), to: None }])
        } else {
            subject
        }
    });
    named.chain(states).collect()
}

fn partitions(
    topic: &barnabas_wire::messages::create_partitions_request::CreatePartitionsTopic,
    image: &Image,
) -> Edit {
    let from = image.topics.by_name(&topic.name).map(|known| known.partitions().count().to_string());
    Edit { name: "partitions".to_owned(), from, to: Some(topic.count.to_string()) }
}

fn list(ids: &[i32]) -> String {
    ids.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}

/// `operation`: 0 sets, 1 deletes, 2 appends to a list, 3 takes out of a list.
fn altered<'a>(
    resource_type: i8,
    name: &Str,
    configs: impl Iterator<Item = (&'a Str, i8, Option<&'a Str>)>,
    image: &Image,
) -> Subject {
    let kind = ResourceType::from_code(resource_type);
    let resource = kind.map(|kind| Resource::new(kind, name.text()));
    let edits = configs.map(|(key, operation, value)| {
        let shown = |value: &str| kind.map_or_else(|| HIDDEN.to_owned(), |kind| shown(kind, key, value));
        let from = resource.as_ref().and_then(|resource| image.configs.value(resource, key));
        let value = value.map(|value| shown(value));
        let to = match operation {
            1 => None,
            2 => value.map(|value| format!("+{value}")),
            3 => value.map(|value| format!("-{value}")),
            _ => value,
        };
        Edit { name: key.to_string(), from: from.map(|value| shown(value)), to }
    });
    let edits: Vec<Edit> = edits.collect();
    Subject::new("ALTER_CONFIGS", config_type(resource_type), &**name).with(edits)
}

/// The value of a configuration, unless it is a secret or may be one: what is not known may be.
fn shown(kind: ResourceType, key: &str, value: &str) -> String {
    let table = match kind {
        ResourceType::Topic => config::Resource::Topic,
        ResourceType::Broker => config::Resource::Broker,
        ResourceType::Group => config::Resource::Group,
        ResourceType::ClientMetrics => config::Resource::ClientMetrics,
        ResourceType::BrokerLogger => return value.to_owned(),
    };
    let known = table.key(key).or_else(|| table.listener_key(key)).or_else(|| broker_rate(key));
    if known.is_none_or(ConfigKey::is_sensitive) { HIDDEN.to_owned() } else { value.to_owned() }
}

fn reassigned(request: &AlterPartitionReassignmentsRequest, image: &Image) -> Vec<Subject> {
    let topics = request.topics.iter();
    topics
        .map(|topic| {
            let edits = topic.partitions.iter().map(|part| {
                let known = image.topics.partition(&topic.name, PartitionIndex(part.partition_index));
                let from =
                    known.map(|known| list(&known.replicas().iter().map(|id| id.get()).collect::<Vec<_>>()));
                let to = part.replicas.as_deref().map(list);
                Edit { name: format!("replicas of partition {}", part.partition_index), from, to }
            });
            Subject::new("ALTER", TOPIC, &*topic.name).with(edits)
        })
        .collect()
}

fn elected(request: &ElectLeadersRequest) -> Vec<Subject> {
    let kind = if request.election_type == 0 { "preferred" } else { "unclean" };
    let Some(topics) = &request.topic_partitions else {
        return vec![Subject::new("ALTER", CLUSTER, acl::CLUSTER_NAME).with([Edit::to("election", kind)])];
    };
    let subject = |topic: &barnabas_wire::messages::elect_leaders_request::TopicPartitions| {
        Subject::new("ALTER", TOPIC, &*topic.topic)
            .with([Edit::to("election", kind), Edit::to("partitions", list(&topic.partitions))])
    };
    topics.iter().map(subject).collect()
}

/// An ACL in one line: `ALLOW User:alice WRITE on TOPIC orders (LITERAL) from *`.
pub(super) fn acl_name(of: (i8, &str, i8, &str, &str), operation: i8, permission: i8) -> String {
    let (resource_type, name, pattern, principal, host) = of;
    let resource_type = acl::name_of(AclType::from_code(resource_type).map(AclType::name), resource_type);
    let pattern = acl::name_of(PatternType::from_code(pattern).map(PatternType::name), pattern);
    let permission = acl::name_of(Permission::from_code(permission).map(Permission::name), permission);
    let operation = acl::name_of(Operation::from_code(operation).map(Operation::name), operation);
    format!("{permission} {principal} {operation} on {resource_type} {name} ({pattern}) from {host}")
}

fn acls_created(request: &CreateAclsRequest) -> Vec<Subject> {
    let creations = request.creations.iter();
    creations
        .map(|one| {
            let of = (
                one.resource_type,
                &*one.resource_name,
                one.resource_pattern_type,
                &*one.principal,
                &*one.host,
            );
            Subject::new("CREATE", super::ACL, acl_name(of, one.operation, one.permission_type))
        })
        .collect()
}

fn acl_filters(request: &DeleteAclsRequest) -> Vec<Subject> {
    let filters = request.filters.iter();
    let any = |text: &Option<Str>| text.as_ref().map_or_else(|| "any".to_owned(), |text| text.to_string());
    filters
        .map(|one| {
            let (name, principal, host) =
                (any(&one.resource_name_filter), any(&one.principal_filter), any(&one.host_filter));
            let of = (one.resource_type_filter, &*name, one.pattern_type_filter, &*principal, &*host);
            Subject::new("DELETE", super::ACL, acl_name(of, one.operation, one.permission_type))
        })
        .collect()
}

fn quotas(request: &AlterClientQuotasRequest, image: &Image) -> Vec<Subject> {
    let entries = request.entries.iter();
    entries
        .map(|entry| {
            let name =
                entity(entry.entity.iter().map(|part| (&*part.entity_type, part.entity_name.as_deref())));
            let key = entry
                .entity
                .iter()
                .map(|part| (part.entity_type.text(), part.entity_name.as_ref().map(Str::text)));
            let values = image.quotas.get(&key.collect::<QuotaEntity>());
            let edits = entry.ops.iter().map(|op| {
                let from = values.and_then(|values| values.get(&*op.key)).map(f64::to_string);
                Edit { name: op.key.to_string(), from, to: (!op.remove).then(|| op.value.to_string()) }
            });
            Subject::new("ALTER_CONFIGS", super::QUOTA, name).with(edits.collect::<Vec<_>>())
        })
        .collect()
}

/// Of a credential its mechanism and iterations are shown.
fn credentials(request: &AlterUserScramCredentialsRequest, image: &Image) -> Vec<Subject> {
    let name = |code: i8| match code {
        1 => "SCRAM-SHA-256".to_owned(),
        2 => "SCRAM-SHA-512".to_owned(),
        other => format!("mechanism {other}"),
    };
    let from = |user: &Str, code: i8| {
        let known = image.scram.get(&(ScramMechanism::from_code(code)?, Text::from(&**user)))?;
        Some(format!("iterations={}", known.iterations))
    };
    let set = request.upsertions.iter().map(|one| {
        let to = Some(format!("iterations={}", one.iterations));
        let edit = Edit { name: name(one.mechanism), from: from(&one.name, one.mechanism), to };
        Subject::new("ALTER", super::SCRAM, &*one.name).with([edit])
    });
    let deleted = request.deletions.iter().map(|one| {
        let edit = Edit { name: name(one.mechanism), from: from(&one.name, one.mechanism), to: None };
        Subject::new("ALTER", super::SCRAM, &*one.name).with([edit])
    });
    set.chain(deleted).collect()
}
