//! Files of IBM's connectors, and our own.

use super::*;

const SOURCE: &str = "name=n\nconnector.class=com.ibm.eventstreams.connect.mqsource.MQSourceConnector\ntopic=t\n\
                      bootstrap.servers=b:9092\nmq.connection.name.list=h1(5672), h2(5673)\nmq.queue=Q1\n";

fn wrong(text: &str) -> String {
    Config::parse(text).expect_err("refused").to_string()
}

#[test]
fn file_of_ibms_source_is_read_and_its_meaningless_keys_are_named() {
    let more = "tasks.max=1\nmq.queue.manager=QM1\nmq.channel.name=C\nmq.user.name=u\nmq.password=p\nmq.batch.size=99\n\
                mq.record.builder=com.ibm.eventstreams.connect.mqsource.builders.DefaultRecordBuilder\n\
                mq.message.body.jms=true\nmq.record.builder.key.header=JMSMessageID\nmq.tpyo=1\n\
                value.converter=org.apache.kafka.connect.converters.ByteArrayConverter\n";
    let config = Config::parse(&format!("{SOURCE}{more}")).expect("read");
    assert_eq!(config.peer.addresses, ["h1:5672", "h2:5673"]);
    assert_eq!(config.peer.login, Login::Plain { user: "u".to_owned(), password: "p".to_owned() });
    let Direction::Source(source) = &config.direction else { panic!("a sink") };
    assert_eq!((source.batch_max, source.rules.key, config.is_jms), (99, Some(KeyHeader::MessageId), true));
    let remarked = |key: &str| config.remarks.iter().any(|remark| remark.starts_with(key));
    assert!(
        ["tasks.max:", "mq.queue.manager:", "mq.channel.name:", "mq.tpyo: this key"]
            .into_iter()
            .all(remarked)
    );
    assert_eq!(config.remarks.len(), 4, "{:?}", config.remarks);
}

#[test]
fn what_cannot_be_had_is_refused_with_a_reason() {
    for (line, why) in [
        ("mq.connection.mode=bindings", "bindings mode needs"),
        ("mq.ccdt.url=file:x", "a CCDT describes"),
        ("mq.record.builder.json.schemas.enable=true", "no schemas"),
        ("topics=a", "the key of a source is topic"),
        ("mq.batch.size=0", "a number from 1 to 5000"),
        ("mq.record.builder=a.b.Mine", "DefaultRecordBuilder or JsonRecordBuilder"),
        ("value.converter=org.apache.kafka.connect.json.JsonConverter", "without schemas"),
        ("transforms=a", "no transforms"),
        ("amqp.sasl.mechanism=SCRAM-SHA-256", "PLAIN, ANONYMOUS"),
        ("mq.message.body.jms=yes", "true or false"),
    ] {
        let error = wrong(&format!("{SOURCE}{line}\n"));
        assert!(error.contains(why), "{line}: {error}");
    }
    assert!(Config::parse(&format!("{SOURCE}mq.connection.mode=client\n")).is_ok());
}

#[test]
fn sink_has_its_own_keys_and_defaults() {
    let base =
        "name=n\nconnector.class=sink\ntopics=a,b\nbootstrap.servers=b:1\namqp.url=amqp://h\nmq.queue=q\n";
    let config = Config::parse(base).expect("read");
    let Direction::Sink(sink) = &config.direction else { panic!("a source") };
    assert_eq!((&sink.topics[..], &*sink.group), (&["a".to_owned(), "b".to_owned()][..], "connect-n"));
    assert_eq!((sink.rules.durability, sink.duplicates), (Durability::Durable, Duplicates::Auto));
    assert_eq!(config.dead_letters.as_deref(), Some("n-dead-letters"));
    assert_eq!(config.commit_interval, Duration::from_millis(20));
    for (line, why) in [
        ("mq.persistent=maybe", "as_q_def"),
        ("mq.message.builder=ConverterMessageBuilder", "JsonMessageBuilder"),
    ] {
        assert!(wrong(&format!("{base}{line}")).contains(why));
    }
}

#[test]
fn urls_are_addresses_and_nothing_more() {
    assert_eq!(address_of("amqp://h").expect("read"), ("h:5672".to_owned(), false));
    assert_eq!(address_of("amqps://h/").expect("read"), ("h:5671".to_owned(), true));
    assert_eq!(address_of("amqp://[::1]:7").expect("read"), ("[::1]:7".to_owned(), false));
    for url in ["http://h", "amqp://", "amqp://u:p@h", "amqp://h/q"] {
        assert!(address_of(url).is_err(), "{url}");
    }
}

#[test]
fn missing_keys_are_named() {
    for key in ["name", "connector.class", "topic", "bootstrap.servers", "mq.queue"] {
        let text: String = SOURCE
            .lines()
            .filter(|line| !line.starts_with(&format!("{key}=")))
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(wrong(&text).contains(key), "{key}");
    }
}
