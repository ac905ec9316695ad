//! ACLs, SCRAM credentials and quotas in talks: what is asked, and a line for each record and answer.
//!
//! Several entries of one request are separated by `|`.

use barnabas_metadata::access::QuotaEntity;
use barnabas_metadata::{Image, snapshot};
use barnabas_sasl::scram::TokenKey;
use barnabas_wire::messages::alter_client_quotas_request::{EntityData, EntryData, OpData};
use barnabas_wire::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use barnabas_wire::messages::create_acls_request::AclCreation;
use barnabas_wire::messages::delete_acls_request::DeleteAclsFilter;
use barnabas_wire::messages::{
    AlterClientQuotasRequest, AlterUserScramCredentialsRequest, CreateAclsRequest,
    CreateDelegationTokenRequest, DeleteAclsRequest, ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
};
use barnabas_wire::{MetadataRecord, RequestBody, ResponseBody, Str};
use bytes::Bytes;

use super::show::outcome;

fn word<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

fn code(words: &[&str], key: &str, default: i8) -> i8 {
    word(words, key).map_or(default, |word| word.parse().unwrap())
}

/// A name; `a*1000` is `a` a thousand times.
fn text(word: &str) -> Str {
    match word.split_once('*').map(|(name, times)| (name, times.parse::<usize>())) {
        Some((name, Ok(times))) => Str::from(name.repeat(times)),
        _ => Str::from(word),
    }
}

pub fn create_acls(words: &[&str]) -> CreateAclsRequest {
    let creation = |words: &[&str]| AclCreation {
        resource_type: code(words, "type", 2),
        resource_name: text(word(words, "name").unwrap_or("orders")),
        resource_pattern_type: code(words, "pattern", 3),
        principal: text(word(words, "principal").unwrap_or("User:alice")),
        host: text(word(words, "host").unwrap_or("*")),
        operation: code(words, "operation", 3),
        permission_type: code(words, "permission", 3),
        ..AclCreation::default()
    };
    let creations = words.split(|word| *word == "|").map(creation).collect();
    CreateAclsRequest { creations, ..CreateAclsRequest::default() }
}

pub fn delete_acls(words: &[&str]) -> DeleteAclsRequest {
    let filter = |words: &[&str]| DeleteAclsFilter {
        resource_type_filter: code(words, "type", 1),
        resource_name_filter: word(words, "name").map(text),
        pattern_type_filter: code(words, "pattern", 1),
        principal_filter: word(words, "principal").map(text),
        host_filter: word(words, "host").map(text),
        operation: code(words, "operation", 1),
        permission_type: code(words, "permission", 1),
        ..DeleteAclsFilter::default()
    };
    let filters = words.split(|word| *word == "|").map(filter).collect();
    DeleteAclsRequest { filters, ..DeleteAclsRequest::default() }
}

/// `user=alice client-id=<default> producer_byte_rate=1000 request_percentage=-`
pub fn alter_quotas(words: &[&str]) -> AlterClientQuotasRequest {
    let kind = |key: &str| matches!(key, "user" | "client-id" | "ip" | "team");
    let entry = |words: &[&str]| {
        let pairs = || words.iter().filter_map(|word| word.split_once('='));
        let part = |(kind, name): (&str, &str)| EntityData {
            entity_type: Str::from(kind),
            entity_name: (name != "<default>").then(|| text(name)),
            ..EntityData::default()
        };
        let op = |(key, value): (&str, &str)| OpData {
            key: Str::from(key),
            value: value.parse().unwrap_or_default(),
            remove: value == "-",
            ..OpData::default()
        };
        EntryData {
            entity: pairs().filter(|(key, _)| kind(key)).map(part).collect(),
            ops: pairs().filter(|(key, _)| !kind(key)).map(op).collect(),
            ..EntryData::default()
        }
    };
    AlterClientQuotasRequest {
        entries: words.split(|word| *word == "|").map(entry).collect(),
        validate_only: words.contains(&"validate-only"),
        ..AlterClientQuotasRequest::default()
    }
}

