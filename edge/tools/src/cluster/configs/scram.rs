//! Users' SCRAM credentials. The password stays here: the cluster is sent its salted hash.
//!
//! Source: Kafka `ConfigCommand.alterUserScramCredentialConfigs`; KIP-554.

use super::change::Change;
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use barnabas_sasl::Secret;
use barnabas_sasl::scram::{ITERATIONS_MAX, ITERATIONS_MIN, Mechanism, fresh_salt};
use barnabas_wire::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use barnabas_wire::messages::describe_user_scram_credentials_request::UserName;
use barnabas_wire::messages::{AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest};

/// A line for each of `users`, or for each user who has credentials.
pub async fn described(cluster: &mut Cluster, users: &[&str]) -> Result<Vec<String>, ClientError> {
    let named = |user: &&str| UserName { name: (*user).into(), ..Default::default() };
    let users = (!users.is_empty()).then(|| users.iter().map(named).collect());
    let request = DescribeUserScramCredentialsRequest { users, ..Default::default() };
    let answer = cluster.ask_any(&request).await?;
    if answer.error_code != 0 {
        let why = answer.error_message.as_deref();
        return Err(ClientError::refused("describing SCRAM credentials", answer.error_code, why));
    }
    let mut lines = Vec::new();
    for told in &answer.results {
        let user = &*told.user;
        match ErrorCode::from_code(told.error_code) {
            ErrorCode::None => {
                let infos = told.credential_infos.iter().map(|info| {
                    let mechanism = Mechanism::from_code(info.mechanism).map_or("UNKNOWN", Mechanism::name);
                    format!("{mechanism}=iterations={}", info.iterations)
                });
                let infos: Vec<String> = infos.collect();
                lines.push(format!(
                    "SCRAM credential configs for user-principal '{user}' are {}",
                    infos.join(", ")
                ));
            }
            // The user has none.
            ErrorCode::ResourceNotFound => {}
            code => {
                let why = told.error_message.as_deref().unwrap_or_default();
                lines.push(format!(
                    "Error retrieving SCRAM credential configs for user-principal '{user}': {code}: {why}"
                ));
            }
        }
    }
    Ok(lines)
}

/// # Errors
/// The cluster's refusal; a value that is no credential.
pub async fn alter(cluster: &mut Cluster, user: &str, change: &Change) -> Result<(), ClientError> {
    let mechanism = |name: &str| {
        Mechanism::from_name(name)
            .ok_or_else(|| ClientError::Invalid(format!("no mechanism is called {name}")))
    };
    let mut request = AlterUserScramCredentialsRequest::default();
    for name in &change.delete {
        let mechanism = mechanism(name)?.code();
        request.deletions.push(ScramCredentialDeletion {
            name: user.into(),
            mechanism,
            ..Default::default()
        });
    }
    for (name, value) in &change.set {
        let mechanism = mechanism(name)?;
        let (iterations, password) = credential(name, value)?;
        let mut random = [0; 17];
        getrandom::fill(&mut random)
            .map_err(|error| ClientError::Invalid(format!("no random salt: {error}")))?;
        let salt = fresh_salt(random);
        let salted = mechanism.salted_password(&password, &salt, iterations);
        request.upsertions.push(ScramCredentialUpsertion {
            name: user.into(),
            mechanism: mechanism.code(),
            iterations: iterations as i32,
            salt: salt.into(),
            salted_password: salted.bytes().to_vec().into(),
            ..Default::default()
        });
    }
    for told in cluster.ask_any(&request).await?.results {
        if told.error_code != 0 {
            let what = format!("credentials of user {user}");
            return Err(ClientError::refused(what, told.error_code, told.error_message.as_deref()));
        }
    }
    Ok(())
}

/// `password=…`, or `iterations=…,password=…`.
fn credential(name: &str, value: &str) -> Result<(u32, Secret), ClientError> {
    let (iterations, password) = match value.strip_prefix("iterations=").and_then(|rest| rest.split_once(','))
    {
        Some((iterations, rest)) => (Some(iterations), rest),
        None => (None, value),
    };
    // What was given is not repeated: it may hold a password.
    let invalid = || {
        ClientError::Invalid(format!(
            "{name} takes a password, and iterations before it. Example: {name}=[iterations=8192,password=secret]"
        ))
    };
    let password = password.strip_prefix("password=").ok_or_else(invalid)?;
    if password.is_empty() {
        return Err(ClientError::Invalid(format!(
            "{name}: the password is empty, so that anyone could log in"
        )));
    }
    let iterations = match iterations {
        None | Some("-1") => ITERATIONS_MIN,
        Some(word) => word.parse().map_err(|_| invalid())?,
    };
    if iterations < ITERATIONS_MIN {
        return Err(ClientError::Invalid(format!(
            "{name}: iterations are {ITERATIONS_MIN} at least, not {iterations}"
        )));
    }
    // The cluster refuses more than these. Salting the password with a thousand million takes minutes.
    if iterations > ITERATIONS_MAX {
        return Err(ClientError::Invalid(format!(
            "{name}: iterations are {ITERATIONS_MAX} at most, not {iterations}"
        )));
    }
    Ok((iterations, Secret::from(password.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_kafka_reads_them() {
        let read = |value| {
            let (iterations, password) = credential("SCRAM-SHA-256", value)?;
            Ok::<_, ClientError>((iterations, String::from_utf8_lossy(password.bytes()).into_owned()))
        };
        assert_eq!(read("password=a=b,c").expect("a password"), (4096, "a=b,c".to_owned()));
        assert_eq!(read("iterations=8192,password=x").expect("both"), (8192, "x".to_owned()));
        assert_eq!(read("iterations=-1,password=x").expect("both"), (4096, "x".to_owned()));
        assert!(read("password=").expect_err("an empty one").to_string().contains("is empty"));
        for wrong in ["hunter2", "iterations=many,password=hunter2", "iterations=8192,hunter2"] {
            let refused = read(wrong).expect_err(wrong).to_string();
            assert!(
                !refused.contains("hunter2") && refused.contains("Example: SCRAM-SHA-256=["),
                "{refused}"
            );
        }
        let few = read("iterations=1,password=secret").expect_err("too few").to_string();
        assert_eq!(few, "SCRAM-SHA-256: iterations are 4096 at least, not 1");
    }

    #[test]
    fn iterations_out_of_bounds_are_refused_before_they_are_counted_out() {
        for (iterations, bound) in
            [(4095, "4096 at least"), (16_385, "16384 at most"), (999_999_999, "at most")]
        {
            let value = format!("iterations={iterations},password=secret");
            let refused = credential("SCRAM-SHA-256", &value).expect_err("refused").to_string();
            assert!(refused.contains(bound) && !refused.contains("secret"), "{refused}");
        }
        assert_eq!(credential("SCRAM-SHA-256", "iterations=16384,password=p").expect("taken").0, 16_384);
    }
}
