//! The known key that an unknown one was probably meant to be.

use std::collections::BTreeSet;

use super::{ConfigKey, OF_THE_AUTHORIZER, Resource};

/// The key of `resource` nearest to `name`; `None` where nothing is near enough to be worth naming.
///
/// Near is an edit distance (insert, delete, change, swap of neighbours) of at most a third of the name's length.
pub fn nearest(resource: Resource, name: &str) -> Option<&'static str> {
    let most = (name.len() / 3).clamp(1, 8);
    // The difference in length is the least distance: most keys, and all where a client sent 32 kB, need no look.
    let is_candidate = |key: &&ConfigKey| !key.internal && key.name.len().abs_diff(name.len()) <= most;
    let candidates = resource.keys().filter(is_candidate);
    let near =
        candidates.filter_map(|key| Some((distance(name.as_bytes(), key.name.as_bytes(), most)?, key.name)));
    near.min().map(|(_, key)| key)
}

/// Keys without which a node protects less than its file says, or denies what its file says is only reported
/// (`authorizer.shadow`): where one is misspelled, the node must not start. Those whose absence only closes something
/// (`super.users`, key stores), or only warns less, are not here.
const PROTECTING: &[&str] = &[
    "alter.config.policy.class.name",
    "amqp.security.protocol",
    "audit.log.file",
    "audit.topic",
    "authorizer.class.name",
    "authorizer.shadow",
    "connections.max.reauth.ms",
    "console.read.only",
    "console.security.protocol",
    "create.topic.policy.class.name",
    "listener.security.protocol.map",
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "mq.security.protocol",
    "sasl.enabled.mechanisms",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.server.callback.handler.class",
    "security.inter.broker.protocol",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.crl.location",
    "ssl.enabled.protocols",
    "ssl.principal.mapping.rules",
];
/// So many letters are wrong at most.
const MISSPELLED_MAX: usize = 2;
const LISTENER_PREFIX: &str = "listener.name";

/// The protecting key that was meant by an unknown one: two letters differ at most, capitals aside, or the last word is
/// left out (`authorizer.class`). A listener's prefix may be wrong as well.
pub(super) fn misspelled(name: &str) -> Option<String> {
    let name = &*name.to_ascii_lowercase();
    let is_near =
        |left: &str, right: &str| distance(left.as_bytes(), right.as_bytes(), MISSPELLED_MAX).is_some();
    // One word alone (`audit`) says too little of what was meant.
    let lacks_last = |key: &str, full: &str| full.rsplit_once('.').is_some_and(|(most, _)| most == key);
    let is_meant = |key: &str, full: &str| is_near(key, full) || key.contains('.') && lacks_last(key, full);
    let meant = |key: &str| PROTECTING.iter().find(|full| is_meant(key, full)).copied();
    if let Some(key) = meant(name) {
        return Some(key.to_owned());
    }
    // listener.name.NAME.KEY, listener.name.NAME.MECHANISM.KEY
    let (dot, _) = name.match_indices('.').nth(1)?;
    let (prefix, rest) = (name.get(..dot)?, name.get(dot + 1..)?);
    if !is_near(prefix, LISTENER_PREFIX) {
        return None;
    }
    let mut dots =
        rest.match_indices('.').take(2).filter_map(|(dot, _)| Some((rest.get(..dot)?, rest.get(dot + 1..)?)));
    dots.find_map(|(listener, key)| Some(format!("{LISTENER_PREFIX}.{listener}.{}", meant(key)?)))
}

/// The key of a broker, or of its authorizer, that an unknown name is but for two letters at most. Names of plug-ins
/// are longer ways from Kafka's.
pub(super) fn slip(name: &str) -> Option<&'static str> {
    let most = (name.len() / 5).min(MISSPELLED_MAX);
    let is_candidate = |key: &&str| key.len().abs_diff(name.len()) <= most;
    let known = Resource::Broker.keys().filter(|key| !key.internal).map(|key| key.name);
    let candidates = known.chain(OF_THE_AUTHORIZER.iter().map(|key| key.name)).filter(is_candidate);
    let near = candidates.filter_map(|key| Some((distance(name.as_bytes(), key.as_bytes(), most)?, key)));
    near.min().map(|(_, key)| key)
}

/// Whether a node whose file misspells this key, or its listener, protects less than the file says.
pub(super) fn protects(key: &str) -> bool {
    PROTECTING.contains(&key)
}

/// The listener that `name` almost is: but for capitals, one letter in five, or two in more than nine. Short names are
/// near each other by nature (`ssl`, `sasl`, `tls`).
pub(super) fn near_listener<'a>(name: &str, listeners: &'a BTreeSet<String>) -> Option<&'a str> {
    let small = name.to_ascii_lowercase();
    let most = (small.len() / 5).min(MISSPELLED_MAX);
    let distance_to = |known: &str| distance(small.as_bytes(), known.as_bytes(), most);
    let near = listeners.iter().filter_map(|known| Some((distance_to(known)?, &**known)));
    near.min().map(|(_, known)| known)
}