/// `user=alice` sets, `user=alice delete` deletes.
pub fn alter_scram(words: &[&str]) -> AlterUserScramCredentialsRequest {
    let mut request = AlterUserScramCredentialsRequest::default();
    for words in words.split(|word| *word == "|") {
        let name = text(word(words, "user").unwrap_or_default());
        let mechanism = code(words, "mechanism", 1);
        if words.contains(&"delete") {
            request.deletions.push(ScramCredentialDeletion {
                name,
                mechanism,
                ..ScramCredentialDeletion::default()
            });
            continue;
        }
        let number = |key, default| word(words, key).map_or(default, |word| word.parse::<usize>().unwrap());
        request.upsertions.push(ScramCredentialUpsertion {
            name,
            mechanism,
            iterations: number("iterations", 4096) as i32,
            salt: Bytes::from(vec![7; number("salt", 16)]),
            salted_password: Bytes::from(vec![9; number("salted", if mechanism == 2 { 64 } else { 32 })]),
            ..ScramCredentialUpsertion::default()
        });
    }
    request
}

/// What a token request asks, and as whom. `of=N`: the N-th token by id of the image; without it no token's secret.
pub fn token_request(verb: &str, words: &[&str], image: &Image, key: &str) -> RequestBody {
    use barnabas_wire::messages::create_delegation_token_request::CreatableRenewers;
    let number = |key, default| word(words, key).map_or(default, |word| word.parse::<i64>().unwrap());
    let id = word(words, "of").map(|of| image.tokens.keys().nth(of.parse().unwrap()).unwrap().clone());
    let key = TokenKey::new(key);
    let hmac = id.zip(key).map_or_else(|| vec![1; 64], |(id, key)| key.hmac(&id).bytes().to_vec()).into();
    match verb {
        "token" => {
            let names =
                word(words, "renewers").unwrap_or_default().split(',').filter(|name| !name.is_empty());
            let renewer = |name: &str| CreatableRenewers {
                principal_type: Str::from(name.split_once(':').unwrap().0),
                principal_name: text(name.split_once(':').unwrap().1),
                ..CreatableRenewers::default()
            };
            CreateDelegationTokenRequest {
                owner_principal_type: word(words, "owner").map(|_| Str::from("User")),
                owner_principal_name: word(words, "owner").map(text),
                renewers: names.map(renewer).collect(),
                max_lifetime_ms: number("lifetime", -1),
                ..CreateDelegationTokenRequest::default()
            }
            .into()
        }
        "renew" => {
            let renew_period_ms = number("period", -1);
            RenewDelegationTokenRequest { hmac, renew_period_ms, ..Default::default() }.into()
        }
        _ => {
            let expiry_time_period_ms = number("period", -1);
            ExpireDelegationTokenRequest { hmac, expiry_time_period_ms, ..Default::default() }.into()
        }
    }
}

/// Records of the image that are about access: no key or salt, but how long they are.
pub fn shown(image: &Image) -> String {
    snapshot::records(image)
        .filter(|record| {
            matches!(
                record,
                MetadataRecord::AccessControlEntry(_)
                    | MetadataRecord::ClientQuota(_)
                    | MetadataRecord::UserScramCredential(_)
                    | MetadataRecord::DelegationToken(_)
            )
        })
        .map(|one| record(&one) + "\n")
        .collect()
}

