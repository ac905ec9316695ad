//! Which flags go together, and what they mean.

use super::{Job, Reset, flags, formatter, records_max};
use barnabas_base::Offset;
use barnabas_client::StartAt;

fn job(words: &str) -> Result<Job, String> {
    let words = format!("console-consumer --bootstrap-server h:1 {words}");
    let matches =
        clap::Command::new("console-consumer").args(flags()).try_get_matches_from(words.split_whitespace());
    Job::new(&matches.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    for (words, refusal) in [
        ("", "give exactly one of --topic and --include"),
        ("--topic t --include t", "give exactly one of --topic and --include"),
        ("--topic t --offset 1", "--offset needs --partition"),
        ("--include t --partition 1", "--partition cannot be used together with --include"),
        ("--topic t --partition 1 --group g", "--partition cannot be used together with --group"),
        (
            "--topic t --partition 1 --command-property group.id=g",
            "--partition cannot be used together with group.id",
        ),
        (
            "--topic t --partition 1 --offset 1 --from-beginning",
            "--from-beginning cannot be used together with --offset",
        ),
        (
            "--topic t --partition 1 --offset -1",
            "--offset takes earliest, latest or a number from 0 on, not '-1'. Example: --offset 42",
        ),
        ("--topic t --partition x", "--partition takes a number, not 'x'. Example: --partition 3"),
        (
            "--topic t --group g --command-property group.id=h",
            "two groups are given: --group g, and group.id=h among the configs",
        ),
        (
            "--topic t --from-beginning --command-property auto.offset.reset=latest",
            "--from-beginning contradicts auto.offset.reset: leave one of them out",
        ),
        (
            "--topic t --command-property auto.offset.reset=none",
            "auto.offset.reset=none needs a group that has committed offsets",
        ),
        (
            "--topic t --command-property auto.offset.reset=oldest",
            "auto.offset.reset takes earliest, latest or none, not 'oldest'",
        ),
        (
            "--topic t --isolation-level none",
            "the isolation level is read_committed or read_uncommitted, not 'none'",
        ),
        (
            "--topic t --command-property a=1 --consumer-property b=2",
            "--command-property cannot be used together with --consumer-property",
        ),
        (
            "--topic t --formatter-property a=1 --property b=2",
            "--formatter-property cannot be used together with --property",
        ),
    ] {
        assert_eq!(job(words).expect_err(words), refusal, "{words}");
    }
}

#[test]
fn deserializers_of_flags_stand_over_the_file_and_under_the_properties() {
    let file = std::env::temp_dir().join(format!("barnabas-formatter-{}", std::process::id()));
    std::fs::write(&file, "key.deserializer=a\nvalue.deserializer=b\nprint.key=true").expect("written");
    let words = format!(
        "--topic t --formatter-config {} --key-deserializer c --value-deserializer d --formatter-property value.deserializer=e",
        file.display()
    );
    let words = format!("console-consumer --bootstrap-server h:1 {words}");
    let command = clap::Command::new("console-consumer").args(flags());
    let matches = command.try_get_matches_from(words.split_whitespace()).expect("flags");
    let read = formatter(&matches, "formatter-property");
    std::fs::remove_file(&file).expect("removed");
    let read = read.expect("a file");
    let found = ["key.deserializer", "value.deserializer", "print.key"].map(|key| read.get(key));
    assert_eq!(found, [Some("c"), Some("e"), Some("true")]);
}

#[test]
fn flags_mean_what_they_mean_in_kafka() {
    let read = |words: &str| job(words).expect(words);
    assert_eq!(read("--topic t").start, StartAt::Latest);
    assert_eq!(read("--topic t --from-beginning").start, StartAt::Earliest);
    assert_eq!(read("--topic t --command-property auto.offset.reset=earliest").start, StartAt::Earliest);
    assert_eq!(read("--topic t --partition 1 --offset 7").start, StartAt::Offset(Offset(7)));
    assert_eq!(read("--topic t --partition 1 --offset Earliest").start, StartAt::Earliest);
    let grouped = read("--topic t --group g --command-property auto.offset.reset=none");
    assert_eq!((grouped.reset, grouped.settings.consumer.reset), (Reset::None, None));
    assert_eq!(read("--topic t --timeout-ms -1").silence_max, None);
    let committed = read("--topic t --isolation-level read_committed").settings;
    assert!(committed.consumer.read_committed && committed.auto_create);
    let named =
        read("--topic t --command-property client.id=me --command-property allow.auto.create.topics=false");
    assert_eq!((named.cluster.client_id.as_str(), named.settings.auto_create), ("me", false));
    assert_eq!(
        [Some(-1), Some(-2), Some(0), Some(5), None].map(records_max),
        [None, Some(0), Some(0), Some(5), None]
    );
}
