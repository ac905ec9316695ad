//! # CreateDelegationToken, key 38, versions 0–3
//!
//! Makes a delegation token: a name and a secret with which its owner's other processes log in.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-48) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | flexible (KIP-482) |
//! | 3 | a token for another owner; the requester in the answer (KIP-373) |
//!
//! ## Left out
//! - An owner without a type, or with a colon in it: INVALID_PRINCIPAL_TYPE. Kafka fails at the first, and stores a
//!   token of another owner for the second.
//!
//! What is decided: core/quorum's `controller/access/tokens.rs`.
//!
//! Source: Kafka 4.4 `KafkaApis.handleCreateTokenRequest`, `ControllerApis.handleCreateDelegationTokenRequest`.

use barnabas_base::ErrorCode;
use barnabas_security::{Operation, ResourceType};
use barnabas_wire::Str;
use barnabas_wire::messages::create_delegation_token_request::{
    CreatableRenewers, CreateDelegationTokenRequest,
};
use barnabas_wire::messages::create_delegation_token_response::CreateDelegationTokenResponse;

use crate::tokens::{Principal, USER, may_ask};
use crate::{Context, Plan, Refusal, Route};

/// For the controller.
#[derive(Debug, PartialEq)]
pub struct Work {
    pub request: CreateDelegationTokenRequest,
    pub pending: Pending,
}

/// What the answer needs of the request.
#[derive(Debug, PartialEq)]
pub struct Pending {
    version: i16,
}

/// The controller's work, or why the client may not have a token.
pub fn plan(
    request: CreateDelegationTokenRequest,
    version: i16,
    route: Route,
    ctx: &Context<'_>,
) -> Plan<Work, CreateDelegationTokenResponse> {
    let requester = Principal::parse(&ctx.client.principal);
    let owner = owner_of(&request, &requester);
    let refuse = |code| Plan::Answer(refused(code, version, &owner, &requester));
    if !may_ask(route, ctx) {
        return refuse(ErrorCode::DelegationTokenRequestNotAllowed);
    }
    let is_named = !owner.kind.is_empty() && !owner.kind.contains(':');
    if !is_named {
        return refuse(ErrorCode::InvalidPrincipalType);
    }
    if owner != requester && !ctx.access.may(Operation::CreateTokens, ResourceType::User, &owner.text()) {
        return refuse(ErrorCode::DelegationTokenAuthorizationFailed);
    }
    // The controller looks at renewers itself, after what concerns the cluster.
    let is_user = |renewer: &CreatableRenewers| renewer.principal_type == USER;
    if route == Route::ToBroker && !request.renewers.iter().all(is_user) {
        return refuse(ErrorCode::InvalidPrincipalType);
    }
    Plan::Work(Work { request, pending: Pending { version } })
}

/// The owner of the token: the requester, where the request names no other.
fn owner_of(request: &CreateDelegationTokenRequest, requester: &Principal) -> Principal {
    match request.owner_principal_name.as_ref().filter(|name| !name.is_empty()) {
        None => requester.clone(),
        Some(name) => {
            let kind = request.owner_principal_type.clone().unwrap_or_default();
            Principal { kind, name: name.clone() }
        }
    }
}

fn refused(
    code: ErrorCode,
    version: i16,
    owner: &Principal,
    requester: &Principal,
) -> CreateDelegationTokenResponse {
    let response = CreateDelegationTokenResponse {
        error_code: code.code(),
        principal_type: owner.kind.clone(),
        principal_name: owner.name.clone(),
        token_requester_principal_type: requester.kind.clone(),
        token_requester_principal_name: requester.name.clone(),
        issue_timestamp_ms: -1,
        expiry_timestamp_ms: -1,
        max_timestamp_ms: -1,
        ..CreateDelegationTokenResponse::default()
    };
    in_version(response, version)
}

/// Before version 3 the answer does not name the requester.
fn in_version(response: CreateDelegationTokenResponse, version: i16) -> CreateDelegationTokenResponse {
    if version >= 3 {
        return response;
    }
    CreateDelegationTokenResponse {
        token_requester_principal_type: Str::default(),
        token_requester_principal_name: Str::default(),
        ..response
    }
}

