//! CreateAcls and DeleteAcls.
//!
//! What an ACL may look like and which ones a filter matches is core/security's. Without an authorizer nothing would
//! enforce an ACL, and both are refused.
//!
//! Different from Kafka:
//! - An entry or a filter with a number 0 is refused with INVALID_REQUEST; Kafka closes the connection.
//! - All filters of one DeleteAcls request match 10,000 ACLs at most, an ACL that several match counted for each.
//! - The number of ACLs and the length of their names are bounded.
//!
//! Source: Kafka 4.4 `AclApis`, `AclControlManager`; KIP-140, KIP-290, KIP-1276.

use barnabas_base::{ErrorCode, Set, Uuid};
use barnabas_metadata::access::Acl;
use barnabas_metadata::{Image, snapshot::acl_record};
use barnabas_security::{AclFilter, binding};
use barnabas_wire::messages::create_acls_request::AclCreation;
use barnabas_wire::messages::create_acls_response::AclCreationResult;
use barnabas_wire::messages::delete_acls_request::DeleteAclsFilter;
use barnabas_wire::messages::delete_acls_response::{DeleteAclsFilterResult, DeleteAclsMatchingAcl};
use barnabas_wire::messages::{
    CreateAclsRequest, CreateAclsResponse, DeleteAclsRequest, DeleteAclsResponse,
    RemoveAccessControlEntryRecord,
};
use barnabas_wire::{MetadataRecord, ResponseBody, Str};

use super::{RECORDS_MAX, check_entries, check_names, too_large};
use crate::controller::{Case, Outcome, Refusal, Sentences};

/// Comparisons of one DeleteAcls request: each filter looks at each ACL.
const COMPARISONS_MAX: usize = 50_000_000;

pub(crate) fn create(case: &mut Case<'_>, request: &CreateAclsRequest) -> Outcome {
    let count = request.creations.len();
    let decided = if case.has_authorizer { created(case, request) } else { Err(no_authorizer()) };
    match decided {
        Err(refusal) => Outcome::new(Vec::new(), created_response(&vec![Some(refusal); count])),
        Ok((records, refusals)) => Outcome::atomic(records, created_response(&refusals), move |why| {
            let refusal = Refusal::new(ErrorCode::PolicyViolation, why);
            created_response(&vec![Some(refusal); count])
        }),
    }
}

fn no_authorizer() -> Refusal {
    Refusal::new(ErrorCode::SecurityDisabled, "No Authorizer is configured.")
}

type Created = (Vec<MetadataRecord>, Vec<Option<Refusal>>);

/// The records of the ACLs that are new, and for each entry why it is refused. An ACL that there is already is fine.
fn created(case: &mut Case<'_>, request: &CreateAclsRequest) -> Result<Created, Refusal> {
    let image = case.image;
    let checked: Vec<Result<Acl, Refusal>> =
        request.creations.iter().map(|creation| acl_of(image, creation)).collect();
    let asked: Set<&Acl> = checked.iter().flatten().collect();
    let mut there: Set<&Acl> = image.acls.values().filter(|acl| asked.contains(*acl)).collect();
    let mut records = Vec::new();
    for acl in checked.iter().flatten() {
        if there.insert(acl) {
            records.push(acl_record(new_id(image, case.random), acl));
        }
    }
    if records.len() > RECORDS_MAX {
        return Err(too_large());
    }
    let have = image.acls.len();
    check_entries(case.config, have, have + records.len(), "ACLs")?;
    let refusals = checked.iter().map(|acl| acl.as_ref().err().cloned()).collect();
    Ok((records, refusals))
}

fn acl_of(image: &Image, creation: &AclCreation) -> Result<Acl, Refusal> {
    check_names([&*creation.resource_name, &*creation.principal, &*creation.host])?;
    let acl = Acl {
        resource_type: creation.resource_type,
        resource_name: creation.resource_name.text(),
        pattern_type: creation.resource_pattern_type,
        principal: creation.principal.text(),
        host: creation.host.text(),
        operation: creation.operation,
        permission: creation.permission_type,
    };
    let checked = binding::check(&acl, image.metadata_version());
    checked.map_err(|why| Refusal::new(why.code(), why.to_string()))?;
    Ok(acl)
}

