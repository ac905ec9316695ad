use super::*;

fn node_of(node_type: i8, name: &'static str) -> request::TopologyDescriptionNode {
    request::TopologyDescriptionNode {
        name: Str::from_static(name),
        node_type,
        source_topics: vec!["t".into(), "u".into(), "t".into()],
        sink_topic: Some("out".into()),
        stores: vec!["s".into()],
        successors: vec!["b".into(), "b".into()],
        ..Default::default()
    }
}

fn said(nodes: Vec<request::TopologyDescriptionNode>) -> request::TopologyDescription {
    let subtopology =
        request::TopologyDescriptionSubtopology { subtopology_id: "0".into(), nodes, ..Default::default() };
    request::TopologyDescription { subtopologies: vec![subtopology], ..Default::default() }
}

fn with_store(source: i8, processor: i8) -> request::TopologyDescription {
    let store = request::TopologyDescriptionGlobalStore {
        source: node_of(source, "a"),
        processor: node_of(processor, "b"),
        ..Default::default()
    };
    request::TopologyDescription { global_stores: vec![store], ..Default::default() }
}

fn described(description: &Description, topology_epoch: i32) -> response::DescribedGroup {
    let mut group = response::DescribedGroup::default();
    description.show(topology_epoch, &mut group);
    group
}

const MOST: usize = 1_000;
const SECOND: u64 = 1_000;

#[test]
fn node_shows_what_is_its_types_and_each_name_once() {
    let mut description = Description::default();
    description.keep(3, &said(vec![node_of(1, "a"), node_of(2, "b"), node_of(3, "c")]), MOST).expect("kept");
    let group = described(&description, 3);
    assert_eq!(group.topology_description_status, 3, "AVAILABLE");
    let nodes = &group.topology_description.expect("a description").subtopologies[0].nodes;
    let shown: Vec<_> = nodes
        .iter()
        .map(|node| {
            let names = |names: &[Str]| names.join("+");
            let (sources, stores) = (names(&node.source_topics), names(&node.stores));
            (node.node_type, sources, node.sink_topic.as_deref(), stores, names(&node.successors))
        })
        .collect();
    let text = str::to_owned;
    assert_eq!(
        shown,
        [
            (1, text("t+u"), None, text(""), text("b")),
            (2, text(""), None, text("s"), text("b")),
            (3, text(""), Some("out"), text(""), text("b")),
        ]
    );
}

#[test]
fn description_of_another_topology_is_not_shown() {
    let mut description = Description::default();
    assert_eq!(described(&description, -1).topology_description_status, 1, "NOT_STORED");
    description.keep(3, &said(Vec::new()), MOST).expect("kept");
    let group = described(&description, 4);
    assert_eq!((group.topology_description_status, group.topology_description), (1, None));
}

#[test]
fn kept_bytes_that_cannot_be_read_are_an_error() {
    let kept = Some(Kept { topology_epoch: 3, bytes: Bytes::from_static(&[200]), structures: 0 });
    let group = described(&Description { kept, ..Description::default() }, 3);
    assert_eq!((group.topology_description_status, group.topology_description), (2, None));
}

#[test]
fn nonsense_is_refused_and_leaves_what_was_kept() {
    let mut description = Description::default();
    description.keep(3, &with_store(1, 2), MOST).expect("kept");
    let before = description.bytes();
    let mut why = |said: &request::TopologyDescription| {
        let refused = description.keep(3, said, MOST).expect_err("refused");
        assert_eq!(refused.code, ErrorCode::InvalidRequest);
        refused.why
    };
    assert_eq!(why(&said(vec![node_of(0, "a")])), "Unknown topology node type: 0");
    assert_eq!(why(&with_store(1, 4)), "Unknown topology node type: 4");
    let store = "Global store must be composed of a source and a processor node.";
    assert_eq!((why(&with_store(2, 2)).as_str(), why(&with_store(1, 3)).as_str()), (store, store));
    assert_eq!(description.bytes(), before);
    assert_eq!(described(&description, 3).topology_description.expect("kept").global_stores.len(), 1);
}

#[test]
fn description_that_is_too_long_is_not_asked_for_again() {
    let mut description = Description::default();
    let refused = description.keep(3, &said(vec![node_of(1, "a")]), 10).expect_err("refused");
    assert_eq!(refused.code, ErrorCode::StreamsTopologyDescriptionUpdateFailed);
    assert!(refused.why.contains("group.member.metadata.max.bytes allows 10"), "{}", refused.why);
    assert_eq!(description.bytes(), 0);
    assert!(!description.ask(3, MonotonicMs(0)));
    assert!(description.ask(4, MonotonicMs(0)), "another topology");
}

#[test]
fn members_are_asked_at_growing_intervals_until_one_describes() {
    let mut description = Description::default();
    let mut asked = Vec::new();
    for second in 0..20_000 {
        if description.ask(3, MonotonicMs(second * SECOND)) {
            asked.push(second);
        }
    }
    assert_eq!(asked, [0, 30, 90, 210, 450, 930, 1_890, 3_810, 7_410, 11_010, 14_610, 18_210]);
    assert!(description.ask(4, MonotonicMs(18_211 * SECOND)), "another topology");
    description.keep(4, &said(Vec::new()), MOST).expect("kept");
    assert!(!description.ask(4, MonotonicMs(u64::MAX)));
}

#[test]
fn kept_description_does_not_keep_its_frame_alive() {
    let frame = Bytes::from(vec![b'x'; 100_000]);
    let mut node = node_of(1, "a");
    node.name = Str::from_utf8_lossy(frame.slice(..100));
    let mut description = Description::default();
    description.keep(3, &said(vec![node]), MOST).expect("kept");
    assert!(frame.try_into_mut().is_ok(), "nothing else holds it");
    assert!(description.bytes() < 200);
}
