use super::*;
use crate::testing::{Fixture, carried, versions};
use crate::{AnswerRoom, Unlimited};
use barnabas_wire::messages::ClientQuotaRecord;
use barnabas_wire::messages::client_quota_record::EntityData as RecordEntity;

fn fixture() -> Fixture {
    let record = |parts: &[(&str, Option<&str>)], key: &str, value| {
        let part = |(kind, name): &(&str, Option<&str>)| RecordEntity {
            entity_type: (*kind).into(),
            entity_name: name.map(Into::into),
            ..RecordEntity::default()
        };
        let entity = parts.iter().map(part).collect();
        ClientQuotaRecord { entity, key: key.into(), value, ..ClientQuotaRecord::default() }.into()
    };
    let mut fixture = Fixture::new();
    fixture.add(&[
        record(&[("user", Some("alice"))], "producer_byte_rate", 1.0),
        record(&[("user", Some("alice"))], "consumer_byte_rate", 2.0),
        record(&[("user", Some("alice")), ("client-id", None)], "request_percentage", 3.5),
        record(&[("user", None)], "producer_byte_rate", 4.0),
        record(&[("client-id", Some("c"))], "producer_byte_rate", 5.0),
        record(&[("ip", Some("10.0.0.1"))], "connection_creation_rate", 6.0),
    ]);
    fixture
}

/// `kind=name`, `kind=` for the default, `kind` for any.
fn component(text: &str) -> ComponentData {
    let (kind, match_type, r#match) = match text.split_once('=') {
        Some((kind, "")) => (kind, 1, None),
        Some((kind, name)) => (kind, 0, Some(name.into())),
        None => (text, 2, None),
    };
    ComponentData { entity_type: kind.into(), match_type, r#match, ..ComponentData::default() }
}

fn asked(components: &[&str], strict: bool) -> DescribeClientQuotasRequest {
    let components = components.iter().map(|text| component(text)).collect();
    DescribeClientQuotasRequest { components, strict, ..DescribeClientQuotasRequest::default() }
}

fn listed(fixture: &Fixture, request: &DescribeClientQuotasRequest) -> String {
    let mut lists: Vec<String> = versions::<DescribeClientQuotasResponse>()
        .map(|version| {
            let response = carried(answer(request, &fixture.ctx()), version);
            let Some(entries) = response.entries else {
                return format!("{} {}", response.error_code, response.error_message.unwrap_or_default());
            };
            let part = |part: &EntityData| {
                format!("{}={}", part.entity_type, part.entity_name.as_deref().unwrap_or_default())
            };
            let entry = |entry: &EntryData| {
                let entity: Vec<String> = entry.entity.iter().map(part).collect();
                let values: Vec<String> = entry.values.iter().map(|value| value.value.to_string()).collect();
                format!("{}: {}", entity.join(" "), values.join(" "))
            };
            entries.iter().map(entry).collect::<Vec<_>>().join("; ")
        })
        .collect();
    let last = lists.pop().unwrap();
    assert!(lists.iter().all(|list| *list == last), "{lists:?} {last}");
    last
}

#[test]
fn filter_matches_entities_as_kafka_does() {
    let fixture = fixture();
    for (components, strict, expected) in [
        (&["user=alice"][..], true, "user=alice: 2 1"),
        (&["user=alice"][..], false, "client-id= user=alice: 3.5; user=alice: 2 1"),
        (&["user="][..], false, "user=: 4"),
        (&["user", "client-id"][..], true, "client-id= user=alice: 3.5"),
        (&["client-id"][..], true, "client-id=c: 5"),
        (&["ip"][..], true, "ip=10.0.0.1: 6"),
        (&["ip=10.0.0.2"][..], false, ""),
        (&[][..], true, ""),
    ] {
        assert_eq!(listed(&fixture, &asked(components, strict)), expected, "{components:?} {strict}");
    }
    assert_eq!(listed(&fixture, &asked(&[], false)).split(';').count(), 5);
}

#[test]
fn filter_that_means_nothing_is_refused_whole() {
    let fixture = fixture();
    let refused = |components: &[&str]| {
        let text = listed(&fixture, &asked(components, false));
        text.split_whitespace().next().unwrap().parse::<i16>().unwrap()
    };
    assert_eq!(refused(&[""]), 42);
    assert_eq!(refused(&["user=a", "user=b"]), 42);
    assert_eq!(refused(&["team=a"]), 35);
    assert_eq!(refused(&["ip=10.0.0.1", "user=a"]), 42);
    for (match_type, name) in [(0, None), (1, Some("a")), (2, Some("a")), (3, None)] {
        let mut request = asked(&["user"], false);
        request.components[0].match_type = match_type;
        request.components[0].r#match = name.map(Into::into);
        assert!(listed(&fixture, &request).starts_with("42 "), "{match_type} {name:?}");
    }
}

#[test]
fn an_answer_that_is_too_large_is_refused() {
    let mut fixture = fixture();
    fixture.room = Box::new(AnswerRoom::new(100, Unlimited));
    assert!(listed(&fixture, &asked(&[], false)).starts_with("42 "));
}