/// An id that no ACL has. Two of one request are never the same: 122 random bits.
fn new_id(image: &Image, random: &mut dyn FnMut() -> [u8; 16]) -> Uuid {
    loop {
        let id = Uuid::from_random(random());
        if !image.acls.contains_key(&id) {
            return id;
        }
    }
}

fn created_response(refusals: &[Option<Refusal>]) -> ResponseBody {
    let mut sentences = Sentences::default();
    let result = |refusal: &Option<Refusal>| {
        let (error_code, error_message) = sentences.fields(refusal.as_ref());
        AclCreationResult { error_code, error_message, ..AclCreationResult::default() }
    };
    let results = refusals.iter().map(result).collect();
    CreateAclsResponse { results, ..CreateAclsResponse::default() }.into()
}

pub(crate) fn delete(case: &Case<'_>, request: &DeleteAclsRequest) -> Outcome {
    let count = request.filters.len();
    let decided = if case.has_authorizer { deleted(case.image, request) } else { Err(no_authorizer()) };
    match decided {
        Err(refusal) => Outcome::new(Vec::new(), refuse_filters(count, &refusal)),
        Ok((records, filter_results)) => {
            let response = DeleteAclsResponse { filter_results, ..DeleteAclsResponse::default() };
            Outcome::atomic(records, response, move |why| {
                refuse_filters(count, &Refusal::new(ErrorCode::PolicyViolation, why))
            })
        }
    }
}

fn deleted(
    image: &Image,
    request: &DeleteAclsRequest,
) -> Result<(Vec<MetadataRecord>, Vec<DeleteAclsFilterResult>), Refusal> {
    if request.filters.len().saturating_mul(image.acls.len()) > COMPARISONS_MAX {
        return Err(too_large());
    }
    let mut gone: Set<Uuid> = Set::default();
    let mut records = Vec::new();
    let mut sentences = Sentences::default();
    let mut matches = 0;
    let mut results = Vec::with_capacity(request.filters.len());
    for filter in request.filters.iter().map(filter_of) {
        let mut result = DeleteAclsFilterResult::default();
        match filter.check() {
            Err(why) => {
                let refusal = Refusal::new(ErrorCode::InvalidRequest, why.to_string());
                (result.error_code, result.error_message) = sentences.fields(Some(&refusal));
            }
            Ok(()) => {
                for (id, acl) in filter.of(&image.acls) {
                    matches += 1;
                    if matches > RECORDS_MAX {
                        return Err(too_large());
                    }
                    result.matching_acls.push(matching(acl));
                    if gone.insert(id) {
                        let record = RemoveAccessControlEntryRecord {
                            id,
                            ..RemoveAccessControlEntryRecord::default()
                        };
                        records.push(record.into());
                    }
                }
            }
        }
        results.push(result);
    }
    Ok((records, results))
}

fn filter_of(filter: &DeleteAclsFilter) -> AclFilter {
    let text = |text: &Option<Str>| text.as_ref().map(Str::text);
    AclFilter {
        resource_type: filter.resource_type_filter,
        resource_name: text(&filter.resource_name_filter),
        pattern_type: filter.pattern_type_filter,
        principal: text(&filter.principal_filter),
        host: text(&filter.host_filter),
        operation: filter.operation,
        permission: filter.permission_type,
    }
}

fn matching(acl: &Acl) -> DeleteAclsMatchingAcl {
    DeleteAclsMatchingAcl {
        resource_type: acl.resource_type,
        resource_name: Str::from(&acl.resource_name),
        pattern_type: acl.pattern_type,
        principal: Str::from(&acl.principal),
        host: Str::from(&acl.host),
        operation: acl.operation,
        permission_type: acl.permission,
        ..DeleteAclsMatchingAcl::default()
    }
}

fn refuse_filters(count: usize, refusal: &Refusal) -> ResponseBody {
    let mut sentences = Sentences::default();
    let result = |_| {
        let (error_code, error_message) = sentences.fields(Some(refusal));
        DeleteAclsFilterResult { error_code, error_message, ..DeleteAclsFilterResult::default() }
    };
    let filter_results = (0..count).map(result).collect();
    DeleteAclsResponse { filter_results, ..DeleteAclsResponse::default() }.into()
}