pub fn record(record: &MetadataRecord) -> String {
    match record {
        MetadataRecord::AccessControlEntry(acl) => format!(
            "Acl {} {}:{}:{} {} from {} operation={} permission={}",
            acl.id,
            acl.resource_type,
            acl.pattern_type,
            acl.resource_name,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type
        ),
        MetadataRecord::RemoveAccessControlEntry(acl) => format!("RemoveAcl {}", acl.id),
        MetadataRecord::ClientQuota(record) => {
            let part = |part: &barnabas_wire::messages::client_quota_record::EntityData| {
                format!("{}={}", part.entity_type, part.entity_name.as_ref().map_or("<default>", Str::as_str))
            };
            let entity: Vec<String> = record.entity.iter().map(part).collect();
            let value = if record.remove { "removed".to_owned() } else { record.value.to_string() };
            format!("ClientQuota {} {} {value}", entity.join(" "), record.key)
        }
        MetadataRecord::UserScramCredential(record) => format!(
            "Scram {} mechanism={} iterations={} salt={} stored-key={} server-key={}",
            record.name,
            record.mechanism,
            record.iterations,
            record.salt.len(),
            record.stored_key.len(),
            record.server_key.len()
        ),
        MetadataRecord::RemoveUserScramCredential(record) => {
            format!("RemoveScram {} mechanism={}", record.name, record.mechanism)
        }
        MetadataRecord::DelegationToken(record) => {
            let renewers: Vec<&str> = record.renewers.iter().map(Str::as_str).collect();
            format!(
                "DelegationToken {} of {} by {} renewers={renewers:?} issued={} expires={} at-most={}",
                record.token_id,
                record.owner,
                record.requester,
                record.issue_timestamp,
                record.expiration_timestamp,
                record.max_timestamp
            )
        }
        MetadataRecord::RemoveDelegationToken(record) => format!("RemoveDelegationToken {}", record.token_id),
        other => format!("{other:?}"),
    }
}

pub fn entity(entity: &QuotaEntity) -> String {
    let part = |(kind, name): (&barnabas_base::Text, &Option<barnabas_base::Text>)| {
        format!("{kind}={}", name.as_ref().map_or("<default>", |name| name.as_str()))
    };
    entity.iter().map(part).collect::<Vec<_>>().join(" ")
}

pub fn response(response: &ResponseBody) -> String {
    match response {
        ResponseBody::CreateAcls(response) => {
            let one = |one: &barnabas_wire::messages::create_acls_response::AclCreationResult| {
                outcome(one.error_code, one.error_message.as_ref())
            };
            response.results.iter().map(one).collect::<Vec<_>>().join("; ")
        }
        ResponseBody::DeleteAcls(response) => {
            let one = |one: &barnabas_wire::messages::delete_acls_response::DeleteAclsFilterResult| {
                let outcome = outcome(one.error_code, one.error_message.as_ref());
                let acl = |acl: &barnabas_wire::messages::delete_acls_response::DeleteAclsMatchingAcl| {
                    format!("{} {}", acl.principal, acl.resource_name)
                };
                let acls: Vec<String> = one.matching_acls.iter().map(acl).collect();
                format!("{outcome} [{}]", acls.join(", "))
            };
            response.filter_results.iter().map(one).collect::<Vec<_>>().join("; ")
        }
        ResponseBody::AlterClientQuotas(response) => {
            let one = |one: &barnabas_wire::messages::alter_client_quotas_response::EntryData| {
                let kinds: Vec<&str> = one.entity.iter().map(|part| &*part.entity_type).collect();
                format!("{}: {}", kinds.join("+"), outcome(one.error_code, one.error_message.as_ref()))
            };
            response.entries.iter().map(one).collect::<Vec<_>>().join("; ")
        }
        ResponseBody::AlterUserScramCredentials(response) => {
            let one = |one: &barnabas_wire::messages::alter_user_scram_credentials_response::AlterUserScramCredentialsResult| {
                let user = one.user.get(..20).unwrap_or(&one.user);
                format!("{user}: {}", outcome(one.error_code, one.error_message.as_ref()))
            };
            response.results.iter().map(one).collect::<Vec<_>>().join("; ")
        }
        other => of_tokens(other),
    }
}

fn of_tokens(response: &ResponseBody) -> String {
    match response {
        ResponseBody::CreateDelegationToken(response) => {
            let code = outcome(response.error_code, None);
            let (owner, requester) = (&response.principal_name, &response.token_requester_principal_name);
            format!(
                "{code} {} of {owner} by {requester} issued={} expires={} at-most={} secret={}",
                response.token_id,
                response.issue_timestamp_ms,
                response.expiry_timestamp_ms,
                response.max_timestamp_ms,
                response.hmac.len()
            )
        }
        ResponseBody::RenewDelegationToken(response) => {
            format!("{} expires={}", outcome(response.error_code, None), response.expiry_timestamp_ms)
        }
        ResponseBody::ExpireDelegationToken(response) => {
            format!("{} expires={}", outcome(response.error_code, None), response.expiry_timestamp_ms)
        }
        other => format!("{other:?}"),
    }
}
