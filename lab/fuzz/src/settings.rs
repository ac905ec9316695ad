//! Keys and values that operators and admin clients give.

use barnabas_metadata::config::{Resource, TopicConfig, nearest, validate_topic_configs};

/// `name=value`, as a topic's config: never more than a refusal.
pub fn config_value(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    assert!(nearest(Resource::Topic, name).is_none_or(|key| Resource::Topic.key(key).is_some()));
    let defaults = TopicConfig::default();
    let given = [(name.into(), value.into())].into_iter().collect();
    if validate_topic_configs(&given, &defaults).is_ok() {
        drop(defaults.with_overrides([(name, value)]));
    }
}
