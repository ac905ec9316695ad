//! `storage format --add-scram`: credentials that a cluster begins with.
//!
//! `SCRAM-SHA-256=[name=alice,password=secret]`; also `salt` (base64), `iterations`, and `saltedpassword` (base64, with
//! `salt`) instead of `password`. Values may stand in quotation marks, and hold no comma.
//!
//! An error never repeats a password. Neighbours: `initial`; shell/broker/src/controller/storage_tool.rs, which draws
//! the salts. Source: KIP-900; Kafka `ScramParser`.

use crate::IdentityError;
use barnabas_metadata::MetadataVersion;
use barnabas_quorum::controller::credential_record;
use barnabas_sasl::Secret;
use barnabas_sasl::scram::{ITERATIONS_MAX, ITERATIONS_MIN, Mechanism, ScramCredential};
use barnabas_wire::{MetadataRecord, Str};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;

/// The records of all arguments of `--add-scram`. `salt`: draws one for each; it counts where none is named.
///
/// # Errors
/// What is wrong with an argument, or a metadata version that has no such records.
pub fn credentials<'a>(
    arguments: impl Iterator<Item = &'a str>,
    version: MetadataVersion,
    mut salt: impl FnMut() -> Vec<u8>,
) -> Result<Vec<MetadataRecord>, IdentityError> {
    let records: Vec<_> = arguments.map(|argument| record(argument, salt())).collect::<Result<_, _>>()?;
    if !records.is_empty() && !version.has_scram() {
        return Err("SCRAM is only supported in metadata.version 3.5-IV2 or later.".into());
    }
    Ok(records)
}

fn record(argument: &str, salt: Vec<u8>) -> Result<MetadataRecord, IdentityError> {
    let (mechanism, text) = argument
        .trim()
        .split_once('=')
        .ok_or("--add-scram: expected MECHANISM=[...], such as SCRAM-SHA-256=[name=alice,password=secret]")?;
    let mechanism = Mechanism::from_name(mechanism)
        .ok_or_else(|| format!("The add-scram mechanism {mechanism} is not supported."))?;
    let text = text.strip_prefix('[').ok_or("Expected configuration string to start with [")?;
    let text = text.strip_suffix(']').ok_or("Expected configuration string to end with ]")?;
    let mut given = parts(text)?;
    let name = given.remove("name").ok_or("You must supply 'name' to add-scram")?;
    if name.is_empty() {
        return Err("You must supply a 'name' that is not empty to add-scram".into());
    }
    let named_salt = given.remove("salt").map(|salt| decoded("salt", salt)).transpose()?;
    let iterations = iterations(given.remove("iterations"), mechanism)?;
    let (password, salted) = (given.remove("password"), given.remove("saltedpassword"));
    if !given.is_empty() {
        let names: Vec<&str> = given.keys().copied().collect();
        return Err(format!("Unknown SCRAM configurations: {}", names.join(", ")).into());
    }
    let credential = match (password, salted, named_salt) {
        // An unset variable of a shell.
        (Some(""), ..) => {
            return Err("--add-scram: the password is empty, so that anyone could log in".into());
        }
        (Some(password), _, named) => {
            let salt = named.unwrap_or(salt);
            ScramCredential::from_password(mechanism, &Secret::from(password), salt, iterations)
        }
        (None, Some(salted), Some(salt)) => {
            let salted = Secret::from(decoded("saltedpassword", salted)?);
            ScramCredential::from_salted_password(mechanism, &salted, salt, iterations)
        }
        (None, Some(_), None) => {
            return Err("You must supply 'salt' with 'saltedpassword' to add-scram".into());
        }
        (None, None, _) => {
            return Err("You must supply one of 'password' or 'saltedpassword' to add-scram".into());
        }
    };
    let credential = credential.map_err(|error| format!("--add-scram: {error}"))?;
    Ok(credential_record(Str::from(name), &credential))
}

/// `key=value,…`
fn parts(text: &str) -> Result<BTreeMap<&str, &str>, IdentityError> {
    let mut parts = BTreeMap::new();
    for one in text.split(',') {
        let (key, value) = one
            .split_once('=')
            .ok_or("No equals sign found in a component of add-scram: expected key=value")?;
        let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        parts.insert(key, bare.unwrap_or(value));
    }
    Ok(parts)
}

fn decoded(which: &str, text: &str) -> Result<Vec<u8>, IdentityError> {
    STANDARD.decode(text).map_err(|_| format!("Failed to decode the given {which}: expected base64").into())
}

