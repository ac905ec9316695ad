//! What the words of `--reset-offsets` mean.

use super::{csv, moment, named_partitions};
use std::collections::BTreeMap;

#[test]
fn datetimes_are_read_as_kafka_reads_them() {
    for (word, ms) in [
        ("1970-01-01T00:00:00.000", 0),
        ("2024-02-29T12:30:45.678", 1_709_209_845_678),
        ("2024-02-29T12:30:45.678Z", 1_709_209_845_678),
        ("2024-02-29T13:30:45.678+01:00", 1_709_209_845_678),
        ("2024-02-29T13:30:45.678+0100", 1_709_209_845_678),
        ("2024-02-29T10:30:45.678-02", 1_709_209_845_678),
        ("1969-12-31T23:59:59.999", -1),
    ] {
        assert_eq!(moment::datetime(word).expect(word), ms, "{word}");
    }
    for word in [
        "",
        "2024-02-29",
        "2024-02-29T12:30:45",
        "2024-13-01T00:00:00.000",
        "24-01-01T00:00:00.000",
        "2024-01-01T24:00:00.000",
        "2024-01-01T00:00:00.000+1",
    ] {
        let refused = moment::datetime(word).expect_err(word).to_string();
        assert!(refused.starts_with("--to-datetime takes YYYY-MM-DDTHH:mm:SS.sss, not"), "{refused}");
    }
}

#[test]
fn durations_are_read_as_java_reads_them() {
    for (word, ms) in [
        ("PT30M", 1_800_000),
        ("P1D", 86_400_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt0s", 0),
        ("-PT1M", -60_000),
        ("PT-1M", -60_000),
    ] {
        assert_eq!(moment::duration(word).expect(word), ms, "{word}");
    }
    for word in ["", "P", "PT", "P1DT", "1D", "PT1X", "PT1M1H", "P1.5D"] {
        moment::duration(word).expect_err(word);
    }
}

#[test]
fn plans_are_read_with_and_without_groups() {
    let plan = |rows: &[(&str, i32, i64)]| -> super::Plan {
        rows.iter().map(|(topic, partition, offset)| (((*topic).to_owned(), *partition), *offset)).collect()
    };
    let of_one = csv::parse("orders,0,3\n\"a,b\", 2 ,5\n\n", &["g"]).expect("two lines");
    assert_eq!(of_one, BTreeMap::from([("g".to_owned(), plan(&[("orders", 0, 3), ("a,b", 2, 5)]))]));
    let of_several = csv::parse("\"g\",orders,1,4\nh,orders,1,2\n", &["g", "h"]).expect("two lines");
    assert_eq!(of_several.len(), 2);
    for (text, groups) in [
        ("orders,0", &["g"][..]),
        ("orders,x,1", &["g"]),
        ("orders,0,1", &["g", "h"]),
        ("\"orders,0,1", &["g"]),
    ] {
        csv::parse(text, groups).expect_err(text);
    }
    assert_eq!(csv::export(&of_one), ["\"a,b\",2,5", "orders,0,3"]);
    let long = plan(&[("a-topic-with-a-name-of-26", 0, 1), ("short.name-1_2", 0, 1)]);
    let plans = BTreeMap::from([("g".to_owned(), long), ("h".to_owned(), plan(&[("t", 3, 2)]))]);
    assert_eq!(
        csv::export(&plans),
        ["g,\"a-topic-with-a-name-of-26\",0,1", "g,short.name-1_2,0,1", "h,t,3,2"]
    );
}

#[test]
fn partitions_are_named_behind_a_colon() {
    assert_eq!(named_partitions("orders").expect("a topic"), None);
    let named = named_partitions("orders:0,2").expect("partitions");
    assert_eq!(named, Some(vec![("orders".to_owned(), 0), ("orders".to_owned(), 2)]));
    for word in ["orders:x", "orders:", "a:1:2"] {
        named_partitions(word).expect_err(word);
    }
}
