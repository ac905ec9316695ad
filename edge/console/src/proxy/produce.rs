//! `POST /topics/{topic}` and `…/partitions/{partition}`: records in, where each is stored out.
//!
//! A record that is refused has an error of its own in the answer, as Confluent's reference says: 1 for one that stays,
//! 2 for one that may pass. Where the authorizer refuses, the whole answer is 403.

use super::media::{self, Format};
use super::{embed, topics};
use crate::http::call::{Answer, Call, Fields};
use crate::http::problem::Problem;
use crate::kafka::records::produce::{self, NewRecord, Stored};
use crate::v3::timestamps;
use bytes::Bytes;
use hyper::StatusCode;
use serde_json::{Value, json};

/// What goes into one batch, roughly: less than the broker's default limit of a batch.
const GROUP_BYTES_MAX: usize = 512 * 1024;
const BODY: &[&str] = &["records", "key_schema", "key_schema_id", "value_schema", "value_schema_id"];
/// The last two are Strimzi's.
const RECORD: &[&str] = &["partition", "key", "value", "headers", "timestamp"];
const NO_KEY_SCHEMA: u32 = 42_201;
const NO_VALUE_SCHEMA: u32 = 42_202;

pub async fn to_topic(call: &mut Call) -> Result<Answer, Problem> {
    produce(call, None).await
}

pub async fn to_partition(call: &mut Call) -> Result<Answer, Problem> {
    let index = call.at.number("partition")?;
    produce(call, Some(index)).await
}

async fn produce(call: &mut Call, partition: Option<i32>) -> Result<Answer, Problem> {
    let format = media::given(&call.headers)?;
    let is_async = is_async(call.at.query("async"))?;
    let name = call.at.param("topic").to_owned();
    let mut topic = topics::found(&mut call.cluster, &name).await?;
    if let Some(index) = partition {
        topics::partition_of(&topic, index)?;
    }
    let fields = call.fields_of_v2(BODY)?;
    let rows = rows(&fields)?;
    if format.needs_schemas() {
        return Err(schemas(format, &fields, &rows));
    }
    let records: Vec<NewRecord> =
        rows.iter().map(|row| record(row, format, partition)).collect::<Result<_, _>>()?;
    let mut outcomes = Vec::with_capacity(records.len());
    for group in groups(&records) {
        outcomes.extend(produce::deliver(&mut call.cluster, &mut topic, group).await);
    }
    let is_denied = |outcome: &&Result<Stored, Problem>| {
        outcome.as_ref().is_err_and(|problem| problem.status == StatusCode::FORBIDDEN)
    };
    if let Some(Err(denied)) = outcomes.iter().find(is_denied) {
        return Err(denied.clone());
    }
    if is_async {
        // Stored all the same: a record that was not is an error.
        let trouble = outcomes.into_iter().find_map(Result::err);
        return trouble.map_or(Ok(Answer::nothing()), Err);
    }
    let offsets: Vec<Value> = outcomes.iter().map(report).collect();
    let document = json!({ "offsets": offsets, "key_schema_id": null, "value_schema_id": null });
    media::answer(&call.headers, &document)
}

/// Strimzi's: whether offsets are not asked for.
fn is_async(word: Option<&str>) -> Result<bool, Problem> {
    match word {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(word) => Err(Problem::bad(format!("async takes true or false, not '{}'", word.escape_debug()))),
    }
}

