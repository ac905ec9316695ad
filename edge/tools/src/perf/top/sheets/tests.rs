//! Sheets of looks that are written down here.

use super::super::facts::{Member, Node, Room};
use super::*;

/// A node's page after `uptime` seconds with so many records in topic `t`.
fn page(uptime: u32, records: u32, lag: u32) -> Scrape {
    Scrape::parse(&format!(
        "barnabas_uptime_seconds {uptime}\n\
         barnabas_connections 7\n\
         kafka_server_brokertopicmetrics_messagesin_total{{topic=\"t\"}} {records}\n\
         kafka_server_brokertopicmetrics_bytesin_total{{topic=\"t\"}} {}\n\
         kafka_server_brokertopicmetrics_bytesout_total{{topic=\"t\"}} 0\n\
         barnabas_request_seconds_count{{request=\"Produce\"}} {records}\n\
         barnabas_request_phase_seconds_count{{request=\"Produce\",phase=\"sync\"}} {records}\n\
         barnabas_request_phase_seconds_sum{{request=\"Produce\",phase=\"sync\"}} {}\n\
         barnabas_client_phase_seconds_total{{client_id=\"app\",phase=\"sync\"}} {}\n\
         barnabas_client_requests_total{{client_id=\"app\",request=\"Produce\"}} {records}\n\
         barnabas_thread_cpu_seconds_total{{thread=\"worker-0\"}} {}\n\
         barnabas_group_lag{{group=\"g\",protocol=\"classic\"}} {lag}\n\
         barnabas_group_lag_seconds{{group=\"g\",protocol=\"classic\"}} 3\n",
        records * 100,
        f64::from(records) / 10.0,
        f64::from(records) / 10.0,
        f64::from(uptime) / 2.0,
    ))
}

fn look(pages: &[(i32, Scrape)], seconds: Option<f64>) -> Facts {
    let node = |id: i32| Node { id, address: format!("h{id}:9092"), ..Node::default() };
    let member = |host: &str| Member { client_id: "app".into(), host: host.into() };
    let group = Group {
        name: "g".into(),
        kind: "classic".into(),
        state: "Stable".into(),
        coordinator: 1,
        members: Some(vec![member("/a"), member("/b")]),
        committed: None,
    };
    Facts {
        seconds,
        nodes: vec![node(1), node(2)],
        topics: vec![Topic { name: "t".into(), partitions: 2, ..Topic::default() }],
        pages: pages.iter().cloned().collect(),
        series: pages.iter().cloned().collect(),
        dirs: BTreeMap::from([(1, Room { total: 100.0, usable: 25.0 })]),
        sizes: BTreeMap::from([("t".into(), 5e6)]),
        groups: vec![group],
        ..Facts::default()
    }
}

/// The rows of a view as the screen shows them, after two looks 10 s apart.
fn rows(view: View, first: Facts, second: Facts) -> Vec<Vec<String>> {
    let (_, before) = snapshot(first, &Before::default(), &View::ALL);
    let (shown, _) = snapshot(second, &before, &View::ALL);
    let sheet = &shown.sheets[&view];
    let row =
        |cells: &Vec<Cell>| sheet.columns.iter().zip(cells).map(|(column, cell)| column.show(cell)).collect();
    sheet.rows.rows.iter().map(row).collect()
}

fn of_barnabas(view: View) -> Vec<Vec<String>> {
    let first = look(&[(1, page(100, 50, 10)), (2, page(100, 0, 0))], None);
    rows(view, first, look(&[(1, page(110, 150, 30)), (2, page(110, 100, 0))], Some(10.0)))
}

#[test]
fn rates_come_from_the_pages_of_barnabas_nodes() {
    let nodes = of_barnabas(View::Nodes);
    assert_eq!(nodes[0][..10], ["1", "0", "0", "0", "1.0 kB", "0 B", "10.0", "50 %", "75 %", "h1:9092"]);
    assert_eq!(nodes[1][8], "-", "the node did not tell its directories");
    assert_eq!(of_barnabas(View::Topics)[0], ["t", "2", "0", "0", "0", "20.0", "2.0 kB", "0 B", "5.0 MB"]);
    assert_eq!(of_barnabas(View::Groups)[0], ["g", "classic", "Stable", "2", "30", "+2.0", "3.0 s", "1"]);
    let clients = of_barnabas(View::Clients);
    assert_eq!(clients[0][..3], ["app", "100 %", "20.0"]);
    assert_eq!(clients[0][6..], ["2", "g", "/a,/b"]);
    let hotspots = of_barnabas(View::Hotspots);
    assert_eq!(hotspots[0][..5], ["1", "100 %", "1.0", "10.0", "100.0 ms"]);
    assert_eq!((hotspots.len(), &*hotspots[0][7]), (2, "Produce sync"));
}

#[test]
fn rates_come_from_offsets_where_nodes_have_no_page() {
    let of_apache = |end: i64, committed: i64, seconds| {
        let ends = BTreeMap::from([("t".to_owned(), BTreeMap::from([(0, end), (1, 5)]))]);
        let mut facts = look(&[], seconds);
        let committed = BTreeMap::from([("t".to_owned(), BTreeMap::from([(0, committed)]))]);
        facts.groups[0].committed = Some(committed);
        Facts { ends, ..facts }
    };
    let both = || (of_apache(100, 90, None), of_apache(300, 200, Some(10.0)));
    let (first, second) = both();
    let topics = rows(View::Topics, first, second);
    assert_eq!(topics[0][5..], ["20.0", "-", "-", "5.0 MB"]);
    let (first, second) = both();
    let groups = rows(View::Groups, first, second);
    assert_eq!(groups[0][3..], ["2", "100", "+9.0", "-", "1"]);
    let (first, second) = both();
    let clients = rows(View::Clients, first, second);
    assert_eq!(clients[0][..2], ["app", "-"]);
    let (_, before) = snapshot(both().0, &Before::default(), &View::ALL);
    let (shown, _) = snapshot(both().1, &before, &[View::Hotspots]);
    assert_eq!(shown.sheets[&View::Hotspots].rows.notes.len(), 1, "it says why it is empty");
}

#[test]
fn lag_with_an_unknown_end_is_not_seen() {
    let mut facts = look(&[], None);
    facts.groups[0].committed = Some(BTreeMap::from([("gone".to_owned(), BTreeMap::from([(0, 5)]))]));
    let (shown, before) = snapshot(facts, &Before::default(), &[View::Groups]);
    assert_eq!(shown.sheets[&View::Groups].rows.rows[0][4], Cell::Unseen);
    assert!(before.lags.is_empty());
}

#[test]
fn node_that_was_started_again_has_no_rates() {
    let first = look(&[(1, page(100, 50, 0))], None);
    let nodes = rows(View::Nodes, first, look(&[(1, page(3, 5, 0))], Some(10.0)));
    assert_eq!(nodes[0][4..8], ["-", "-", "-", "-"]);
}

#[test]
fn rows_of_a_view_are_bounded() {
    let mut facts = look(&[], None);
    let group = facts.groups[0].clone();
    facts.groups = vec![group; ROWS_MAX + 7];
    let (shown, _) = snapshot(facts, &Before::default(), &[View::Groups]);
    let rows = &shown.sheets[&View::Groups].rows;
    assert_eq!((rows.rows.len(), &*rows.notes[0]), (ROWS_MAX, "not listed: 7 of the groups"));
}
