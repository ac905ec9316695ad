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

#[test]
fn queue_manager_is_a_peer_where_its_protocol_is_asked_for_by_name() {
    let more = "mq.protocol=experimental\nmq.channel.name=APP\nmq.queue.manager=QM1\nmq.user.name=u\nmq.password=p\n\
                mq.backout.queue=BACK\nmq.message.receive.timeout=9\n";
    let config = Config::parse(&format!("{SOURCE}{more}")).expect("read");
    let mq = config.peer.mq.as_ref().expect("a queue manager");
    assert_eq!((&*mq.channel, &*mq.queue_manager), ("APP", "QM1"));
    assert_eq!(mq.user, Some(("u".to_owned(), barnabas_mq::Password("p".to_owned()))));
    assert_eq!((mq.backout_queue.as_deref(), config.peer.message_bytes_max), (Some("BACK"), 4 << 20));
    assert_eq!(config.peer.addresses, ["h1:5672", "h2:5673"]);
    assert_eq!(config.remarks.len(), 1, "{:?}", config.remarks);
    assert!(config.remarks[0].starts_with("mq.message.receive.timeout: the bridge waits"));
    for (lines, why) in [
        ("mq.protocol=experimental", "mq.channel.name is missing"),
        ("mq.protocol=fap", "experimental for IBM MQ's client channels"),
        ("mq.protocol=experimental\nmq.channel.name=A.NAME.OF.21.LETTERS_", "at most 20 letters"),
        ("mq.protocol=experimental\nmq.channel.name=A\nmq.ccdt.url=x", "mq.connection.name.list and"),
        ("mq.protocol=experimental\nmq.channel.name=A\nmq.message.mqmd.write=true", "JMS's fields"),
    ] {
        let error = wrong(&format!("{SOURCE}{lines}\n"));
        assert!(error.contains(why), "{lines}: {error}");
    }
    assert!(Config::parse(&format!("{SOURCE}mq.protocol=amqp\n")).expect("read").peer.mq.is_none());
}

#[test]
fn examples_of_the_documents_are_read_without_a_remark() {
    let page = include_str!("../../../../docs/QUEUES.md");
    let blocks = page.split("```properties\n").skip(1).filter_map(|rest| rest.split("```").next());
    let files: Vec<_> = blocks.filter(|block| block.contains("connector.class=")).collect();
    assert_eq!(files.len(), 3, "AMQP's source and sink, and a source of MQ");
    for file in files {
        let config = Config::parse(file).expect(file);
        assert_eq!(config.remarks, Vec::<String>::new(), "{file}");
        assert_eq!(config.peer.mq.is_some(), file.contains("mq.protocol=experimental"));
    }
}