impl Pending {
    /// The answer to the client, from the controller's or from the reason why there is none.
    pub fn respond(
        self,
        outcome: Result<CreateDelegationTokenResponse, Refusal>,
    ) -> CreateDelegationTokenResponse {
        match outcome {
            Ok(response) => in_version(response, self.version),
            Err(refusal) => {
                let anonymous = Principal::parse("User:ANONYMOUS");
                refused(refusal.code, self.version, &anonymous, &anonymous)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, carried, versions};
    use barnabas_base::Text;

    fn alice() -> Fixture {
        let mut fixture = Fixture::new();
        fixture.client.principal = Text::from("User:alice");
        fixture.client.is_authenticated = true;
        fixture
    }

    fn of(owner: Option<(Option<&str>, &str)>, renewer: &str) -> CreateDelegationTokenRequest {
        let renewer = CreatableRenewers {
            principal_type: renewer.into(),
            principal_name: "bob".into(),
            ..CreatableRenewers::default()
        };
        CreateDelegationTokenRequest {
            owner_principal_type: owner.and_then(|(kind, _)| kind.map(Str::from)),
            owner_principal_name: owner.map(|(_, name)| Str::from(name)),
            renewers: vec![renewer],
            ..CreateDelegationTokenRequest::default()
        }
    }

    /// The code of the answer; `None`: the controller decides.
    fn code(fixture: &Fixture, request: CreateDelegationTokenRequest, route: Route) -> Option<i16> {
        match plan(request, 3, route, &fixture.ctx()) {
            Plan::Work(_) => None,
            Plan::Answer(response) => Some(carried(response, 3).error_code),
        }
    }

    #[test]
    fn only_clients_that_proved_who_they_are_get_tokens() {
        let mut fixture = alice();
        assert_eq!(code(&fixture, of(None, "User"), Route::ToBroker), None);
        fixture.client.is_authenticated = false;
        assert_eq!(code(&fixture, of(None, "User"), Route::ToBroker), Some(64));
        assert_eq!(code(&fixture, of(None, "User"), Route::ToController), Some(64));
        assert_eq!(code(&fixture, of(None, "User"), Route::ThroughBroker), None);
        fixture.client.is_authenticated = true;
        fixture.client.token_authenticated = true;
        for route in [Route::ToBroker, Route::ThroughBroker, Route::ToController] {
            assert_eq!(code(&fixture, of(None, "User"), route), Some(64));
        }
    }

    #[test]
    fn another_owner_needs_create_tokens_on_that_user() {
        let mut fixture = alice();
        let carol = || of(Some((Some("User"), "carol")), "User");
        assert_eq!(code(&fixture, carol(), Route::ToBroker), None, "there is no authorizer");
        fixture.allow(&[]);
        assert_eq!(code(&fixture, carol(), Route::ToBroker), Some(65));
        assert_eq!(code(&fixture, carol(), Route::ThroughBroker), Some(65));
        for own in [None, Some((None, "")), Some((Some("User"), "alice"))] {
            assert_eq!(code(&fixture, of(own, "User"), Route::ToBroker), None);
        }
        fixture.allow(&[(Operation::CreateTokens, ResourceType::User, "User:carol")]);
        assert_eq!(code(&fixture, carol(), Route::ToBroker), None);
        for kind in [None, Some(""), Some("a:b")] {
            assert_eq!(code(&fixture, of(Some((kind, "carol")), "User"), Route::ToBroker), Some(67));
        }
    }

    #[test]
    fn renewer_of_another_type_is_refused_by_the_broker() {
        let fixture = alice();
        assert_eq!(code(&fixture, of(None, "Group"), Route::ToBroker), Some(67));
        assert_eq!(code(&fixture, of(None, "Group"), Route::ThroughBroker), None);
    }

    #[test]
    fn refusal_names_owner_and_requester_as_the_version_can() {
        let mut fixture = alice();
        fixture.client.token_authenticated = true;
        for version in versions::<CreateDelegationTokenResponse>() {
            let request = of((version >= 3).then_some((Some("User"), "carol")), "User");
            let Plan::Answer(response) = plan(request, version, Route::ToBroker, &fixture.ctx()) else {
                panic!("work")
            };
            let response = carried(response, version);
            let (owner, requester) = if version >= 3 { ("carol", "alice") } else { ("alice", "") };
            assert_eq!(
                (&*response.principal_name, &*response.token_requester_principal_name),
                (owner, requester)
            );
            assert_eq!((response.max_timestamp_ms, response.hmac.len()), (-1, 0));
            let refused = Pending { version }.respond(Err(ErrorCode::RequestTimedOut.into()));
            let refused = carried(refused, version);
            assert_eq!((refused.error_code, &*refused.principal_name), (7, "ANONYMOUS"));
        }
    }
}
