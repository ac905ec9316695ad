use super::*;
use crate::buckets::Scale;
use crate::buckets::tests::counted;

#[test]
fn a_page_with_one_of_each() {
    let mut page = Page::default();
    let all = counted(Scale::Nanoseconds, &[1_000_000, 2_000_000, 40_000_000]);
    page.count(
        "kafka_network_requestmetrics_requests_total",
        &[("request", "Produce"), ("version", "13")],
        3,
    );
    let summary = Summary { all: &all, recent: &all, requests: (4, 4), unit: 1_000_000 };
    page.summary("kafka_network_requestmetrics_totaltimems", &[("request", "Produce")], &summary);
    page.value("kafka_log_logmanager_logdirectoryoffline", &[("logDirectory", "/a\"b\\c\nd")], 1.0);
    let sizes = counted(Scale::Count, &[1, 4, 5, 100]);
    page.sizes("barnabas_batch_records", &[], &sizes, 4, 2);
    page.times("barnabas_worker_turn_seconds", &[("worker", "0")], &all, true);
    let expected = "\
# HELP kafka_network_requestmetrics_requests_total Requests answered
# TYPE kafka_network_requestmetrics_requests_total counter
kafka_network_requestmetrics_requests_total{request=\"Produce\",version=\"13\"} 3
# HELP kafka_network_requestmetrics_totaltimems Milliseconds from a whole frame to its answer at the socket
# TYPE kafka_network_requestmetrics_totaltimems summary
kafka_network_requestmetrics_totaltimems{request=\"Produce\",quantile=\"0.50\"} 1.048576
kafka_network_requestmetrics_totaltimems{request=\"Produce\",quantile=\"0.75\"} 2.097152
kafka_network_requestmetrics_totaltimems{request=\"Produce\",quantile=\"0.95\"} 40
kafka_network_requestmetrics_totaltimems{request=\"Produce\",quantile=\"0.98\"} 40
kafka_network_requestmetrics_totaltimems{request=\"Produce\",quantile=\"0.99\"} 40
kafka_network_requestmetrics_totaltimems{request=\"Produce\",quantile=\"0.999\"} 40
kafka_network_requestmetrics_totaltimems_sum{request=\"Produce\"} 43
kafka_network_requestmetrics_totaltimems_count{request=\"Produce\"} 4
# HELP kafka_log_logmanager_logdirectoryoffline 1 where it is offline
# TYPE kafka_log_logmanager_logdirectoryoffline gauge
kafka_log_logmanager_logdirectoryoffline{logDirectory=\"/a\\\"b\\\\c\\nd\"} 1
# HELP barnabas_batch_records Records per appended batch
# TYPE barnabas_batch_records histogram
barnabas_batch_records_bucket{le=\"1\"} 1
barnabas_batch_records_bucket{le=\"4\"} 2
barnabas_batch_records_bucket{le=\"16\"} 3
barnabas_batch_records_bucket{le=\"+Inf\"} 4
barnabas_batch_records_sum 110
barnabas_batch_records_count 4
# HELP barnabas_worker_turn_seconds Duration of a worker's turn over its partitions. The worker serves nothing else meanwhile
# TYPE barnabas_worker_turn_seconds histogram
barnabas_worker_turn_seconds_bucket{worker=\"0\",le=\"0.001048576\"} 1
barnabas_worker_turn_seconds_bucket{worker=\"0\",le=\"0.002097152\"} 2
barnabas_worker_turn_seconds_bucket{worker=\"0\",le=\"0.04194304\"} 3
barnabas_worker_turn_seconds_bucket{worker=\"0\",le=\"+Inf\"} 3
barnabas_worker_turn_seconds_sum{worker=\"0\"} 0.043
barnabas_worker_turn_seconds_count{worker=\"0\"} 3
";
    assert_eq!(page.into_text(), expected);
}

#[test]
#[should_panic(expected = "not in the list")]
fn a_metric_that_is_not_in_the_list_is_a_bug() {
    Page::default().count("kafka_server_brokertopicmetrics_nothing", &[], 1);
}

#[test]
#[should_panic(expected = "in two places")]
fn samples_of_a_metric_stand_together() {
    let mut page = Page::default();
    page.count("barnabas_connections", &[], 1);
    page.count("process_open_fds", &[], 1);
    page.count("barnabas_connections", &[], 1);
}

#[test]
fn what_clients_pushed_has_a_type_for_each_name() {
    let mut page = Page::default();
    page.pushed("barnabas_telemetry_a_total", Kind::Counter, &[("client_id", "x")], 1.0);
    page.pushed("barnabas_telemetry_a_total", Kind::Counter, &[("client_id", "y")], 2.5);
    page.pushed("barnabas_telemetry_b", Kind::Gauge, &[("client_id", "x\"y")], f64::NAN);
    let expected = "\
# TYPE barnabas_telemetry_a_total counter
barnabas_telemetry_a_total{client_id=\"x\"} 1
barnabas_telemetry_a_total{client_id=\"y\"} 2.5
# TYPE barnabas_telemetry_b gauge
barnabas_telemetry_b{client_id=\"x\\\"y\"} NaN
";
    assert_eq!(page.into_text(), expected);
}

#[test]
#[should_panic(expected = "is no client's")]
fn pushed_metric_with_a_name_of_ours_is_a_bug() {
    Page::default().pushed("barnabas_connections", Kind::Gauge, &[], 1.0);
}

#[test]
fn open_metrics_has_counters_without_total_in_the_head_and_an_end() {
    let mut page = Page::new(Form { is_open_metrics: true, ..Form::default() });
    page.count("barnabas_connections_accepted_total", &[], 3);
    page.count("barnabas_connections", &[], 2);
    page.pushed("barnabas_telemetry_a_total", Kind::Counter, &[("client_id", "x")], 1.0);
    let expected = "\
# HELP barnabas_connections_accepted Connections accepted
# TYPE barnabas_connections_accepted counter
barnabas_connections_accepted_total 3
# HELP barnabas_connections Open connections
# TYPE barnabas_connections gauge
barnabas_connections 2
# TYPE barnabas_telemetry_a counter
barnabas_telemetry_a_total{client_id=\"x\"} 1
# EOF
";
    assert_eq!(page.into_text(), expected);
}

#[test]
fn only_wanted_families_are_written() {
    let families =
        vec!["barnabas_connections".to_owned(), "kafka_server_brokertopicmetrics_bytesinpersec".to_owned()];
    let form = Form { families, names: Names::Confluent, ..Form::default() };
    assert!(form.may_want(&["barnabas_"]) && form.may_want(&["barnabas_connections_accepted_total"]));
    assert!(!form.may_want(&["barnabas_group", "process_"]));
    let mut page = Page::new(form);
    page.count("kafka_server_brokertopicmetrics_messagesin_total", &[], 1);
    page.count("kafka_server_brokertopicmetrics_bytesin_total", &[("topic", "t")], 2);
    page.count("barnabas_connections_accepted_total", &[], 3);
    page.count("barnabas_client_requests_total", &[("client_id", "a"), ("request", "Produce")], 4);
    page.count("barnabas_client_requests_total", &[("client_id", "b"), ("request", "Produce")], 4);
    page.pushed("barnabas_telemetry_a_total", Kind::Counter, &[], 1.0);
    let text = page.into_text();
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        samples,
        [
            "kafka_server_brokertopicmetrics_bytesinpersec{topic=\"t\"} 2",
            "barnabas_connections_accepted_total 3"
        ]
    );
    assert!(text.contains("# TYPE kafka_server_brokertopicmetrics_bytesinpersec untyped\n"), "{text}");
}

#[test]
fn histograms_of_times_have_few_bounds_unless_all_are_asked_for() {
    let counts = counted(Scale::Nanoseconds, &[1_000_000, 2_000_000, 40_000_000]);
    let bounds = |has_all_bounds: bool| {
        let mut page = Page::new(Form { has_all_bounds, ..Form::default() });
        page.times("barnabas_worker_turn_seconds", &[], &counts, false);
        page.into_text().lines().filter(|line| line.contains("le=")).count()
    };
    assert_eq!((bounds(false), bounds(true)), (11, 24));
}
