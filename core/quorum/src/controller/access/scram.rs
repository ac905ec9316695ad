//! AlterUserScramCredentials: sets and deletes SCRAM credentials.
//!
//! The client sends the salted password; the log keeps the stored key and the server key that core/sasl derives from
//! it. A user is altered at most once in a request, whatever the mechanisms.
//!
//! Different from Kafka: a salted password of the wrong length and an empty salt are refused, since no login would
//! succeed with them. The number of credentials and the length of names are bounded.
//!
//! Source: KIP-554, KIP-900; Kafka `ScramControlManager`.

use std::collections::hash_map::Entry;

use barnabas_base::{ErrorCode, Map};
use barnabas_metadata::Image;
use barnabas_metadata::access::ScramMechanism;
use barnabas_metadata::config::BrokerConfig;
use barnabas_sasl::Secret;
use barnabas_sasl::scram::{ITERATIONS_MAX, ITERATIONS_MIN, Mechanism, ScramCredential};
use barnabas_wire::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use barnabas_wire::messages::alter_user_scram_credentials_response::AlterUserScramCredentialsResult;
use barnabas_wire::messages::{
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
};
use barnabas_wire::{MetadataRecord, ResponseBody, Str};
use bytes::Bytes;

use super::{RECORDS_MAX, check_entries, check_names, too_large};
use crate::controller::{Case, Outcome, Refusal, Sentences};

/// A user of the request, and what becomes of it.
type Decided = (Str, Result<MetadataRecord, Refusal>);

pub(crate) fn alter(case: &Case<'_>, request: &AlterUserScramCredentialsRequest) -> Outcome {
    let mut decided = decide(case, request);
    let records = decided.iter().filter_map(|(_, done)| done.clone().ok()).collect();
    let response = response(&decided);
    Outcome::atomic(records, response, move |why| {
        let refusal = Refusal::new(ErrorCode::PolicyViolation, why);
        decided.iter_mut().for_each(|(_, done)| *done = Err(refusal.clone()));
        self::response(&decided)
    })
}

/// Each user once, in the order of the request: deletions, then upsertions.
fn decide(case: &Case<'_>, request: &AlterUserScramCredentialsRequest) -> Vec<Decided> {
    let (image, config) = (case.image, case.config);
    let is_too_large = request.deletions.len() + request.upsertions.len() > RECORDS_MAX;
    let check = || if is_too_large { Err(too_large()) } else { check_level(image) };
    let mut decided: Vec<Decided> = Vec::new();
    let mut places: Map<Str, usize> = Map::default();
    let mut note = |name: &Str, decide: &mut dyn FnMut() -> Result<MetadataRecord, Refusal>| match places
        .entry(name.clone())
    {
        Entry::Vacant(free) => {
            free.insert(decided.len());
            decided.push((name.clone(), decide()));
        }
        Entry::Occupied(known) => {
            let (_, done) = &mut decided[*known.get()];
            if done.is_ok() {
                let message = "A user credential cannot be altered twice in the same request";
                *done = Err(Refusal::new(ErrorCode::DuplicateResource, message));
            }
        }
    };
    for deletion in &request.deletions {
        note(&deletion.name, &mut || check().and_then(|()| delete(image, deletion)));
    }
    let mut count = image.scram.len();
    for upsertion in &request.upsertions {
        note(&upsertion.name, &mut || check().and_then(|()| upsert(image, config, upsertion, &mut count)));
    }
    decided
}

fn check_level(image: &Image) -> Result<(), Refusal> {
    if image.metadata_version().has_scram() {
        return Ok(());
    }
    let message = "The current metadata.version does not support SCRAM";
    Err(Refusal::new(ErrorCode::UnsupportedVersion, message))
}

