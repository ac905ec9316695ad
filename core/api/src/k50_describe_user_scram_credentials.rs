//! # DescribeUserScramCredentials, key 50, version 0
//!
//! Tells which users have SCRAM credentials: mechanisms and iterations, never salts or keys.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-554) |
//!
//! ## Left out
//! - An answer of more than `answer.bytes.max` bytes: it is refused with INVALID_REQUEST.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDescribeUserScramCredentialsRequest`, `ScramImage.describe`.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{ErrorCode, Text};
use barnabas_metadata::access::ScramMechanism;
use barnabas_wire::Str;
use barnabas_wire::messages::describe_user_scram_credentials_request::DescribeUserScramCredentialsRequest;
use barnabas_wire::messages::describe_user_scram_credentials_response::{
    CredentialInfo, DescribeUserScramCredentialsResponse, DescribeUserScramCredentialsResult,
};

use crate::{Context, Refusal, TooLarge};

const MECHANISMS: [ScramMechanism; 2] = [ScramMechanism::Sha256, ScramMechanism::Sha512];

/// The answer: users by name.
pub fn answer(
    request: &DescribeUserScramCredentialsRequest,
    ctx: &Context<'_>,
) -> DescribeUserScramCredentialsResponse {
    let asked = request.users.as_deref().unwrap_or_default();
    let results =
        if asked.is_empty() { everybody(ctx) } else { those(asked.iter().map(|user| &user.name), ctx) };
    match results {
        Ok(results) => DescribeUserScramCredentialsResponse {
            results,
            ..DescribeUserScramCredentialsResponse::default()
        },
        Err(too_large) => refuse(&too_large.refusal(ErrorCode::RequestTimedOut)),
    }
}

/// The answer that refuses the request as a whole.
pub fn refuse(refusal: &Refusal) -> DescribeUserScramCredentialsResponse {
    DescribeUserScramCredentialsResponse {
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        ..DescribeUserScramCredentialsResponse::default()
    }
}

/// The answer to a request that is denied: with a result for each user that it names, which does not name him (Kafka
/// `DescribeUserScramCredentialsRequest.getErrorResponse`).
pub fn deny(
    request: &DescribeUserScramCredentialsRequest,
    refusal: &Refusal,
) -> DescribeUserScramCredentialsResponse {
    let whole = refuse(refusal);
    let named = request.users.as_deref().unwrap_or_default().iter();
    let results = named.map(|_| DescribeUserScramCredentialsResult {
        error_code: whole.error_code,
        error_message: whole.error_message.clone(),
        ..DescribeUserScramCredentialsResult::default()
    });
    DescribeUserScramCredentialsResponse { results: results.collect(), ..whole }
}

type Results = Result<Vec<DescribeUserScramCredentialsResult>, TooLarge>;

fn everybody(ctx: &Context<'_>) -> Results {
    let users: BTreeSet<&Text> = ctx.image.scram.keys().map(|(_, user)| user).collect();
    users.into_iter().map(|user| described(user, ctx)).collect()
}

/// A user that is named twice is refused.
fn those<'a>(names: impl Iterator<Item = &'a Str>, ctx: &Context<'_>) -> Results {
    let mut users: BTreeMap<&str, bool> = BTreeMap::new();
    for name in names {
        users.entry(name).and_modify(|twice| *twice = true).or_insert(false);
    }
    let result = |(user, is_twice): (&str, bool)| match is_twice {
        false => described(user, ctx),
        true => {
            let message = format!(
                "Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
            );
            refused(user, ErrorCode::DuplicateResource, message, ctx)
        }
    };
    users.into_iter().map(result).collect()
}

fn described(user: &str, ctx: &Context<'_>) -> Result<DescribeUserScramCredentialsResult, TooLarge> {
    let info = |mechanism: ScramMechanism| {
        let credential = ctx.image.scram.get(&(mechanism, Text::from(user)))?;
        Some(CredentialInfo {
            mechanism: mechanism.code(),
            iterations: credential.iterations,
            ..CredentialInfo::default()
        })
    };
    let credential_infos: Vec<CredentialInfo> = MECHANISMS.into_iter().filter_map(info).collect();
    if credential_infos.is_empty() {
        let message = format!("Attempt to describe a user credential that does not exist: {user}");
        return refused(user, ErrorCode::ResourceNotFound, message, ctx);
    }
    ctx.room.take(size_of::<DescribeUserScramCredentialsResult>() + 64 + 2 * user.len())?;
    Ok(DescribeUserScramCredentialsResult {
        user: Str::from(user),
        credential_infos,
        ..DescribeUserScramCredentialsResult::default()
    })
}

