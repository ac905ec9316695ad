//! Values of each type, references, and hostile bytes.

use super::Schema;

const MAX: usize = 10_000;

fn decoded(schema: &str, bytes: &[u8]) -> Result<String, String> {
    Schema::parse(&[], schema).expect("a schema").decode(bytes, MAX)
}

#[test]
fn each_type_is_shown() {
    for (schema, bytes, wanted) in [
        (r#""null""#, &[][..], "null"),
        (r#""boolean""#, &[1], "true"),
        (r#"{"type":"int"}"#, &[0x7f], "-64"),
        (r#""int""#, &[0x80, 0x01], "64"),
        (
            r#"{"type":"long","logicalType":"timestamp-millis"}"#,
            &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            "9223372036854775807",
        ),
        (r#""long""#, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], "-9223372036854775808"),
        (r#""float""#, &0.1_f32.to_le_bytes(), "0.1"),
        (r#""double""#, &1e300_f64.to_le_bytes(), "1e300"),
        (r#""double""#, &f64::NAN.to_le_bytes(), r#""NaN""#),
        (r#""float""#, &f32::NEG_INFINITY.to_le_bytes(), r#""-Infinity""#),
        (r#""bytes""#, &[4, 1, 255], r#""Af8=""#),
        (r#""string""#, &[6, b'a', b'"', b'\n'], r#""a\"\n""#),
        (r#"{"type":"fixed","name":"f","size":2}"#, &[1, 255], r#""Af8=""#),
        (r#"{"type":"enum","name":"e","symbols":["A","B"]}"#, &[2], r#""B""#),
        (r#"{"type":"array","items":"int"}"#, &[4, 2, 4, 1, 2, 6, 0], "[1,2,3]"),
        (r#"{"type":"map","values":"null"}"#, &[2, 2, b'k', 0], r#"{"k":null}"#),
        (r#"["null","string"]"#, &[2, 2, b'x'], r#""x""#),
        (r#"{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}"#, &[4, 0xfb, 0x1e], "-12.50"),
        (
            r#"{"type":"fixed","name":"f","size":3,"logicalType":"decimal","precision":5,"scale":3}"#,
            &[0, 0, 7],
            "0.007",
        ),
        (r#"{"type":"bytes","logicalType":"decimal","precision":9}"#, &[0], "0"),
    ] {
        assert_eq!(decoded(schema, bytes).as_deref(), Ok(wanted), "{schema}");
    }
}

const ORDER: &str = r#"{"type":"record","name":"Order","namespace":"shop","fields":[
    {"name":"id","type":"long","doc":"x"},
    {"name":"state","type":{"type":"enum","name":"State","symbols":["OPEN","PAID"]},"default":"OPEN"},
    {"name":"before","type":["null","State"]},
    {"name":"next","type":["null","shop.Order"]}]}"#;

#[test]
fn names_are_found_again_and_types_may_hold_themselves() {
    assert_eq!(
        decoded(ORDER, &[14, 2, 2, 0, 2, 16, 0, 0, 0]).as_deref(),
        Ok(
            r#"{"id":7,"state":"PAID","before":"OPEN","next":{"id":8,"state":"OPEN","before":null,"next":null}}"#
        )
    );
    let line =
        r#"{"type":"record","name":"Line","namespace":"shop","fields":[{"name":"of","type":"Order"}]}"#;
    let schema = Schema::parse(&[ORDER.to_owned()], line).expect("the reference has it");
    assert_eq!(
        schema.decode(&[14, 0, 0, 0], MAX).as_deref(),
        Ok(r#"{"of":{"id":7,"state":"OPEN","before":null,"next":null}}"#)
    );
    let missing = Schema::parse(&[], line).expect_err("no reference");
    assert_eq!(missing, "the schema names \"Order\", which it does not have");
}

#[test]
fn what_is_no_schema_is_refused_with_the_reason() {
    let deep = format!("{}\"int\"{}", "[".repeat(200), "]".repeat(200));
    for bad in [
        "",
        "{",
        "7",
        "{}",
        r#"{"type":"record","name":"r"}"#,
        r#"{"type":"map"}"#,
        r#""x""#,
        r#"{"type":"fixed","name":"f","size":-1}"#,
        &deep,
    ] {
        assert!(Schema::parse(&[], bad).is_err(), "{bad}");
    }
}

#[test]
fn what_is_no_value_is_refused_with_the_reason() {
    for (schema, bytes, why) in [
        (r#""int""#, &[][..], "1 bytes are expected at byte 0, and 0 are left"),
        (r#""int""#, &[2, 0], "1 bytes follow the value"),
        (r#""int""#, &[0x80, 0x80, 0x80, 0x80, 0x20], "an int is 4294967296"),
        (r#""long""#, &[0xff; 11], "a number has more than 64 bits at byte 10"),
        (r#""string""#, &[1], "a length is -1"),
        (r#""string""#, &[2, 0xff], "a string is no UTF-8"),
        (r#""boolean""#, &[2], "a boolean is 2"),
        (r#"["null"]"#, &[4], "a union has no branch 2"),
        (r#"{"type":"enum","name":"e","symbols":[]}"#, &[0], "an enum has no symbol 0"),
    ] {
        assert_eq!(decoded(schema, bytes), Err(why.to_owned()), "{schema}");
    }
}

/// Elements without bytes, types within themselves: neither memory nor stack follows what the bytes say.
#[test]
fn hostile_values_end() {
    let many = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(decoded(r#"{"type":"array","items":"null"}"#, &many), Err(crate::TOO_LONG.to_owned()));
    let nothing = r#"{"type":"array","items":{"type":"record","name":"r","fields":[]}}"#;
    assert_eq!(decoded(nothing, &many), Err(crate::TOO_LONG.to_owned()));
    let endless = r#"{"type":"record","name":"r","fields":[{"name":"r","type":"r"}]}"#;
    assert_eq!(decoded(endless, &[]), Err("it is nested more than 64 levels".to_owned()));
    let list = r#"{"type":"record","name":"r","fields":[{"name":"r","type":{"type":"array","items":"r"}}]}"#;
    assert!(decoded(list, &[2; 5000]).expect_err("too deep").contains("64 levels"));
    let mut state = 1_u32;
    for _ in 0..20_000 {
        let mut byte = || {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (state >> 16) as u8
        };
        let bytes: Vec<u8> = (0..24).map(|_| byte()).collect();
        if let Ok(text) = decoded(ORDER, &bytes) {
            serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
        }
    }
}
