//! `delegation-tokens`, as Kafka's `kafka-delegation-tokens`: creates, renews, expires and describes delegation tokens.
//!
//! A token's HMAC is its password: it is printed, since Kafka's tool prints it and there is no other way to get it.
//!
//! Source: Kafka 4.3 `DelegationTokenCommand`; KIP-48, KIP-373.

use crate::command_line::args::{
    exactly_one, excludes, is_given, number, switch, text, texts, value, values,
};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::perf::java::DateFormat;
use crate::waiting::telling;
use crate::{ToolError, block_on, say};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster, ClusterConfig};
use barnabas_wire::messages::create_delegation_token_request::CreatableRenewers;
use barnabas_wire::messages::describe_delegation_token_request::DescribeDelegationTokenOwner;
use barnabas_wire::messages::{
    CreateDelegationTokenRequest, CreateDelegationTokenResponse, DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest, RenewDelegationTokenRequest,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::{Arg, ArgMatches};

const TOOL: &str = "delegation-tokens";
const ACTIONS: [&str; 4] = ["create", "renew", "expire", "describe"];
const DATE: &str = "yyyy-MM-dd'T'HH:mm";

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().required(true),
        command_config().required(true),
        switch("create", "Create a token for the user who logs in, or for --owner-principal"),
        switch("renew", "Move a token's expiry"),
        switch("expire", "Move a token's expiry towards now, or end it"),
        switch(
            "describe",
            "Show the tokens of --owner-principal; left out: all that the user who logs in may see",
        ),
        values("owner-principal", "principal", "The token's owner, for example User:alice"),
        values("renewer-principal", "principal", "Who may renew and expire the token besides its owner"),
        value(
            "max-life-time-period",
            "ms",
            "With --create: the longest life; -1: delegation.token.max.lifetime.ms",
        ),
        value("renew-time-period", "ms", "With --renew: from now on; -1: delegation.token.expiry.time.ms"),
        value("expiry-time-period", "ms", "With --expire: from now on; -1: the token ends at once"),
        value("hmac", "base64", "The token's HMAC, as --create printed it"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = exactly_one(matches, &ACTIONS)?;
    check_together(matches, action)?;
    let config = cluster_config(matches, "barnabas-delegation-tokens")?;
    match action {
        "create" => create(matches, config),
        "describe" => describe(matches, config),
        _ => move_expiry(matches, config, action),
    }
}

/// Kafka's rules.
fn check_together(matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
    let (needed, refused): (&[&str], &[&str]) = match action {
        "create" => (&["max-life-time-period"], &["hmac", "renew-time-period", "expiry-time-period"]),
        "renew" => (
            &["hmac", "renew-time-period"],
            &["renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"],
        ),
        "expire" => (
            &["hmac", "expiry-time-period"],
            &["renewer-principal", "max-life-time-period", "renew-time-period", "owner-principal"],
        ),
        _ => (&[], &["renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"]),
    };
    if let Some(missing) = needed.iter().find(|flag| !is_given(matches, flag)) {
        return Err(ToolError::Usage(format!("Missing required argument \"[{missing}]\"")));
    }
    excludes(matches, action, refused)
}

/// (type, name) of each principal that a flag names.
fn principals(matches: &ArgMatches, flag: &str) -> Result<Vec<(String, String)>, ToolError> {
    let principal = |word: &str| {
        let parts = word.trim().split_once(':').filter(|(kind, _)| !kind.is_empty());
        let refused = || {
            ToolError::Usage(format!(
                "--{flag}: expected a string in format principalType:principalName but got {word}. Example: User:alice"
            ))
        };
        parts.map(|(kind, name)| (kind.to_owned(), name.to_owned())).ok_or_else(refused)
    };
    texts(matches, flag).map(principal).collect()
}

/// As Java prints a list: `[User:a, User:b]`.
fn listed(principals: impl Iterator<Item = (String, String)>) -> String {
    let words: Vec<String> = principals.map(|(kind, name)| format!("{kind}:{name}")).collect();
    format!("[{}]", words.join(", "))
}

/// A row of the table.
struct Token<'a> {
    id: &'a str,
    hmac: &'a [u8],
    owner: String,
    requester: String,
    renewers: String,
    times: [i64; 3],
}

