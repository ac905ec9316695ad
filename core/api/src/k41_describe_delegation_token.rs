//! # DescribeDelegationToken, key 41, versions 0–3
//!
//! Lists delegation tokens with their secrets: those that the client owns, asked for or may renew, and those that it
//! may describe.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-48) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | flexible (KIP-482) |
//! | 3 | the requester of each token (KIP-373) |
//!
//! ## Left out
//! - An answer of more than `answer.bytes.max` bytes: it is refused with INVALID_REQUEST.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDescribeTokensRequest`, `DelegationTokenManager.filterToken`.

use barnabas_base::{ErrorCode, Text};
use barnabas_metadata::access::DelegationToken;
use barnabas_security::{Operation, ResourceType};
use barnabas_wire::messages::describe_delegation_token_request::DescribeDelegationTokenRequest;
use barnabas_wire::messages::describe_delegation_token_response::{
    DescribeDelegationTokenResponse, DescribedDelegationToken, DescribedDelegationTokenRenewer,
};
use bytes::Bytes;

use crate::tokens::{Principal, may_ask};
use crate::{Context, Route, TooLarge};

/// The answer: tokens by id. `hmac`: the secret of a token's id; `None` where `delegation.token.secret.key` is not set.
pub fn answer(
    request: &DescribeDelegationTokenRequest,
    version: i16,
    route: Route,
    hmac: Option<&dyn Fn(&str) -> Bytes>,
    ctx: &Context<'_>,
) -> DescribeDelegationTokenResponse {
    let refuse = |code: ErrorCode| DescribeDelegationTokenResponse {
        error_code: code.code(),
        ..DescribeDelegationTokenResponse::default()
    };
    if !may_ask(route, ctx) {
        return refuse(ErrorCode::DelegationTokenRequestNotAllowed);
    }
    let Some(hmac) = hmac else { return refuse(ErrorCode::DelegationTokenAuthDisabled) };
    let owner =
        |owner: &barnabas_wire::messages::describe_delegation_token_request::DescribeDelegationTokenOwner| {
            format!("{}:{}", owner.principal_type, owner.principal_name)
        };
    let owners: Option<Vec<String>> =
        request.owners.as_ref().map(|owners| owners.iter().map(owner).collect());
    let is_asked_for = |token: &DelegationToken| {
        owners.as_ref().is_none_or(|owners| owners.iter().any(|one| is_of(token, one)))
    };
    let shown = ctx.image.tokens.iter().filter(|(id, token)| is_asked_for(token) && sees(id, token, ctx));
    let tokens: Result<Vec<DescribedDelegationToken>, TooLarge> =
        shown.map(|(id, token)| described(id, token, version, hmac(id), ctx)).collect();
    match tokens {
        Ok(tokens) => {
            DescribeDelegationTokenResponse { tokens, ..DescribeDelegationTokenResponse::default() }
        }
        Err(too_large) => refuse(too_large.refusal(ErrorCode::RequestTimedOut).code),
    }
}

/// Whether the principal owns the token, asked for it or may renew it.
fn is_of(token: &DelegationToken, principal: &str) -> bool {
    let mut all = [&token.owner, &token.requester].into_iter().chain(&token.renewers);
    all.any(|one| **one == *principal)
}

fn sees(id: &str, token: &DelegationToken, ctx: &Context<'_>) -> bool {
    is_of(token, &ctx.client.principal)
        || ctx.access.sees(Operation::Describe, ResourceType::DelegationToken, id)
        || ctx.access.sees(Operation::DescribeTokens, ResourceType::User, &token.owner)
}

