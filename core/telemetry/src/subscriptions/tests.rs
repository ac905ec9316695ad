//! What subscriptions ask of clients, and when that changes.

use barnabas_metadata::{Delta, Image};
use barnabas_wire::messages::ConfigRecord;
use barnabas_wire::{MetadataRecord, Str};

use super::*;
use crate::Software;

/// The image with `keys` of a subscription set, or unset where there is no value.
pub(crate) fn with(image: Image, name: &str, keys: &[(&str, Option<&str>)]) -> Image {
    let mut delta = Delta::new(image);
    for (key, value) in keys {
        let record = ConfigRecord {
            resource_type: ResourceType::ClientMetrics.code(),
            resource_name: Str::from(name),
            name: Str::from(*key),
            value: value.map(Str::from),
            ..ConfigRecord::default()
        };
        delta.replay(&MetadataRecord::Config(record)).expect("a record of configurations");
    }
    delta.apply().0
}

fn client(software: &str, version: &str) -> Client {
    let software = Software::new(software, version);
    Client::new(Uuid([3; 16]), Some("app"), software, Text::from("127.0.0.1"), 4711)
}

fn asked(subscriptions: &Subscriptions, client: &Client) -> (String, i32) {
    let offer = subscriptions.of(client);
    (offer.metrics.join(" "), offer.push_interval_ms)
}

#[test]
fn matching_subscriptions_join_at_the_shortest_interval() {
    let image = with(
        Image::default(),
        "a",
        &[("metrics", Some("org.b, org.a")), ("interval.ms", Some("5000")), ("match", Some("client_id=app"))],
    );
    let image = with(image, "b", &[("metrics", Some("org.a,org.c"))]);
    let image = with(image, "c", &[("metrics", Some("*")), ("match", Some("client_id=other"))]);
    let mut subscriptions = Subscriptions::default();
    assert_eq!(subscriptions.follow(&image.configs), []);
    let java = client("apache-kafka-java", "4.3.1");
    assert_eq!(asked(&subscriptions, &java), ("org.a org.b org.c".to_owned(), 5000));
    // All metrics leave no others.
    let image = with(image, "c", &[("match", None)]);
    subscriptions.follow(&image.configs);
    assert_eq!(asked(&subscriptions, &java), ("*".to_owned(), 5000));
}

#[test]
fn client_without_subscription_is_asked_for_nothing() {
    let subscriptions = Subscriptions::default();
    assert_eq!(asked(&subscriptions, &client("apache-kafka-java", "4.3.1")), (String::new(), 300_000));
}

#[test]
fn librdkafka_2_5_0_is_never_asked() {
    let image = with(Image::default(), "all", &[("metrics", Some("org.a")), ("interval.ms", Some("1000"))]);
    let mut subscriptions = Subscriptions::default();
    subscriptions.follow(&image.configs);
    assert_eq!(asked(&subscriptions, &client("librdkafka", "2.5.0")), (String::new(), 300_000));
    assert_eq!(asked(&subscriptions, &client("librdkafka", "2.5.3")), ("org.a".to_owned(), 1000));
}

#[test]
fn version_rises_with_each_change_and_with_nothing_else() {
    let mut subscriptions = Subscriptions::default();
    let mut follow = |image: &Image| {
        subscriptions.follow(&image.configs);
        subscriptions.version()
    };
    let one = with(Image::default(), "a", &[("metrics", Some("x"))]);
    assert_eq!(follow(&Image::default()), 0);
    assert_eq!(follow(&one), 1);
    assert_eq!(follow(&one), 1);
    // The same value once more, in a new image.
    let same = with(one.clone(), "a", &[("metrics", Some("x"))]);
    assert_eq!(follow(&same), 1);
    let two = with(one, "b", &[("metrics", Some("y"))]);
    assert_eq!(follow(&two), 2);
    let gone = with(two, "a", &[("metrics", None)]);
    assert_eq!(follow(&gone), 3);
    assert_eq!(asked(&subscriptions, &client("j", "1")).0, "y");
}

#[test]
fn unusable_match_is_named_once_and_matches_no_client() {
    let image = with(Image::default(), "a", &[("metrics", Some("x")), ("match", Some("client_id=(?!a)b"))]);
    let mut subscriptions = Subscriptions::default();
    let unusable = subscriptions.follow(&image.configs);
    assert_eq!(unusable.len(), 1);
    assert_eq!(&*unusable[0].subscription, "a");
    assert!(
        unusable[0].why.starts_with("Illegal client matching pattern: client_id=(?!a)b ("),
        "{unusable:?}"
    );
    assert_eq!(subscriptions.follow(&image.configs), []);
    assert_eq!(asked(&subscriptions, &client("j", "1")).0, "");
}

/// `[*]1000` is the text that Kafka takes the CRC-32C of; it hashes the id as Java does.
#[test]
fn subscription_id_is_kafkas() {
    let id = Uuid([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 4]);
    assert_eq!(java_hash(id), 7);
    let of = |metrics: &[Text], interval| subscription_id(metrics, interval, Uuid::ZERO);
    assert_eq!(of(&[Text::from("*")], 1000), crc32c(b"[*]1000").cast_signed());
    assert_eq!(of(&[], 300_000), crc32c(b"[]300000").cast_signed());
    assert_eq!(subscription_id(&[], 300_000, id), crc32c(b"[]300000").cast_signed() ^ 7);
    assert_ne!(of(&[], 300_000), of(&[], 300_001));
}