fn rows(fields: &Fields) -> Result<Vec<Fields>, Problem> {
    let rows = fields.objects("records")?;
    let is_record = |row: &Fields| row.has("key") || row.has("value");
    if rows.is_empty() || !rows.iter().all(is_record) {
        let detail = "records takes a list of at least one record, each with a key, a value or both";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    Ok(rows)
}

/// Why records with schemas are refused.
fn schemas(format: Format, fields: &Fields, rows: &[Fields]) -> Problem {
    let lacks = |part: &str| {
        let is_used = rows.iter().any(|row| row.raw(part).is_some());
        let is_given = ["schema", "schema_id"].iter().any(|it| fields.raw(&format!("{part}_{it}")).is_some());
        is_used && !is_given
    };
    let missing = |code, part: &str| {
        Problem::coded(
            code,
            format!(
                "Request includes {part}s and uses a format that requires schemas, but does not include the {part}_schema or {part}_schema_id fields"
            ),
        )
    };
    if lacks("key") {
        missing(NO_KEY_SCHEMA, "key")
    } else if lacks("value") {
        missing(NO_VALUE_SCHEMA, "value")
    } else {
        embed::no_registry(format)
    }
}

fn record(row: &Fields, format: Format, partition: Option<i32>) -> Result<NewRecord, Problem> {
    row.only_v2(RECORD)?;
    let own = row.number("partition")?;
    if own.is_some_and(|own: i32| own < 0) {
        return Err(Problem::bad("partition takes a number from 0 on"));
    }
    if partition.is_some() && own.is_some() && partition != own {
        return Err(Problem::bad("partition of a record is another than that in the path"));
    }
    let mut headers = Vec::new();
    for header in row.objects("headers")? {
        header.only_v2(&["key", "value"])?;
        headers
            .push((Bytes::from(header.needed_text("key")?), embed::read(Format::Binary, &header, "value")?));
    }
    Ok(NewRecord {
        partition: partition.or(own),
        key: embed::read(format, row, "key")?,
        value: embed::read(format, row, "value")?,
        headers,
        timestamp_ms: row.number("timestamp")?.unwrap_or_else(timestamps::now_ms),
    })
}

/// Runs of records that go into a batch together.
fn groups(records: &[NewRecord]) -> impl Iterator<Item = &[NewRecord]> {
    let size = |record: &NewRecord| {
        let of = |part: &Option<Bytes>| part.as_ref().map_or(0, Bytes::len);
        of(&record.key) + of(&record.value)
    };
    let mut bytes = 0;
    records.chunk_by(move |one, next| {
        bytes += size(one);
        let is_full = bytes + size(next) > GROUP_BYTES_MAX;
        if is_full {
            bytes = 0;
        }
        !is_full
    })
}

fn report(outcome: &Result<Stored, Problem>) -> Value {
    match outcome {
        Ok(stored) => {
            json!({ "partition": stored.partition, "offset": stored.offset, "error_code": null, "error": null })
        }
        Err(problem) => {
            let may_pass = problem.kafka.is_none_or(|code| code.is_retriable());
            let code = if may_pass { 2 } else { 1 };
            json!({ "partition": null, "offset": null, "error_code": code, "error": problem.detail })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::ErrorCode;

    fn read(text: &str, format: Format, partition: Option<i32>) -> Result<Vec<NewRecord>, u32> {
        let read = || {
            let fields = Fields::read(text.as_bytes())?;
            let rows = rows(&fields)?;
            if format.needs_schemas() {
                return Err(schemas(format, &fields, &rows));
            }
            rows.iter().map(|row| record(row, format, partition)).collect()
        };
        read().map_err(|problem: Problem| problem.confluent_code())
    }

    #[test]
    fn records_are_read_with_all_that_they_have() {
        let text = r#"{"records":[{"key":"a","value":{"n":1e400},"partition":3,"timestamp":7,
            "headers":[{"key":"h","value":"AQ=="},{"key":"none","value":null}]},{"value":null}]}"#;
        let records = read(text, Format::Json, None).expect("sound");
        assert_eq!(records[0].value.as_deref(), Some(&br#"{"n":1e400}"#[..]));
        assert_eq!((records[0].partition, records[0].timestamp_ms), (Some(3), 7));
        assert_eq!(records[0].headers[0].1.as_deref(), Some(&b"\x01"[..]));
        assert_eq!((records[0].headers[1].1.as_deref(), records[1].value.as_deref()), (None, None));
    }

    #[test]
    fn malformed_requests_have_confluents_codes() {
        for (text, format, code) in [
            (r#"{"records":[]}"#, Format::Json, 422),
            (r#"{"foo":"bar"}"#, Format::Json, 422),
            (r#"{"records":[{"valur":1}]}"#, Format::Json, 422),
            (r#"{"records":"a list"}"#, Format::Json, 400),
            (r#"{"records":["text"]}"#, Format::Json, 400),
            (r#"{"records":[{"value":"not base64"}]}"#, Format::Binary, 400),
            (r#"{"records":[{"value":1,"partition":-1}]}"#, Format::Json, 400),
            (r#"{"records":[{"value":1}]}"#, Format::Avro, 42_202),
            (r#"{"records":[{"key":1}]}"#, Format::Avro, 42_201),
            (r#"{"value_schema":"\"int\"","records":[{"value":1}]}"#, Format::Avro, 42_206),
            (r#"{"value_schema_id":1,"records":[{"value":1}]}"#, Format::Protobuf, 42_206),
            ("[]", Format::Json, 400),
        ] {
            assert_eq!(read(text, format, None).err(), Some(code), "{text}");
        }
        let elsewhere = r#"{"records":[{"value":1,"partition":1}]}"#;
        assert_eq!(read(elsewhere, Format::Json, Some(2)).err(), Some(400));
        assert_eq!(read(elsewhere, Format::Json, Some(1)).expect("sound")[0].partition, Some(1));
    }

    #[test]
    fn batches_stay_below_the_brokers_limit() {
        let of = |size: usize| NewRecord { value: Some(vec![0; size].into()), ..Default::default() };
        let records = [of(300_000), of(200_000), of(300_000), of(600_000), of(1), of(1)];
        let sizes: Vec<usize> = groups(&records).map(<[NewRecord]>::len).collect();
        assert_eq!(sizes, [2, 1, 1, 2]);
    }

    #[test]
    fn refused_record_says_whether_it_may_pass() {
        let code =
            |code: ErrorCode| report(&Err(Problem::refused("t-0", code.code(), None)))["error_code"].clone();
        assert_eq!(
            (code(ErrorCode::MessageTooLarge), code(ErrorCode::NotLeaderOrFollower)),
            (1.into(), 2.into())
        );
    }
}
