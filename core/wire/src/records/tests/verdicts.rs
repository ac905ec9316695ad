//! Random batches under random rules: what Apache Kafka's `LogValidator` made of each, and what we make of it.
//!
//! The cases come from `lab/compat/golden/records/ValidatorVectors.java`, which says how they are written down. With
//! `record.validation=full` every verdict must be Kafka's; with `header`, those of headers that tell the truth.

use barnabas_base::{DurationMs, TimestampMs};
use bytes::Bytes;

use super::golden::{batch_lines, unhex};
use super::*;

const VERDICTS: &str = include_str!("../../../../../lab/compat/golden/records/verdicts.txt");

struct Case {
    said: &'static str,
    rules: Rules,
    bytes: Bytes,
    verdict: Vec<String>,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in VERDICTS.lines() {
        match line.strip_prefix("case ") {
            None => cases.last_mut().unwrap().verdict.push(line.trim_end().to_owned()),
            Some(said) => {
                let (rules, hex) = said.rsplit_once(' ').unwrap();
                let bytes = unhex(hex);
                cases.push(Case { said, rules: read_rules(rules), bytes, verdict: Vec::new() });
            }
        }
    }
    assert!(cases.len() > 500, "the verdicts are there");
    cases
}

fn read_rules(words: &str) -> Rules {
    let word =
        |key: &str| words.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('=')).unwrap();
    let number = |key| word(key).parse::<i64>().unwrap();
    Rules {
        produce_version: 2,
        origin: if word("origin") == "client" { BatchOrigin::Client } else { BatchOrigin::Coordinator },
        now: TimestampMs(NOW),
        timestamp_type: match word("type") {
            "create" => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        },
        timestamp_before_max: DurationMs(number("before")),
        timestamp_after_max: DurationMs(number("after")),
        record_bytes_max: number("record") as usize,
        compression: Codec::from_name(word("target")).map(Compression::of),
        is_compacted: word("compacted") == "true",
        ..Rules::default()
    }
}

fn verdict(bytes: &Bytes, rules: &Rules) -> Vec<String> {
    let validated = match validate_produce(bytes.clone(), rules) {
        Ok(validated) => validated.unwrap(),
        Err(refusal) => {
            let indexes: Vec<String> =
                refusal.record_errors.iter().map(|error| error.index.to_string()).collect();
            return vec![format!("refused {} {}", refusal.code, indexes.join(",")).trim_end().to_owned()];
        }
    };
    let header = *validated.batch.header();
    let attributes = header.attributes;
    let dated = match attributes.timestamp_type() {
        TimestampType::CreateTime => "create",
        TimestampType::LogAppendTime => "append",
    };
    let mut lines = vec![format!(
        "taken codec={} type={dated} max={} p={} e={} seq={} txn={} control={} offsets={}",
        attributes.codec().unwrap(),
        header.max_timestamp.0,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        attributes.is_transactional(),
        attributes.is_control(),
        header.next_offset()
    )];
    let records = batch_lines(&Batch::new(validated.batch.to_bytes()).unwrap());
    lines.extend(records.iter().map(|line| line.trim_end().to_owned()));
    lines
}

#[test]
fn seeing_every_record_we_judge_as_kafka_judges() {
    let mut differ = Vec::new();
    for case in cases() {
        let ours = verdict(&case.bytes, &Rules { validation: RecordValidation::Full, ..case.rules });
        if ours != case.verdict {
            differ.push(format!("{}\n  kafka {:?}\n  ours  {ours:?}", case.said, case.verdict));
        }
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn by_the_header_alone_we_judge_the_same_where_it_tells_the_truth() {
    let mut same = 0;
    for case in cases().into_iter().filter(|case| case.rules.origin == BatchOrigin::Client) {
        let ours = verdict(&case.bytes, &case.rules);
        if ours == case.verdict {
            same += 1;
            continue;
        }
        // What differs: a count or a newest timestamp that was believed.
        let header = BatchHeader::parse(&case.bytes).expect(case.said);
        let Ok(records) = Batch::new(case.bytes.clone()).and_then(|batch| batch.records()) else { continue };
        let read: Vec<_> = records.iter().collect();
        let newest = read.iter().flatten().map(|record| record.timestamp).max();
        let lies = read.iter().any(Result::is_err) || newest != Some(header.max_timestamp);
        assert!(lies, "{}\n  kafka {:?}\n  ours  {ours:?}", case.said, case.verdict);
    }
    assert!(same > 450, "{same}");
}
