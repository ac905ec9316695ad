//! What is read of a message, in which order, and what is skipped or refused.

use super::*;
use crate::series::tests::{attribute as pair, field, gauge, point, push, sum};

fn read_all(message: &[u8]) -> Result<Vec<Item<'_>>, Malformed> {
    let mut items = Vec::new();
    read(message, &mut |item| items.push(item))?;
    Ok(items)
}

fn number(name: &str, value: Value) -> Number<'_> {
    let (is_monotonic, temporality) = (false, Temporality::Unspecified);
    Number { name, is_monotonic, temporality, attributes: Attributes::new(), value }
}

#[test]
fn resource_comes_before_its_points() {
    let message = push(&[gauge("g", 1.5, &[("k", "v")]), sum("s", 2.0, 1), sum("t", 3.0, 2)]);
    let items = read_all(&message).expect("OTLP");
    let resource: Attributes<'_> = [("group.id", Attribute::Text("g"))].into_iter().collect();
    let labels: Attributes<'_> = [("k", Attribute::Text("v"))].into_iter().collect();
    let sum = |name, temporality, value| Number { is_monotonic: true, temporality, ..number(name, value) };
    assert_eq!(
        items,
        [
            Item::Resource(resource),
            Item::Number(Number { attributes: labels, ..number("g", Value::Double(1.5)) }),
            Item::Number(sum("s", Temporality::Delta, Value::Double(2.0))),
            Item::Number(sum("t", Temporality::Cumulative, Value::Double(3.0))),
        ]
    );
}

#[test]
fn fields_may_stand_in_any_order() {
    // The name behind the data, what is unknown between, an int point.
    let mut int = vec![6 << 3 | 1];
    int.extend_from_slice(&(-7i64).to_le_bytes());
    let metric = [field(5, &field(1, &int)), vec![15 << 3, 1], field(3, b"unit"), field(1, b"late")].concat();
    let message = field(1, &field(2, &field(2, &metric)));
    assert_eq!(read_all(&message), Ok(vec![Item::Number(number("late", Value::Int(-7)))]));
}

#[test]
fn attributes_have_four_kinds_and_others_are_skipped() {
    let with = |value: &[u8]| [field(1, b"k"), field(2, value)].concat();
    let double = [vec![4 << 3 | 1], 2.5f64.to_bits().to_le_bytes().to_vec()].concat();
    let array = field(5, &field(1, &field(1, b"x")));
    let pairs =
        [with(&[2 << 3, 1]), with(&[3 << 3, 9]), with(&double), with(&array), pair("k", "t"), field(1, b"k")];
    let all: Vec<u8> = pairs.iter().flat_map(|pair| field(1, pair)).collect();
    let values: Vec<Attribute<'_>> =
        attributes(&all, 1).expect("attributes").iter().map(|(_, value)| *value).collect();
    assert_eq!(
        values,
        [Attribute::Bool(true), Attribute::Int(9), Attribute::Double(2.5), Attribute::Text("t")]
    );
    let many: Vec<u8> = (0..100).flat_map(|_| field(1, &pair("k", "v"))).collect();
    assert_eq!(attributes(&many, 1).expect("attributes").len(), ATTRIBUTES_MAX);
}

#[test]
fn kinds_without_numbers_are_named() {
    let metrics: Vec<Vec<u8>> =
        (9..=11).map(|kind| field(2, &[field(1, b"h"), field(kind, &[])].concat())).collect();
    let message = field(1, &field(2, &metrics.concat()));
    assert_eq!(read_all(&message), Ok(vec![Item::OtherKind, Item::OtherKind, Item::OtherKind]));
}

#[test]
fn every_cut_message_is_refused_or_shorter() {
    let message = push(&[gauge("g", 1.5, &[("k", "v")]), sum("s", 2.0, 1)]);
    let whole = read_all(&message).expect("OTLP").len();
    for end in 1..message.len() {
        // The whole is one field, so that a part of it is none.
        assert_eq!(
            read_all(&message[..end]),
            Err(Malformed::Short),
            "cut at {end} of {}: {whole} items",
            message.len()
        );
    }
    assert_eq!(read_all(&[]), Ok(Vec::new()));
}

#[test]
fn name_that_is_not_utf8_is_refused() {
    let metric = [field(1, &[0xff]), field(5, &point(1.0, &[]))].concat();
    assert_eq!(read_all(&field(1, &field(2, &field(2, &metric)))), Err(Malformed::Text));
}