fn iterations(given: Option<&str>, mechanism: Mechanism) -> Result<i64, IdentityError> {
    let Some(text) = given else { return Ok(ITERATIONS_MIN.into()) };
    let count: i64 = text.parse().map_err(|_| format!("Failed to parse iterations count: {text}"))?;
    let mechanism = mechanism.name();
    if count < ITERATIONS_MIN.into() {
        let least = ITERATIONS_MIN;
        return Err(
            format!("The 'iterations' value must be >= {least} for add-scram using {mechanism}").into()
        );
    }
    if count > ITERATIONS_MAX.into() {
        let most = ITERATIONS_MAX;
        return Err(
            format!("The 'iterations' value must be <= {most} for add-scram using {mechanism}").into()
        );
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_a_version_without_scram_are_refused() {
        let version = |name| MetadataVersion::parse(name).expect("a version");
        let all = ["SCRAM-SHA-256=[name=a,password=x]", "SCRAM-SHA-512=[name=b,password=y]"];
        let mut drawn = 0u8;
        let mut salts = || {
            drawn += 1;
            vec![drawn; 16]
        };
        let records = credentials(all.into_iter(), version("3.5-IV2"), &mut salts).unwrap();
        assert_eq!(records.len(), 2);
        assert_ne!(records[0], records[1]);
        let refused = credentials(all.into_iter(), version("3.5-IV1"), &mut salts).unwrap_err();
        assert_eq!(refused.to_string(), "SCRAM is only supported in metadata.version 3.5-IV2 or later.");
        assert_eq!(credentials([].into_iter(), version("3.5-IV1"), &mut salts).unwrap(), []);
        assert_eq!(drawn, 4, "a salt for each");
    }

    fn read(argument: &str) -> Result<(String, i8, i32, Vec<u8>), String> {
        match record(argument, vec![7; 16]).map_err(|error| error.to_string())? {
            MetadataRecord::UserScramCredential(record) => {
                Ok((record.name.to_string(), record.mechanism, record.iterations, record.salt.to_vec()))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_forms_of_kafkas_tool_are_read() {
        let alice =
            |mechanism, iterations, salt: Vec<u8>| Ok(("alice".to_owned(), mechanism, iterations, salt));
        assert_eq!(read("SCRAM-SHA-256=[name=alice,password=a=b]"), alice(1, 4096, vec![7; 16]));
        assert_eq!(
            read(r#" SCRAM-SHA-512=[name="alice",iterations=8192,password="x",salt="AQID"] "#),
            alice(2, 8192, vec![1, 2, 3])
        );
        let salted = STANDARD.encode([9; 32]);
        assert_eq!(
            read(&format!("SCRAM-SHA-256=[name=alice,salt=AQID,saltedpassword={salted}]")),
            alice(1, 4096, vec![1, 2, 3])
        );
    }

    #[test]
    fn same_password_and_salt_give_the_same_keys_in_both_forms() {
        let salted = Mechanism::Sha256.salted_password(&Secret::from("secret"), &[1, 2, 3], 4096);
        let salted = STANDARD.encode(salted.bytes());
        let one = record("SCRAM-SHA-256=[name=a,salt=AQID,password=secret]", Vec::new()).unwrap();
        let other = format!("SCRAM-SHA-256=[name=a,salt=AQID,saltedpassword={salted}]");
        assert_eq!(one, record(&other, Vec::new()).unwrap());
    }

    #[test]
    fn argument_that_is_wrong_is_refused_without_its_password() {
        for (argument, why) in [
            ("SCRAM-SHA-256", "expected MECHANISM="),
            ("SCRAM-SHA-1=[name=a,password=hunter2]", "SCRAM-SHA-1 is not supported"),
            ("SCRAM-SHA-256=name=a,password=hunter2", "start with ["),
            ("SCRAM-SHA-256=[name=a,password=hunter2", "end with ]"),
            ("SCRAM-SHA-256=[password=hunter2]", "supply 'name'"),
            ("SCRAM-SHA-256=[name=a,password=]", "the password is empty"),
            ("SCRAM-SHA-256=[name=a]", "one of 'password' or 'saltedpassword'"),
            ("SCRAM-SHA-256=[name=a,saltedpassword=AQID]", "'salt' with 'saltedpassword'"),
            ("SCRAM-SHA-256=[name=a,salt=!,password=hunter2]", "decode the given salt"),
            ("SCRAM-SHA-256=[name=a,salt=AQID,saltedpassword=AQID]", "has 3 bytes: expected 32"),
            ("SCRAM-SHA-256=[name=a,password=hunter2,iterations=4095]", ">= 4096"),
            ("SCRAM-SHA-256=[name=a,password=hunter2,iterations=16385]", "<= 16384"),
            ("SCRAM-SHA-256=[name=a,password=hunter2,iterations=x]", "parse iterations"),
            ("SCRAM-SHA-256=[name=a,password=hunter2,other=1]", "Unknown SCRAM configurations: other"),
            ("SCRAM-SHA-256=[name=a,hunter2]", "No equals sign"),
        ] {
            let error = read(argument).unwrap_err();
            assert!(error.contains(why) && !error.contains("hunter2"), "{argument}: {error}");
        }
    }
}
