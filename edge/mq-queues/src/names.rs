//! Names of queues, and the topics behind them. Pure.

use barnabas_queue_access::{Address, MQ_TEMPORARY};
use std::collections::BTreeMap;

/// A model queue, of which temporary queues are made.
pub const MODEL: &str = "SYSTEM.DEFAULT.MODEL.QUEUE";
/// JMS's own model queue.
const JMS_MODEL: &str = "SYSTEM.JMS.TEMPQ.MODEL";
/// Names of a queue manager's own objects: none of them is here.
const OWN: &str = "SYSTEM.";

/// Which queues there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Empty: any topic is a queue of its name.
    topics: BTreeMap<String, String>,
}

impl Names {
    /// Reads `QUEUE:topic` pairs, separated by commas.
    ///
    /// # Errors
    /// The pair that is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut topics = BTreeMap::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (queue, topic) = pair.split_once(':').ok_or_else(|| format!("'{pair}' has no ':'"))?;
            let (queue, topic) = (queue.trim(), topic.trim());
            if !is_name(queue) || topic.is_empty() {
                return Err(format!("'{pair}': a queue's name has 1 to 48 letters, digits, and . / _ %"));
            }
            topics.insert(queue.to_owned(), topic.to_owned());
        }
        Ok(Self { topics })
    }

    /// `None`: there is no such queue.
    pub fn address(&self, queue: &str) -> Option<Address> {
        if queue.starts_with(MQ_TEMPORARY) || (self.topics.is_empty() && !queue.starts_with(OWN)) {
            return Address::parse(queue).filter(|_| is_name(queue));
        }
        Address::parse(self.topics.get(queue)?)
    }
}

pub fn is_model(queue: &str) -> bool {
    queue == MODEL || queue == JMS_MODEL
}

/// MQ's rules for names.
fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"./_%".contains(&byte);
    (1..=48).contains(&text.len()) && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_is_its_topic_unless_it_is_mapped() {
        let topic = |names: &Names, queue: &str| names.address(queue).map(|address| address.topic);
        let any = Names::default();
        assert_eq!(topic(&any, "PAY.IN").as_deref(), Some("PAY.IN"));
        for none in ["", "a b", "SYSTEM.PROTECTION.POLICY.QUEUE", "a::b", &"a".repeat(49)] {
            assert_eq!(topic(&any, none), None, "{none}");
        }
        let mapped = Names::parse("PAY.IN:payments, ORDERS:orders").expect("pairs");
        assert_eq!(topic(&mapped, "PAY.IN").as_deref(), Some("payments"));
        assert_eq!(topic(&mapped, "payments"), None);
        assert_eq!(topic(&mapped, "mq.temporary.0a").as_deref(), Some("mq.temporary.0a"));
        for wrong in ["PAY", ":t", "A B:t", "A:"] {
            assert!(Names::parse(wrong).is_err(), "{wrong}");
        }
    }
}
