//! Quotas of users, clients and addresses.
//!
//! Source: Kafka `ConfigCommand.describeQuotaConfigs`, `alterQuotaConfigs`; KIP-546.

use super::change::Change;
use super::entities::{Entities, Kind};
use barnabas_base::Map;
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::alter_client_quotas_request::{EntityData, EntryData, OpData};
use barnabas_wire::messages::describe_client_quotas_request::ComponentData;
use barnabas_wire::messages::describe_client_quotas_response::EntryData as Told;
use barnabas_wire::messages::{AlterClientQuotasRequest, DescribeClientQuotasRequest};

/// How a component of the question matches: an entity by name, the default, or all that have a name.
const EXACT: i8 = 0;
const DEFAULT: i8 = 1;
const ANY: i8 = 2;

/// A line for each entity that has quotas.
pub async fn described(cluster: &mut Cluster, entities: &Entities) -> Result<Vec<String>, ClientError> {
    Ok(told(cluster, entities).await?.iter().map(line).collect())
}

async fn told(cluster: &mut Cluster, entities: &Entities) -> Result<Vec<Told>, ClientError> {
    let component = |(kind, name): (&Kind, Option<&str>)| ComponentData {
        entity_type: kind.quota.into(),
        match_type: match name {
            None => ANY,
            Some("") => DEFAULT,
            Some(_) => EXACT,
        },
        r#match: name.filter(|name| !name.is_empty()).map(Into::into),
        ..Default::default()
    };
    let components = entities.pairs().map(component).collect();
    let request = DescribeClientQuotasRequest { components, strict: true, ..Default::default() };
    let answer = cluster.ask_any(&request).await?;
    match answer.error_code {
        0 => Ok(answer.entries.unwrap_or_default()),
        code => Err(ClientError::refused("describing quotas", code, answer.error_message.as_deref())),
    }
}

fn line(told: &Told) -> String {
    let words = |(kind, words): (&str, &str)| {
        let found = told.entity.iter().find(|entity| *entity.entity_type == *kind)?;
        Some(match &found.entity_name {
            Some(name) => format!("{words} '{}'", &**name),
            None => format!("the default {words}"),
        })
    };
    let kinds = [("user", "user-principal"), ("client-id", "client-id"), ("ip", "ip")];
    let entity: Vec<String> = kinds.into_iter().filter_map(words).collect();
    let values = told.values.iter().map(|value| format!("{}={}", &*value.key, double(value.value)));
    let values: Vec<String> = values.collect();
    format!("Quota configs for {} are {}", entity.join(", "), values.join(", "))
}

/// A number as Java's `Double.toString` writes it.
fn double(value: f64) -> String {
    let (mantissa, exponent) = {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        (mantissa.to_owned(), exponent.parse::<i32>().unwrap_or(0))
    };
    let whole = |text: String| if text.contains('.') { text } else { text + ".0" };
    if value == 0.0 || (-3..7).contains(&exponent) {
        return whole(value.to_string());
    }
    format!("{}E{exponent}", whole(mantissa))
}

/// # Errors
/// The cluster's refusal; a key to remove that is not set; a value that is no number.
pub async fn alter(cluster: &mut Cluster, entities: &Entities, change: &Change) -> Result<(), ClientError> {
    let mut ops = Vec::new();
    for (key, value) in &change.set {
        let parsed = value.parse::<f64>();
        let value =
            parsed.map_err(|_| ClientError::Invalid(format!("{key} takes a number, not '{value}'")))?;
        ops.push(OpData { key: key.as_str().into(), value, ..Default::default() });
    }
    let known: Map<String, f64> = told(cluster, entities)
        .await?
        .iter()
        .flat_map(|told| &told.values)
        .map(|value| (value.key.to_string(), value.value))
        .collect();
    let unset: Vec<&str> =
        change.delete.iter().filter(|key| !known.contains_key(*key)).map(String::as_str).collect();
    if !unset.is_empty() {
        return Err(ClientError::Invalid(format!("--delete-config: not set: {}", unset.join(", "))));
    }
    let remove = |key: &String| OpData { key: key.as_str().into(), remove: true, ..Default::default() };
    ops.extend(change.delete.iter().map(remove));
    let entity = |(kind, name): (&Kind, Option<&str>)| EntityData {
        entity_type: kind.quota.into(),
        entity_name: name.filter(|name| !name.is_empty()).map(Into::into),
        ..Default::default()
    };
    let entry = EntryData { entity: entities.pairs().map(entity).collect(), ops, ..Default::default() };
    let request = AlterClientQuotasRequest { entries: vec![entry], ..Default::default() };
    for told in cluster.ask_any(&request).await?.entries {
        if told.error_code != 0 {
            return Err(ClientError::refused(
                "altering quotas",
                told.error_code,
                told.error_message.as_deref(),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::double;

    #[test]
    fn numbers_are_written_as_java_writes_them() {
        let written = [0.0, 1.0, 1024.0, 0.5, 9_999_999.0, 1e7, 12_345_678.0, 1e-4, 0.001, -2.5].map(double);
        assert_eq!(
            written,
            ["0.0", "1.0", "1024.0", "0.5", "9999999.0", "1.0E7", "1.2345678E7", "1.0E-4", "0.001", "-2.5"]
        );
    }
}
