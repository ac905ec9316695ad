//! Delegation tokens: who gets one, who logs in by it, and its end.

use crate::harness::patience::eventually;
use crate::harness::sasl::{node, plain, token};
use crate::harness::{Client, TestNode};
use barnabas_sasl::client::ClientLogin;
use barnabas_sasl::scram::Mechanism;
use barnabas_wire::messages::create_delegation_token_request::CreatableRenewers;
use barnabas_wire::messages::{
    CreateDelegationTokenRequest, CreateDelegationTokenResponse, DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest, MetadataRequest, RenewDelegationTokenRequest, ResponseBody,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use bytes::Bytes;
use std::time::{Duration, Instant};

const KEY: &str = "delegation.token.secret.key=planted-key-of-the-test";
const BOTH: [Mechanism; 2] = [Mechanism::Sha256, Mechanism::Sha512];

fn launched(more: &[&str]) -> (TestNode, u16) {
    let users = [("alice", "alice-secret"), ("bob", "bob-secret"), ("carol", "carol-secret")];
    let (mut node, sasl) = node("PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", &users, more);
    node.launch();
    (node, sasl)
}

fn user(sasl: u16, name: &str) -> Client {
    Client::logged_in(sasl, &plain(name, &format!("{name}-secret")))
}

fn create(client: &mut Client, lifetime_ms: i64) -> CreateDelegationTokenResponse {
    let renewer = CreatableRenewers {
        principal_type: "User".into(),
        principal_name: "bob".into(),
        ..CreatableRenewers::default()
    };
    let request = CreateDelegationTokenRequest {
        renewers: vec![renewer],
        max_lifetime_ms: lifetime_ms,
        ..CreateDelegationTokenRequest::default()
    };
    let ResponseBody::CreateDelegationToken(response) = client.call(request, 3) else { panic!("another") };
    *response
}

fn renew(client: &mut Client, hmac: &Bytes, renew_period_ms: i64) -> (i16, i64) {
    let request = RenewDelegationTokenRequest { hmac: hmac.clone(), renew_period_ms, ..Default::default() };
    let ResponseBody::RenewDelegationToken(response) = client.call(request, 2) else { panic!("another") };
    (response.error_code, response.expiry_timestamp_ms)
}

fn expire(client: &mut Client, hmac: &Bytes, expiry_time_period_ms: i64) -> (i16, i64) {
    let request =
        ExpireDelegationTokenRequest { hmac: hmac.clone(), expiry_time_period_ms, ..Default::default() };
    let ResponseBody::ExpireDelegationToken(response) = client.call(request, 2) else { panic!("another") };
    (response.error_code, response.expiry_timestamp_ms)
}

/// The code, and the ids.
fn describe(client: &mut Client) -> (i16, Vec<String>) {
    let request = DescribeDelegationTokenRequest { owners: None, ..Default::default() };
    let ResponseBody::DescribeDelegationToken(response) = client.call(request, 3) else { panic!("another") };
    (response.error_code, response.tokens.iter().map(|token| token.token_id.to_string()).collect())
}

fn log_in(sasl: u16, login: &ClientLogin) -> i16 {
    let mut client = Client::try_connect(sasl).expect("connects");
    client.log_in(login).expect("an answer").error_code
}

fn is_served(client: &mut Client) -> bool {
    client.try_call(MetadataRequest::default(), 12).is_some()
}

fn is_gone_within_ten_seconds(client: &mut Client) {
    let begun = Instant::now();
    while is_served(client) {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn token_logs_in_as_its_owner_until_it_is_ended() {
    let (mut node, sasl) = launched(&[KEY]);
    let (mut alice, mut bob, mut carol) = (user(sasl, "alice"), user(sasl, "bob"), user(sasl, "carol"));
    let made = create(&mut alice, -1);
    assert_eq!((made.error_code, made.principal_name.as_str(), made.hmac.len()), (0, "alice", 64));
    assert_eq!(describe(&mut bob), (0, vec![made.token_id.to_string()]));
    let mut by_token = Vec::new();
    for mechanism in BOTH {
        let mut client = Client::try_connect(sasl).expect("connects");
        let answer = client.log_in(&token(mechanism, &made.token_id, &made.hmac)).expect("an answer");
        // The session ends with the token: a day, unless it is renewed.
        assert_eq!(answer.error_code, 0, "{answer:?}");
        assert!((1..=86_400_000).contains(&answer.session_lifetime_ms), "{answer:?}");
        assert!(is_served(&mut client));
        // KIP-48: a token makes no tokens, and does nothing to any.
        assert_eq!((create(&mut client, -1).error_code, describe(&mut client).0), (64, 64));
        assert_eq!((renew(&mut client, &made.hmac, -1).0, expire(&mut client, &made.hmac, -1).0), (64, 64));
        assert_eq!(log_in(sasl, &token(mechanism, &made.token_id, &[7; 64])), 58);
        assert_eq!(log_in(sasl, &token(mechanism, "no-such-token-is-known", &made.hmac)), 58);
        // The token's id is no user.
        let ClientLogin::Scram { user, password, .. } = token(mechanism, &made.token_id, &made.hmac) else {
            panic!("SCRAM")
        };
        let as_user = ClientLogin::Scram { mechanism, user, password, is_token: false };
        assert_eq!(log_in(sasl, &as_user), 58);
        by_token.push(client);
    }
    assert_eq!(renew(&mut carol, &made.hmac, -1), (63, 0));
    assert_eq!(renew(&mut bob, &Bytes::from_static(&[1; 64]), -1), (62, 0));
    let (code, expires) = renew(&mut bob, &made.hmac, 3_600_000);
    assert!(code == 0 && expires < made.expiry_timestamp_ms, "{code} {expires}");
    assert_eq!(expire(&mut carol, &made.hmac, -1), (63, 0));
    assert_eq!(expire(&mut bob, &made.hmac, -1).0, 0);
    for (client, mechanism) in by_token.iter_mut().zip(BOTH) {
        is_gone_within_ten_seconds(client);
        assert_eq!(log_in(sasl, &token(mechanism, &made.token_id, &made.hmac)), 58);
    }
    assert!(is_served(&mut alice), "its owner stays");
    assert_eq!(expire(&mut alice, &made.hmac, -1), (62, 0));
    assert_eq!(describe(&mut alice), (0, Vec::new()));
    let log = node.log();
    for secret in ["planted-key-of-the-test", &BASE64.encode(&made.hmac)] {
        assert!(!log.contains(secret), "{log}");
    }
    assert!(node.stop().success());
}

#[test]
fn token_that_expires_is_refused_and_removed() {
    let sweep = "delegation.token.expiry.check.interval.ms=4000";
    let (mut node, sasl) = launched(&[KEY, sweep]);
    let mut alice = user(sasl, "alice");
    let made = create(&mut alice, 2000);
    assert_eq!(made.expiry_timestamp_ms, made.max_timestamp_ms);
    let login = token(Mechanism::Sha256, &made.token_id, &made.hmac);
    let mut client = Client::try_connect(sasl).expect("connects");
    let answer = client.log_in(&login).expect("an answer");
    assert!(answer.error_code == 0 && answer.session_lifetime_ms <= 2000, "{answer:?}");
    is_gone_within_ten_seconds(&mut client);
    assert_eq!(log_in(sasl, &login), 58);
    eventually("the token is removed", || describe(&mut alice) == (0, Vec::new()));
    assert_eq!(renew(&mut alice, &made.hmac, -1), (62, 0));
    assert!(node.stop().success());
}

#[test]
fn token_is_known_after_a_restart() {
    let (mut node, sasl) = launched(&[KEY]);
    let made = create(&mut user(sasl, "alice"), -1);
    let login = token(Mechanism::Sha512, &made.token_id, &made.hmac);
    assert_eq!(log_in(sasl, &login), 0);
    assert!(node.stop().success());
    node.launch();
    assert_eq!(log_in(sasl, &login), 0);
    assert_eq!(renew(&mut user(sasl, "bob"), &made.hmac, -1).0, 0);
    assert!(node.stop().success());
}

#[test]
fn client_without_a_login_gets_no_token() {
    let (mut node, _) = launched(&[KEY]);
    let hmac = Bytes::from_static(&[1; 64]);
    for mut client in [node.client(), Client::try_connect(node.controller_port).expect("connects")] {
        let made = create(&mut client, -1);
        assert_eq!((made.error_code, made.max_timestamp_ms), (64, -1));
        assert_eq!((renew(&mut client, &hmac, -1), expire(&mut client, &hmac, -1)), ((64, -1), (64, -1)));
        assert_eq!(describe(&mut client), (64, Vec::new()));
    }
    assert!(node.stop().success());
}

#[test]
fn without_a_key_there_are_no_tokens() {
    let (mut node, sasl) = launched(&[]);
    let mut alice = user(sasl, "alice");
    let hmac = Bytes::from_static(&[1; 64]);
    assert_eq!((create(&mut alice, -1).error_code, describe(&mut alice).0), (61, 61));
    assert_eq!((renew(&mut alice, &hmac, -1), expire(&mut alice, &hmac, -1)), ((61, 0), (61, 0)));
    assert_eq!(log_in(sasl, &token(Mechanism::Sha256, "some-id", &hmac)), 58);
    assert!(node.stop().success());
}
