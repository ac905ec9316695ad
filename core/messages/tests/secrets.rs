//! What may end up in a log shows no secret: of the messages with passwords, keys, tokens and values of settings.

use barnabas_messages::alter_configs_request::AlterableConfig;
use barnabas_messages::alter_user_scram_credentials_request::ScramCredentialUpsertion;
use barnabas_messages::describe_delegation_token_response::DescribedDelegationToken;
use barnabas_messages::incremental_alter_configs_request::AlterableConfig as Altered;
use barnabas_messages::{
    AlterConfigsRequest, ConfigRecord, CreateDelegationTokenResponse, EnvelopeRequest, EnvelopeResponse,
    ExpireDelegationTokenRequest, RenewDelegationTokenRequest, SaslAuthenticateRequest,
    SaslAuthenticateResponse, UserScramCredentialRecord,
};
use bytes::Bytes;
use std::fmt::Debug;

const SECRET: &str = "a-planted-secret";

fn secret() -> Bytes {
    Bytes::from_static(SECRET.as_bytes())
}

fn check(message: &dyn Debug) {
    for shown in [format!("{message:?}"), format!("{message:#?}")] {
        assert!(!shown.contains(SECRET), "{shown}");
        assert!(shown.contains("[hidden]"), "{shown}");
    }
    // A test that compares values sees them.
    assert!(format!("{message:-?}").contains(SECRET), "{message:-?}");
}

#[test]
fn logins_and_tokens_are_printed_without_secrets() {
    check(&SaslAuthenticateRequest { auth_bytes: secret(), ..Default::default() });
    check(&SaslAuthenticateResponse { auth_bytes: secret(), ..Default::default() });
    check(&CreateDelegationTokenResponse { hmac: secret(), ..Default::default() });
    check(&DescribedDelegationToken { hmac: secret(), ..Default::default() });
    check(&RenewDelegationTokenRequest { hmac: secret(), ..Default::default() });
    check(&ExpireDelegationTokenRequest { hmac: secret(), ..Default::default() });
    check(&ScramCredentialUpsertion { salted_password: secret(), ..Default::default() });
    check(&UserScramCredentialRecord { stored_key: secret(), ..Default::default() });
    check(&UserScramCredentialRecord { server_key: secret(), ..Default::default() });
}

#[test]
fn settings_are_printed_without_their_values() {
    let value = || Some(SECRET.into());
    let config = AlterableConfig { value: value(), ..Default::default() };
    check(&config);
    check(&Altered { value: value(), ..Default::default() });
    check(&ConfigRecord { value: value(), ..Default::default() });
    // Of another message's field as well.
    let resource = barnabas_messages::alter_configs_request::AlterConfigsResource {
        configs: vec![config],
        ..Default::default()
    };
    check(&AlterConfigsRequest { resources: vec![resource], ..Default::default() });
}

/// A broker forwards requests with all of these in them.
#[test]
fn forwarded_requests_are_printed_without_their_bytes() {
    check(&EnvelopeRequest { request_data: secret(), ..Default::default() });
    check(&EnvelopeResponse { response_data: Some(secret()), ..Default::default() });
}