fn described(
    id: &Text,
    token: &DelegationToken,
    version: i16,
    hmac: Bytes,
    ctx: &Context<'_>,
) -> Result<DescribedDelegationToken, TooLarge> {
    let names: usize = token
        .renewers
        .iter()
        .map(|renewer| size_of::<DescribedDelegationTokenRenewer>() + renewer.len())
        .sum();
    let bytes = names + id.len() + token.owner.len() + token.requester.len() + hmac.len();
    ctx.room.take(size_of::<DescribedDelegationToken>() + 2 * bytes)?;
    let (owner, requester) = (Principal::parse(&token.owner), Principal::parse(&token.requester));
    let renewer = |renewer: &Text| {
        let Principal { kind, name } = Principal::parse(renewer);
        DescribedDelegationTokenRenewer {
            principal_type: kind,
            principal_name: name,
            ..DescribedDelegationTokenRenewer::default()
        }
    };
    let mut described = DescribedDelegationToken {
        principal_type: owner.kind,
        principal_name: owner.name,
        issue_timestamp: token.issued.0,
        expiry_timestamp: token.expires.0,
        max_timestamp: token.expires_at_the_latest.0,
        token_id: id.into(),
        hmac,
        renewers: token.renewers.iter().map(renewer).collect(),
        ..DescribedDelegationToken::default()
    };
    if version >= 3 {
        described.token_requester_principal_type = requester.kind;
        described.token_requester_principal_name = requester.name;
    }
    Ok(described)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, carried, versions};
    use crate::{AnswerRoom, Unlimited};
    use barnabas_wire::messages::DelegationTokenRecord;
    use barnabas_wire::messages::describe_delegation_token_request::DescribeDelegationTokenOwner;

    fn fixture() -> Fixture {
        let record = |id: &str, owner: &str, requester: &str, renewer: &str| {
            DelegationTokenRecord {
                token_id: id.into(),
                owner: owner.into(),
                requester: requester.into(),
                renewers: vec![renewer.into()],
                issue_timestamp: 1,
                expiration_timestamp: 2,
                max_timestamp: 3,
                ..DelegationTokenRecord::default()
            }
            .into()
        };
        let mut fixture = Fixture::new();
        fixture.add(&[
            record("t1", "User:alice", "User:alice", "User:bob"),
            record("t2", "User:carol", "User:alice", "User:carol"),
            record("t3", "User:carol", "User:carol", "User:dave"),
        ]);
        fixture.client.is_authenticated = true;
        fixture
    }

    fn hmac(id: &str) -> Bytes {
        Bytes::from(format!("secret of {id}"))
    }

    /// The code, and the ids that `user` is shown.
    fn told(fixture: &mut Fixture, user: &str, owners: Option<&[&str]>) -> String {
        fixture.client.principal = Text::from(format!("User:{user}"));
        let owner = |name: &&str| DescribeDelegationTokenOwner {
            principal_type: "User".into(),
            principal_name: (*name).into(),
            ..DescribeDelegationTokenOwner::default()
        };
        let owners = owners.map(|owners| owners.iter().map(owner).collect());
        let request = DescribeDelegationTokenRequest { owners, ..DescribeDelegationTokenRequest::default() };
        let response = answer(&request, 3, Route::ToBroker, Some(&hmac), &fixture.ctx());
        let ids: Vec<&str> = response.tokens.iter().map(|token| &*token.token_id).collect();
        format!("{} {ids:?}", response.error_code)
    }

    #[test]
    fn client_sees_its_own_tokens_and_those_that_it_may_describe() {
        let mut fixture = fixture();
        assert_eq!(told(&mut fixture, "bob", None), r#"0 ["t1", "t2", "t3"]"#, "there is no authorizer");
        fixture.allow(&[]);
        for (user, seen) in [
            ("alice", r#"0 ["t1", "t2"]"#),
            ("bob", r#"0 ["t1"]"#),
            ("carol", r#"0 ["t2", "t3"]"#),
            ("dave", r#"0 ["t3"]"#),
            ("erin", "0 []"),
        ] {
            assert_eq!(told(&mut fixture, user, None), seen, "{user}");
        }
        fixture.client.principal = Text::from("User:erin");
        fixture.allow(&[(Operation::Describe, ResourceType::DelegationToken, "t1")]);
        assert_eq!(told(&mut fixture, "erin", None), r#"0 ["t1"]"#);
        fixture.allow(&[(Operation::DescribeTokens, ResourceType::User, "User:carol")]);
        assert_eq!(told(&mut fixture, "erin", None), r#"0 ["t2", "t3"]"#);
    }

    #[test]
    fn owners_that_are_named_bound_the_answer() {
        let mut fixture = fixture();
        assert_eq!(told(&mut fixture, "bob", Some(&["dave"])), r#"0 ["t3"]"#);
        assert_eq!(told(&mut fixture, "bob", Some(&["erin", "alice"])), r#"0 ["t1", "t2"]"#);
        assert_eq!(told(&mut fixture, "bob", Some(&[])), "0 []");
    }

    #[test]
    fn token_is_described_whole_in_every_version() {
        let mut fixture = fixture();
        fixture.client.principal = Text::from("User:dave");
        fixture.allow(&[]);
        for version in versions::<DescribeDelegationTokenResponse>() {
            let request = DescribeDelegationTokenRequest { owners: None, ..Default::default() };
            let response = answer(&request, version, Route::ToBroker, Some(&hmac), &fixture.ctx());
            let response = carried(response, version);
            let [token] = &response.tokens[..] else { panic!("{response:?}") };
            assert_eq!((&*token.principal_name, &token.hmac[..]), ("carol", &b"secret of t3"[..]));
            assert_eq!((token.issue_timestamp, token.expiry_timestamp, token.max_timestamp), (1, 2, 3));
            assert_eq!(&*token.renewers[0].principal_name, "dave");
            assert_eq!(&*token.token_requester_principal_name, if version >= 3 { "carol" } else { "" });
        }
    }

    #[test]
    fn client_without_login_or_cluster_without_key_is_refused() {
        let mut fixture = fixture();
        let code = |fixture: &Fixture, hmac: Option<&dyn Fn(&str) -> Bytes>| {
            let request = DescribeDelegationTokenRequest::default();
            answer(&request, 3, Route::ToBroker, hmac, &fixture.ctx()).error_code
        };
        assert_eq!(code(&fixture, None), 61);
        fixture.room = Box::new(AnswerRoom::new(100, Unlimited));
        let all = DescribeDelegationTokenRequest { owners: None, ..Default::default() };
        assert_eq!(answer(&all, 3, Route::ToBroker, Some(&hmac), &fixture.ctx()).error_code, 42);
        fixture.client.is_authenticated = false;
        assert_eq!((code(&fixture, None), code(&fixture, Some(&hmac))), (64, 64));
    }
}
