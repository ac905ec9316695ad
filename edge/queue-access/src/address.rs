//! Addresses of links: `TOPIC`, or `TOPIC::GROUP` to receive as a share group of one's own. Pure.
//!
//! The second form is that of Artemis for a queue of an address. Kafka's own rules for names are the broker's to check.

/// Before a topic's name: the share group of its queue.
const GROUP_PREFIX: &str = "queue.";
/// Before the names of topics that are made for one link, or one handle of MQ.
pub const AMQP_TEMPORARY: &str = "amqp.temporary.";
pub const MQ_TEMPORARY: &str = "mq.temporary.";

/// Whether a topic of this name is made by a link or handle alone: a late reply does not make it again.
pub fn is_temporary(topic: &str) -> bool {
    topic.starts_with(AMQP_TEMPORARY) || topic.starts_with(MQ_TEMPORARY)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub topic: String,
    /// The share group that consumers compete in.
    pub group: String,
}

impl Address {
    /// `None`: there is no topic or no group in it.
    pub fn parse(text: &str) -> Option<Self> {
        let (topic, group) = match text.split_once("::") {
            Some((topic, group)) => (topic, group.to_owned()),
            None => (text, format!("{GROUP_PREFIX}{text}")),
        };
        let is_whole = !topic.is_empty() && !group.is_empty();
        is_whole.then(|| Self { topic: topic.to_owned(), group })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_names_a_topic_and_a_group() {
        let parts = |text| Address::parse(text).map(|address| (address.topic, address.group));
        let both = |topic: &str, group: &str| Some((topic.to_owned(), group.to_owned()));
        assert_eq!(parts("orders"), both("orders", "queue.orders"));
        assert_eq!(parts("orders::billing"), both("orders", "billing"));
        assert_eq!([parts(""), parts("::g"), parts("t::")], [None, None, None]);
    }
}
