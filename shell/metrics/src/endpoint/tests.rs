use super::*;

fn status(head: &str) -> &'static str {
    parse(head.as_bytes()).err().map_or("200", |refused| &refused.status[..3])
}

#[test]
fn one_path_and_two_methods() {
    for (head, expected) in [
        ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
        ("HEAD /metrics HTTP/1.0\r\n\r\n", "200"),
        ("GET /metrics HTTP/1.1\n\n", "200"),
        ("GET /metrics?x=y HTTP/1.1\r\n\r\n", "200"),
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("GET /metrics/ HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("GET /metrics HTTP/2\r\n\r\n", "400"),
        ("GET /metrics\r\n\r\n", "400"),
        ("GET  /metrics HTTP/1.1\r\n\r\n", "400"),
        ("\r\n\r\n", "400"),
        ("", "400"),
    ] {
        assert_eq!(status(head), expected, "{head:?}");
    }
    assert_eq!(parse(b"\xff\xfe /metrics HTTP/1.1\r\n\r\n").expect_err("no text").status, "400 Bad Request");
}

#[test]
fn a_topic_may_be_named() {
    let asked = parse(b"GET /metrics?a=b&topic=orders HTTP/1.1\r\n\r\n").expect("sound");
    assert_eq!(asked.detail.topic.as_deref(), Some("orders"));
    assert!(asked.wants_body && !asked.detail.is_fine);
    let head = parse(b"HEAD /metrics?topic= HTTP/1.1\r\n\r\n").expect("sound");
    assert!(head.detail.topic.is_none() && !head.wants_body);
}

#[test]
fn a_group_may_be_named_whatever_it_is_called() {
    let group = |query: &str| {
        let asked = parse(format!("GET /metrics?{query} HTTP/1.1\r\n\r\n").as_bytes());
        asked.map(|asked| asked.detail.group.map(|group| group.to_string()))
    };
    assert_eq!(group("group=a-b&topic=t"), Ok(Some("a-b".to_owned())));
    assert_eq!(group("group=a%20%26%c3%a9%25"), Ok(Some("a &é%".to_owned())));
    assert_eq!(group("groups=a"), Ok(None));
    for bad in ["group=%", "group=%2", "group=%zz", "group=%ff"] {
        assert_eq!(group(bad).expect_err("no text").status, "400 Bad Request", "{bad}");
    }
}

#[test]
fn no_address_is_no_listener_and_a_bad_one_is_named() {
    assert!(bind(None).expect("off").is_none());
    assert!(bind(Some("")).expect("off").is_none());
    let error = bind(Some("nonsense")).expect_err("refused").to_string();
    assert!(error.starts_with("'nonsense': "), "{error}");
}

#[test]
fn query_says_which_part_is_wanted_and_how() {
    let form = |query: &str| {
        let asked = parse(format!("GET /metrics?{query} HTTP/1.1\r\n\r\n").as_bytes());
        asked.map(|asked| asked.detail.form)
    };
    let plain = Form::default();
    assert_eq!(form("names=jmx&families=&buckets="), Ok(plain.clone()));
    let some = form("names=lag-exporter&families=kafka_,process_%63pu,&buckets=all").expect("sound");
    assert_eq!((some.names, some.has_all_bounds), (Names::LagExporter, true));
    assert_eq!(some.families, ["kafka_", "process_cpu"]);
    for (bad, hint) in [("names=prometheus", "jmx, strimzi"), ("buckets=few", "buckets is all")] {
        let refused = form(bad).expect_err("refused");
        assert!(refused.status.starts_with("400") && refused.hint.contains(hint), "{refused:?}");
    }
}

#[test]
fn format_is_the_one_that_the_reader_prefers() {
    for (accept, is_open) in [
        ("", false),
        ("Accept: */*\r\n", false),
        ("Accept: text/plain\r\n", false),
        (
            "accept: application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n",
            true,
        ),
        ("ACCEPT:application/openmetrics-text\r\n", true),
        ("Accept: application/openmetrics-text; version=0.0.1\r\n", false),
        ("Accept: application/openmetrics-text;q=0.2, text/plain;q=0.3\r\n", false),
        ("Accept: application/openmetrics-text;q=0\r\n", false),
        ("X-Accept: application/openmetrics-text\r\n", false),
    ] {
        let head = format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{accept}\r\n");
        let asked = parse(head.as_bytes()).expect("sound");
        assert_eq!(asked.detail.form.is_open_metrics, is_open, "{accept}");
    }
}