fn show(tokens: &[Token<'_>]) -> Result<(), ToolError> {
    let row = |cells: [&str; 8]| {
        let [id, hmac, owner, requester, renewers, issued, expires, last] = cells;
        format!(
            "\n{id:<15} {hmac:<30} {owner:<15} {requester:<15} {renewers:<25} {issued:<15} {expires:<15} {last:<15}"
        )
    };
    say(&row(["TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE"]))?;
    for token in tokens {
        let hmac = STANDARD.encode(token.hmac);
        let [issued, expires, last] = token.times.map(date);
        let names = [token.id, &hmac, &token.owner, &token.requester, &token.renewers];
        let [id, hmac, owner, requester, renewers] = names;
        say(&row([id, hmac, owner, requester, renewers, &issued, &expires, &last]))?;
    }
    Ok(())
}

fn date(unix_ms: i64) -> String {
    DateFormat::new(DATE).map(|format| format.format(unix_ms)).unwrap_or_default()
}

fn create(matches: &ArgMatches, config: ClusterConfig) -> Result<(), ToolError> {
    let renewers = principals(matches, "renewer-principal")?;
    let max_lifetime_ms = number(matches, "max-life-time-period")?.unwrap_or(-1);
    let owner = principals(matches, "owner-principal")?.into_iter().next();
    let words = listed(renewers.iter().cloned());
    say(&format!(
        "Calling create token operation with renewers :{words} , max-life-time-period :{max_lifetime_ms}"
    ))?;
    let renewer = |(kind, name): &(String, String)| CreatableRenewers {
        principal_type: kind.as_str().into(),
        principal_name: name.as_str().into(),
        ..Default::default()
    };
    // Without an owner the token is of the user who logs in. The fields' default is the empty name.
    let request = CreateDelegationTokenRequest {
        owner_principal_type: owner.as_ref().map(|(kind, _)| kind.as_str().into()),
        owner_principal_name: owner.as_ref().map(|(_, name)| name.as_str().into()),
        renewers: renewers.iter().map(renewer).collect(),
        max_lifetime_ms,
        ..Default::default()
    };
    let answer: CreateDelegationTokenResponse = ask(config, &request)?;
    check("creating a delegation token", answer.error_code)?;
    say(&format!("Created delegation token with tokenId : {}", &*answer.token_id))?;
    let principal = |kind: &str, name: &str| format!("{kind}:{name}");
    let owner = principal(&answer.principal_type, &answer.principal_name);
    // Brokers before KIP-373 do not tell who asked: the owner did.
    let requester = match &*answer.token_requester_principal_name {
        "" => owner.clone(),
        name => principal(&answer.token_requester_principal_type, name),
    };
    show(&[Token {
        id: &answer.token_id,
        hmac: &answer.hmac,
        owner,
        requester,
        renewers: words,
        times: [answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms],
    }])
}

fn move_expiry(matches: &ArgMatches, config: ClusterConfig, action: &str) -> Result<(), ToolError> {
    let word = text(matches, "hmac").unwrap_or_default();
    let hmac =
        STANDARD.decode(word).map_err(|error| ToolError::Usage(format!("--hmac is no base64: {error}")))?;
    let (flag, shown) = if action == "renew" {
        ("renew-time-period", "renew-time-period")
    } else {
        ("expiry-time-period", "expire-time-period")
    };
    let period = number(matches, flag)?.unwrap_or(-1);
    say(&format!("Calling {action} token operation with hmac :{word} , {shown} :{period}"))?;
    let (code, expiry) = if action == "renew" {
        let request =
            RenewDelegationTokenRequest { hmac: hmac.into(), renew_period_ms: period, ..Default::default() };
        let answer = ask(config, &request)?;
        (answer.error_code, answer.expiry_timestamp_ms)
    } else {
        let request = ExpireDelegationTokenRequest {
            hmac: hmac.into(),
            expiry_time_period_ms: period,
            ..Default::default()
        };
        let answer = ask(config, &request)?;
        (answer.error_code, answer.expiry_timestamp_ms)
    };
    check(&format!("the delegation token's {action}"), code)?;
    say(&format!("Completed {action} operation. New expiry date : {}", date(expiry)))
}

fn describe(matches: &ArgMatches, config: ClusterConfig) -> Result<(), ToolError> {
    let owners = principals(matches, "owner-principal")?;
    if owners.is_empty() {
        say("Calling describe token operation for current user.")?;
    } else {
        say(&format!("Calling describe token operation for owners: {}", listed(owners.iter().cloned())))?;
    }
    let owner = |(kind, name): &(String, String)| DescribeDelegationTokenOwner {
        principal_type: kind.as_str().into(),
        principal_name: name.as_str().into(),
        ..Default::default()
    };
    let request = DescribeDelegationTokenRequest {
        owners: (!owners.is_empty()).then(|| owners.iter().map(owner).collect()),
        ..Default::default()
    };
    let answer = ask(config, &request)?;
    check("describing delegation tokens", answer.error_code)?;
    let principal = |kind: &str, name: &str| format!("{kind}:{name}");
    let tokens: Vec<Token<'_>> = answer
        .tokens
        .iter()
        .map(|token| Token {
            id: &token.token_id,
            hmac: &token.hmac,
            owner: principal(&token.principal_type, &token.principal_name),
            requester: principal(
                &token.token_requester_principal_type,
                &token.token_requester_principal_name,
            ),
            renewers: listed(
                token
                    .renewers
                    .iter()
                    .map(|renewer| (renewer.principal_type.to_string(), renewer.principal_name.to_string())),
            ),
            times: [token.issue_timestamp, token.expiry_timestamp, token.max_timestamp],
        })
        .collect();
    say(&format!("Total number of tokens : {}", tokens.len()))?;
    show(&tokens)
}

fn ask<R: barnabas_wire::Request + Clone>(
    config: ClusterConfig,
    request: &R,
) -> Result<R::Response, ToolError> {
    block_on(async {
        let mut cluster = Cluster::new(config.clone());
        Ok(telling(TOOL, config, cluster.ask_any(request)).await?)
    })
}

fn check(what: &str, code: i16) -> Result<(), ToolError> {
    let advice = match ErrorCode::from_code(code) {
        ErrorCode::None => return Ok(()),
        ErrorCode::DelegationTokenAuthDisabled => Some(
            "delegation.token.secret.key is not set there. Set the same secret on every broker and controller, and restart them",
        ),
        ErrorCode::DelegationTokenRequestNotAllowed => {
            Some("log in by SASL or by a client certificate, and not by a delegation token")
        }
        _ => None,
    };
    Err(ClientError::refused(what, code, advice).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &str) -> Option<String> {
        let words =
            ["x", "--bootstrap-server", "h:1", "--command-config", "f"].into_iter().chain(words.split(' '));
        let matches = clap::Command::new("x").args(flags()).try_get_matches_from(words).expect("flags");
        let checked = exactly_one(&matches, &ACTIONS).and_then(|action| check_together(&matches, action));
        let checked = checked.and_then(|()| principals(&matches, "owner-principal").map(drop));
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn refusal_names_the_setting_that_is_missing() {
        let text = check("creating a delegation token", 61).expect_err("refused").to_string();
        assert!(text.contains("DELEGATION_TOKEN_AUTH_DISABLED"), "{text}");
        assert!(text.contains("delegation.token.secret.key is not set there"), "{text}");
        assert!(check("x", 64).expect_err("refused").to_string().contains("not by a delegation token"));
        assert!(check("x", 0).is_ok());
    }

    #[test]
    fn flags_that_do_not_go_together_are_refused() {
        let complete = [
            "--create --max-life-time-period -1 --owner-principal User:a --renewer-principal User:b",
            "--renew --hmac eA== --renew-time-period -1",
            "--expire --hmac eA== --expiry-time-period 5",
            "--describe",
        ];
        assert_eq!(complete.map(refused), [None, None, None, None]);
        for (words, expected) in [
            ("--create --describe", "give exactly one of --create, --renew, --expire and --describe"),
            ("--create", "Missing required argument \"[max-life-time-period]\""),
            ("--renew --renew-time-period 1", "Missing required argument \"[hmac]\""),
            ("--describe --hmac eA==", "--describe cannot be used together with --hmac"),
            (
                "--describe --owner-principal a",
                "--owner-principal: expected a string in format principalType:principalName",
            ),
        ] {
            let text = refused(words).expect(words);
            assert!(text.starts_with(expected), "{words}: {text}");
        }
    }
}
