use super::*;
use crate::families::every;
use std::collections::HashSet;

fn shown(names: Names, name: &str) -> String {
    names.shown(every().find(|family| family.name == name).expect("in the list"))
}

#[test]
fn names_are_turned_as_each_set_has_them() {
    use Names::{Confluent, Jmx, Reporter, Strimzi};
    for (name, expected) in [
        (
            "kafka_server_brokertopicmetrics_bytesin_total",
            [
                (Jmx, "kafka_server_brokertopicmetrics_bytesin_total"),
                (Strimzi, "kafka_server_brokertopicmetrics_bytesin_total"),
                (Reporter, "kafka_server_brokertopicmetrics_bytesinpersec_total"),
                (Confluent, "kafka_server_brokertopicmetrics_bytesinpersec"),
            ],
        ),
        (
            "kafka_server_raft_metrics_current_state",
            [
                (Jmx, "kafka_server_raft_metrics_current_state"),
                (Strimzi, "kafka_server_raftmetrics_current_state"),
                (Reporter, "kafka_server_raft_metrics_current_state_info"),
                (Confluent, "kafka_server_raft_metrics_current_state"),
            ],
        ),
        (
            "kafka_server_raft_channel_metrics_request_total",
            [
                (Jmx, "kafka_server_raft_channel_metrics_request_total"),
                (Strimzi, "kafka_server_raftchannelmetrics_request_total"),
                (Reporter, "kafka_server_raft_channel_metrics_request"),
                (Confluent, "kafka_server_raft_channel_metrics_request_total"),
            ],
        ),
        (
            "kafka_network_socketserver_networkprocessoravgidle_percent",
            [
                (Jmx, "kafka_network_socketserver_networkprocessoravgidle_percent"),
                (Strimzi, "kafka_network_socketserver_networkprocessoravgidle_percent"),
                (Reporter, "kafka_network_socketserver_networkprocessoravgidlepercent"),
                (Confluent, "kafka_network_socketserver_networkprocessoravgidlepercent"),
            ],
        ),
    ] {
        for (names, expected) in expected {
            assert_eq!(shown(names, name), expected, "{names:?}");
        }
    }
    assert_eq!(Confluent.label("clientId"), "clientid");
    assert_eq!(Reporter.label("clientId"), "clientId");
}

#[test]
fn no_two_metrics_have_one_name_in_a_set() {
    for names in Names::ALL {
        let mut known = HashSet::new();
        for family in every() {
            let shown = names.shown(family);
            assert!(known.insert(shown.clone()), "{shown} twice in {names:?}");
        }
    }
}

#[test]
fn counters_without_total_have_no_type() {
    assert_eq!(Names::Confluent.word_of(Kind::Counter, "x_bytesinpersec"), "untyped");
    assert_eq!(Names::Jmx.word_of(Kind::Counter, "x_bytesin_total"), "counter");
    assert_eq!(Names::Confluent.word_of(Kind::Gauge, "x"), "gauge");
}

#[test]
fn words_are_read_back() {
    for names in Names::ALL {
        assert_eq!(Names::of(names.word()), Some(names));
    }
    assert_eq!(Names::of("JMX"), None);
}