fn refused(
    user: &str,
    code: ErrorCode,
    message: String,
    ctx: &Context<'_>,
) -> Result<DescribeUserScramCredentialsResult, TooLarge> {
    let refusal = Refusal::new(code, message);
    let sentence = refusal.message.as_ref().map_or(0, String::len);
    ctx.room.take(size_of::<DescribeUserScramCredentialsResult>() + 2 * (user.len() + sentence))?;
    Ok(DescribeUserScramCredentialsResult {
        user: Str::from(user),
        error_code: code.code(),
        error_message: refusal.text(),
        ..DescribeUserScramCredentialsResult::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, carried};
    use crate::{AnswerRoom, Unlimited};
    use barnabas_wire::messages::UserScramCredentialRecord;
    use barnabas_wire::messages::describe_user_scram_credentials_request::UserName;

    fn fixture() -> Fixture {
        let record = |name: &str, mechanism| {
            UserScramCredentialRecord {
                name: name.into(),
                mechanism,
                salt: vec![1; 16].into(),
                stored_key: vec![2; 32].into(),
                server_key: vec![3; 32].into(),
                iterations: 4096 * i32::from(mechanism),
                ..UserScramCredentialRecord::default()
            }
            .into()
        };
        let mut fixture = Fixture::new();
        fixture.add(&[record("bob", 1), record("alice", 2), record("alice", 1)]);
        fixture
    }

    fn told(fixture: &Fixture, users: Option<&[&str]>) -> String {
        let name = |name: &&str| UserName { name: (*name).into(), ..UserName::default() };
        let users = users.map(|users| users.iter().map(name).collect());
        let request =
            DescribeUserScramCredentialsRequest { users, ..DescribeUserScramCredentialsRequest::default() };
        let response = carried(answer(&request, &fixture.ctx()), 0);
        let info = |info: &CredentialInfo| format!(" {}:{}", info.mechanism, info.iterations);
        let result = |one: &DescribeUserScramCredentialsResult| {
            let infos: String = one.credential_infos.iter().map(info).collect();
            format!("{} {}{infos}", one.user, one.error_code)
        };
        let results: Vec<String> = response.results.iter().map(result).collect();
        format!("{} [{}]", response.error_code, results.join(", "))
    }

    #[test]
    fn all_users_are_told_where_none_is_named() {
        let all = "0 [alice 0 1:4096 2:8192, bob 0 1:4096]";
        assert_eq!(told(&fixture(), None), all);
        assert_eq!(told(&fixture(), Some(&[])), all);
    }

    #[test]
    fn a_user_that_is_unknown_or_named_twice_is_refused() {
        let asked = ["bob", "carol", "alice", "alice"];
        assert_eq!(told(&fixture(), Some(&asked)), "0 [alice 92, bob 0 1:4096, carol 91]");
    }

    #[test]
    fn an_answer_that_is_too_large_is_refused() {
        let mut fixture = fixture();
        fixture.room = Box::new(AnswerRoom::new(100, Unlimited));
        assert_eq!(told(&fixture, None), "42 []");
    }

    #[test]
    fn denial_has_a_result_for_each_user_and_names_none() {
        let users = Some(vec![UserName { name: "a".into(), ..UserName::default() }; 2]);
        let mut request = DescribeUserScramCredentialsRequest { users, ..Default::default() };
        let denied = |request: &_| {
            let refusal = ErrorCode::ClusterAuthorizationFailed.into();
            let response = carried(deny(request, &refusal), 0);
            let results = response.results.iter().map(|one| (one.user.to_string(), one.error_code));
            (response.error_code, results.collect::<Vec<_>>())
        };
        assert_eq!(denied(&request), (31, vec![(String::new(), 31); 2]));
        request.users = None;
        assert_eq!(denied(&request), (31, Vec::new()));
    }
}
