use std::path::Path;

use super::schema::{Kind, Range, Type, parse};
use super::{generate, names};

const SCHEMA: &str = "\
-- Asks for things.
api 7 Things on broker controller

-- Which things.
request ThingsRequest 0-3 flexible 2+ top unstable
    Name: string?1+ 0-2 = null ignorable key as topicName -- What it is called.
    Count: int32 1+ = -1 tag 4 since 2 -- How many.
    Parts: []Part? 0+ -- Its parts.
        Id: Id 0+ -- Which part.
    struct Id 0+
        High: int64 0+ -- The high half.
";

fn parsed(text: &str) -> Result<super::schema::File, String> {
    parse("api", Path::new("k07_things.msg"), text)
}

#[test]
fn the_notation_is_read_as_it_is_meant() {
    let file = parsed(SCHEMA).unwrap();
    let api = file.api.unwrap();
    assert_eq!((api.key, api.name.as_str(), api.meaning.as_str()), (7, "Things", "Asks for things."));
    assert_eq!(api.listeners, ["broker", "controller"]);
    let message = &file.messages[0];
    assert_eq!((message.kind, message.name.as_str()), (Kind::Request, "ThingsRequest"));
    assert_eq!((message.versions, message.flexible), (Range { min: 0, max: 3 }, Range::parse("2+")));
    assert!(message.top_unstable);
    let [name, count, parts] = message.fields.as_slice() else { panic!("three fields") };
    assert_eq!((&name.ty, name.versions.to_string().as_str()), (&Type::String, "0-2"));
    assert_eq!((name.nullable, name.default.as_deref()), (Range::parse("1+"), Some("null")));
    assert!(name.ignorable && !count.ignorable);
    assert_eq!(name.meaning, "What it is called.");
    assert_eq!((count.tag, count.tagged), (Some(4), Range::parse("2+")));
    assert_eq!(parts.nullable, Some(parts.versions));
    assert_eq!(parts.fields[0].ty.struct_name(), Some("Id"));
    assert_eq!(message.structs[0].name, "Id");
}

#[test]
fn secret_field_is_not_derived_into_debug() {
    let file = parsed(&SCHEMA.replace("High: int64 0+", "High: int64 0+ secret")).unwrap();
    let files = generate(&[file]).unwrap();
    let text: String = files.into_values().collect();
    assert!(text.contains("#[derive(Clone, PartialEq, Default)]\npub struct Id"), "{text}");
    assert!(text.contains("\"high\", &Secret(&self.high)"), "{text}");
    assert!(text.contains("#[derive(Debug, Clone, PartialEq)]\npub struct ThingsRequest"), "{text}");
}

#[test]
fn schema_error_names_its_line() {
    let error = |from: &str, to: &str| parsed(&SCHEMA.replace(from, to)).unwrap_err();
    assert_eq!(error("ignorable", "ignored"), "k07_things.msg: line 6: ignored is no word of a field");
    assert_eq!(error("int32 1+", "int32 x+"), "k07_things.msg: line 7: x+ is no version range");
    assert_eq!(
        error("        Id: Id", "            Id: Id"),
        "k07_things.msg: line 9: indented 3 deep instead of 2"
    );
    assert_eq!(error("api 7", "api seven"), "k07_things.msg:2: seven is no key");
}

#[test]
fn a_schema_that_contains_itself_is_refused() {
    let file = parsed(&SCHEMA.replace("High: int64 0+", "High: Id 0+")).unwrap();
    assert_eq!(generate(&[file]).unwrap_err(), "k07_things.msg: ThingsRequest contains itself");
}

#[test]
fn names_in_rusts_spelling() {
    for (kafka, rust) in [
        ("TransactionalId", "transactional_id"),
        ("LogAppendTimeMs", "log_append_time_ms"),
        ("KRaftVersion", "kraft_version"),
        ("topicId", "topic_id"),
        ("SHA256Sum", "sha256_sum"),
    ] {
        assert_eq!(names::snake(kafka), rust);
    }
    assert_eq!(names::field("Type"), "r#type");
}

#[test]
fn what_is_committed_is_what_the_schema_says() {
    assert_eq!(super::main(true), Ok(()));
}