/// Optimal string alignment distance, in bytes: config names are ASCII. `None`: more than `most`.
///
/// A request may hold very many unknown names, so only the cells are looked at that can lie on a path of `most` steps.
fn distance(left: &[u8], right: &[u8], most: usize) -> Option<usize> {
    let far = most + 1;
    let width = right.len() + 1;
    let mut before = vec![far; width];
    let mut last: Vec<usize> = (0..width).map(|column| column.min(far)).collect();
    let mut next = vec![far; width];
    let mut least_before = 0;
    for (row, &a) in left.iter().enumerate() {
        let (from, to) = (row.saturating_sub(most), (row + most + 1).min(right.len()));
        next.fill(far);
        next[0] = (row + 1).min(far);
        let mut least = next[0];
        for column in from..to {
            let b = right[column];
            let changed = last[column] + usize::from(a != b);
            let mut steps = changed.min(last[column + 1] + 1).min(next[column] + 1);
            if row > 0 && column > 0 && a == right[column - 1] && left[row - 1] == b {
                steps = steps.min(before[column - 1] + 1);
            }
            next[column + 1] = steps.min(far);
            least = least.min(steps);
        }
        // A swap comes from the row before the last.
        if least.min(least_before) > most {
            return None;
        }
        least_before = least;
        (before, last, next) = (last, next, before);
    }
    Some(last[right.len()]).filter(|steps| *steps <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_key_is_found_and_a_far_one_is_not() {
        assert_eq!(nearest(Resource::Topic, "retension.ms"), Some("retention.ms"));
        assert_eq!(nearest(Resource::Topic, "cleanup"), None);
        assert_eq!(nearest(Resource::Topic, ""), None);
    }

    #[test]
    fn misspelled_protecting_key_is_found_with_its_listener() {
        for (name, meant) in [
            ("authorizer.class.nme", "authorizer.class.name"),
            ("Authorizer.Class.name", "authorizer.class.name"),
            ("authorizer.class", "authorizer.class.name"),
            ("SSL.client.auth", "ssl.client.auth"),
            ("ssl.principal.mapping.rule", "ssl.principal.mapping.rules"),
            ("ssl.client.atuh", "ssl.client.auth"),
            ("listener.name.tls.ssl.client", "listener.name.tls.ssl.client.auth"),
            ("listener.name.tls.ssl.client.atuh", "listener.name.tls.ssl.client.auth"),
            ("listner.name.tls.ssl.client.auth", "listener.name.tls.ssl.client.auth"),
            (
                "listener.name.x.plain.sasl.server.callback.handler.clas",
                "listener.name.x.plain.sasl.server.callback.handler.class",
            ),
            ("audit.log.fiel", "audit.log.file"),
            ("authorizer.shadw", "authorizer.shadow"),
            ("max.connections.per.pi", "max.connections.per.ip"),
            ("listener.name.tls.max.connection", "listener.name.tls.max.connections"),
        ] {
            assert_eq!(misspelled(name).as_deref(), Some(meant), "{name}");
        }
        for name in [
            "ssl",
            "authorizer",
            "audit.log.format",
            "listener.name",
            "listener.name.tls",
            "a.b.c.d",
            "",
            "...",
            "ö.ö.ö",
        ] {
            assert_eq!(misspelled(name), None, "{name}");
        }
        // None of them is one of another's misspellings.
        for key in Resource::Broker.keys().filter(|key| !PROTECTING.contains(&key.name)) {
            assert_eq!(misspelled(key.name), None, "{}", key.name);
        }
        assert!(PROTECTING.iter().all(|key| Resource::Broker.key(key).is_some()));
    }

    #[test]
    fn near_listener_is_found() {
        let listeners = ["sasl_ssl", "controller", "ssl"].map(str::to_owned).into();
        for (name, meant) in [
            ("controler", Some("controller")),
            ("SASL_SSL", Some("sasl_ssl")),
            ("sasl_sl", Some("sasl_ssl")),
            ("internal", None),
            ("sasl", None),
            ("tls", None),
            ("SSL", Some("ssl")),
        ] {
            assert_eq!(near_listener(name, &listeners), meant, "{name}");
        }
    }

    /// Without the short cuts.
    fn plain_distance(left: &[u8], right: &[u8]) -> usize {
        let mut cells = vec![vec![0; right.len() + 1]; left.len() + 1];
        for row in 0..=left.len() {
            for column in 0..=right.len() {
                cells[row][column] = match (row, column) {
                    (0, other) | (other, 0) => other,
                    _ => {
                        let differs = usize::from(left[row - 1] != right[column - 1]);
                        let changed = cells[row - 1][column - 1] + differs;
                        let steps = changed.min(cells[row - 1][column] + 1).min(cells[row][column - 1] + 1);
                        let is_swap = row > 1
                            && column > 1
                            && left[row - 1] == right[column - 2]
                            && left[row - 2] == right[column - 1];
                        if is_swap { steps.min(cells[row - 2][column - 2] + 1) } else { steps }
                    }
                };
            }
        }
        cells[left.len()][right.len()]
    }

    #[test]
    fn short_cuts_find_the_same_distance() {
        let names: Vec<&str> = Resource::Topic.keys().map(|key| key.name).collect();
        let more = ["", "a", "ab", "ba", "retention", "cleanup.policies", "segment.byte", "sgement.bytes"];
        for left in names.iter().chain(&more) {
            for right in &names {
                let plain = plain_distance(left.as_bytes(), right.as_bytes());
                for most in [1, 3, 8] {
                    let found = distance(left.as_bytes(), right.as_bytes(), most);
                    assert_eq!(found, Some(plain).filter(|steps| *steps <= most), "{left} {right} {most}");
                }
            }
        }
    }

    /// One took a second of the controller.
    #[test]
    fn names_of_32_kilobytes_are_not_compared() {
        let name = "n".repeat(32_767);
        for _ in 0..10_000 {
            assert_eq!(nearest(Resource::Topic, &name), None);
        }
    }
}