fn mechanism(name: &str, code: i8) -> Result<Mechanism, Refusal> {
    if name.is_empty() {
        return Err(Refusal::new(ErrorCode::UnacceptableCredential, "Username must not be empty"));
    }
    Mechanism::from_code(code)
        .ok_or_else(|| Refusal::new(ErrorCode::UnsupportedSaslMechanism, "Unknown SCRAM mechanism"))
}

fn is_known(image: &Image, name: &str, mechanism: Mechanism) -> bool {
    let code = ScramMechanism::from_code(mechanism.code());
    code.is_some_and(|code| image.scram.contains_key(&(code, name.into())))
}

fn delete(image: &Image, deletion: &ScramCredentialDeletion) -> Result<MetadataRecord, Refusal> {
    let mechanism = mechanism(&deletion.name, deletion.mechanism)?;
    if !is_known(image, &deletion.name, mechanism) {
        let message = "Attempt to delete a user credential that does not exist";
        return Err(Refusal::new(ErrorCode::ResourceNotFound, message));
    }
    let record = RemoveUserScramCredentialRecord {
        name: deletion.name.clone(),
        mechanism: mechanism.code(),
        ..RemoveUserScramCredentialRecord::default()
    };
    Ok(record.into())
}

/// `count`: how many credentials there will be; counted up if this is one more.
fn upsert(
    image: &Image,
    config: &BrokerConfig,
    upsertion: &ScramCredentialUpsertion,
    count: &mut usize,
) -> Result<MetadataRecord, Refusal> {
    let unacceptable = |message: &str| Refusal::new(ErrorCode::UnacceptableCredential, message);
    let mechanism = mechanism(&upsertion.name, upsertion.mechanism)?;
    let iterations = i64::from(upsertion.iterations);
    if iterations < i64::from(ITERATIONS_MIN) {
        return Err(unacceptable("Too few iterations"));
    }
    if iterations > i64::from(ITERATIONS_MAX) {
        return Err(unacceptable("Too many iterations"));
    }
    check_names([&*upsertion.name])?;
    if upsertion.salt.len() > super::NAME_BYTES_MAX {
        return Err(unacceptable("The salt is too long"));
    }
    let salted = Secret::from(&upsertion.salted_password[..]);
    let credential =
        ScramCredential::from_salted_password(mechanism, &salted, upsertion.salt.to_vec(), iterations)
            .map_err(|error| unacceptable(&error.to_string()))?;
    if !is_known(image, &upsertion.name, mechanism) {
        check_entries(config, image.scram.len(), *count + 1, "SCRAM credentials")?;
        *count += 1;
    }
    Ok(credential_record(upsertion.name.clone(), &credential))
}

/// The record of a user's credential.
pub fn credential_record(name: Str, credential: &ScramCredential) -> MetadataRecord {
    UserScramCredentialRecord {
        name,
        mechanism: credential.mechanism().code(),
        salt: Bytes::copy_from_slice(credential.salt()),
        stored_key: Bytes::copy_from_slice(credential.stored_key().bytes()),
        server_key: Bytes::copy_from_slice(credential.server_key().bytes()),
        // Bounded by ITERATIONS_MAX.
        iterations: credential.iterations() as i32,
        ..UserScramCredentialRecord::default()
    }
    .into()
}

/// Users whose credentials changed, then those that were refused.
fn response(decided: &[Decided]) -> ResponseBody {
    let mut sentences = Sentences::default();
    let mut result = |(user, done): &Decided| {
        let (error_code, error_message) = sentences.fields(done.as_ref().err());
        let user = user.clone();
        AlterUserScramCredentialsResult {
            user,
            error_code,
            error_message,
            ..AlterUserScramCredentialsResult::default()
        }
    };
    let (done, refused): (Vec<&Decided>, Vec<&Decided>) = decided.iter().partition(|(_, done)| done.is_ok());
    let results = done.into_iter().chain(refused).map(&mut result).collect();
    AlterUserScramCredentialsResponse { results, ..AlterUserScramCredentialsResponse::default() }.into()
}
