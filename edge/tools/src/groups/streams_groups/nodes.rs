//! A topology's description as `Topology#describe()` of Kafka Streams prints it.
//!
//! Source: Kafka 4.4 `TopologyDescriptionFormatter`.

use barnabas_wire::Str;
use barnabas_wire::messages::streams_group_describe_response::{
    TopologyDescription, TopologyDescriptionNode as Node,
};
use std::fmt::Write;

const SOURCE: i8 = 1;
const PROCESSOR: i8 = 2;

/// Global stores are counted after the subtopologies.
pub fn shown(description: &TopologyDescription) -> String {
    let mut text = String::from("Topologies:\n");
    for subtopology in &description.subtopologies {
        let _ = writeln!(text, "   Sub-topology: {}", &*subtopology.subtopology_id);
        let nodes: Vec<&Node> = subtopology.nodes.iter().collect();
        nodes.iter().for_each(|node| show(&mut text, node, &nodes));
        text.push('\n');
    }
    for (store, number) in description.global_stores.iter().zip(description.subtopologies.len()..) {
        let _ = writeln!(text, "   Sub-topology: {number} for global store (will not generate tasks)");
        let nodes = [&store.source, &store.processor];
        nodes.iter().for_each(|node| show(&mut text, node, &nodes));
        text.push('\n');
    }
    text
}

/// `all`: the nodes among which those before it are found.
fn show(text: &mut String, node: &Node, all: &[&Node]) {
    let name = &*node.name;
    let before = all.iter().filter(|other| other.successors.contains(&node.name)).map(|other| &*other.name);
    let (after, before) = (names(node.successors.iter().map(|name| &**name)), names(before));
    let _ = match node.node_type {
        SOURCE => {
            writeln!(
                text,
                "    Source: {name} (topics: [{}])\n      --> {after}",
                sorted(&node.source_topics)
            )
        }
        PROCESSOR => writeln!(
            text,
            "    Processor: {name} (stores: [{}])\n      --> {after}\n      <-- {before}",
            sorted(&node.stores)
        ),
        _ => {
            let topic = node.sink_topic.as_deref().unwrap_or("null");
            writeln!(text, "    Sink: {name} (topic: {topic})\n      <-- {before}")
        }
    };
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn sorted(names: &[Str]) -> String {
    let mut names: Vec<&str> = names.iter().map(|name| &**name).collect();
    names.sort_unstable();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_wire::messages::streams_group_describe_response::{
        TopologyDescriptionGlobalStore, TopologyDescriptionSubtopology,
    };

    fn node(node_type: i8, name: &str, successors: &[&str]) -> Node {
        let names = |names: &[&str]| names.iter().map(|name| Str::from(*name)).collect::<Vec<_>>();
        Node {
            name: name.into(),
            node_type,
            source_topics: names(if node_type == SOURCE { &["u", "t"] } else { &[] }),
            stores: names(if node_type == PROCESSOR { &["counts"] } else { &[] }),
            successors: names(successors),
            ..Default::default()
        }
    }

    #[test]
    fn topology_is_printed_as_kafka_streams_prints_it() {
        let nodes = vec![
            node(1, "source", &["second", "first"]),
            node(2, "first", &["sink"]),
            node(2, "second", &["sink"]),
            Node { sink_topic: Some("out".into()), ..node(3, "sink", &[]) },
            node(3, "chosen", &[]),
        ];
        let subtopology =
            TopologyDescriptionSubtopology { subtopology_id: "0".into(), nodes, ..Default::default() };
        let store = TopologyDescriptionGlobalStore {
            source: node(1, "all", &["fill"]),
            processor: node(2, "fill", &[]),
            ..Default::default()
        };
        let description = TopologyDescription {
            subtopologies: vec![subtopology],
            global_stores: vec![store],
            ..Default::default()
        };
        let expected = "\
Topologies:
   Sub-topology: 0
    Source: source (topics: [t, u])
      --> first, second
    Processor: first (stores: [counts])
      --> sink
      <-- source
    Processor: second (stores: [counts])
      --> sink
      <-- source
    Sink: sink (topic: out)
      <-- first, second
    Sink: chosen (topic: null)
      <-- none

   Sub-topology: 1 for global store (will not generate tasks)
    Source: all (topics: [t, u])
      --> fill
    Processor: fill (stores: [counts])
      --> none
      <-- all

";
        assert_eq!(shown(&description), expected);
    }
}
