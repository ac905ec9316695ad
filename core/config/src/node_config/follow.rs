//! `--override listeners=…` on a single node: what names the old ports follows.
//!
//! A node's ports stand in up to four keys. An override of `listeners` alone would leave the other three at the file's
//! ports: clients would be sent to an address at which no node listens. So, where the override gives `listeners` and
//! not the key itself:
//!
//! | key | follows |
//! |---|---|
//! | `listeners` | if the override names no controller listener, the file's stays, or is the first port + 1 |
//! | `advertised.listeners` | an entry with its listener's old port gets the new port; an old host the new host |
//! | `controller.quorum.voters` | where this node is the only voter, at its old port |
//! | `controller.quorum.bootstrap.servers` | where the only address is this node's old one |
//!
//! A port that was different from the listener's (a port mapping) stays. So does everything where the quorum has other
//! members: they know this node's address, and only the operator can tell them another.
//!
//! Source: ours. Kafka leaves the other keys as they are in the file.

use crate::endpoint::{Endpoint, ListenerName, parse_endpoints};
use crate::settings::Settings;
use barnabas_base::BrokerId;

const LISTENERS: &str = "listeners";
const ADVERTISED: &str = "advertised.listeners";
const VOTERS: &str = "controller.quorum.voters";
const BOOTSTRAP: &str = "controller.quorum.bootstrap.servers";

/// Makes the other keys follow. What cannot be read is left as it is: it is judged afterwards.
pub fn follow(settings: &mut Settings, node_id: BrokerId, is_controller: bool) {
    let Some(before) = settings.overridden(LISTENERS) else { return };
    let names = settings.get("controller.listener.names").unwrap_or_default();
    let names: Vec<ListenerName> = names.split(',').map(|name| ListenerName::new(name.trim())).collect();
    let is_of_controller = |endpoint: &Endpoint| names.contains(&endpoint.listener);
    let before = before.map(parse_endpoints).and_then(Result::ok).unwrap_or_default();
    let Some(Ok(mut now)) = settings.get(LISTENERS).map(parse_endpoints) else { return };
    if is_controller && !now.iter().any(is_of_controller) {
        match before.iter().find(|endpoint| is_of_controller(endpoint)) {
            Some(kept) => now.push(kept.clone()),
            None => now.extend(settings.has_no_file().then(|| beside(now.first(), &names)).flatten()),
        }
        settings.replace(LISTENERS, shown(&now));
    }
    let moves = Moves { before, now };
    let advertised = settings.get(ADVERTISED).filter(|_| !settings.is_overridden(ADVERTISED));
    if let Some(Ok(listed)) = advertised.map(parse_endpoints) {
        let moved: Vec<Endpoint> = listed.into_iter().map(|endpoint| moves.advertised(endpoint)).collect();
        settings.replace(ADVERTISED, shown(&moved));
    }
    if !is_controller {
        return;
    }
    let of_controller = |all: &[Endpoint]| all.iter().find(|endpoint| is_of_controller(endpoint)).cloned();
    let (Some(old), Some(new)) = (of_controller(&moves.before), of_controller(&moves.now)) else { return };
    let prefix = format!("{node_id}@");
    if let Some(value) = settings.get(VOTERS).filter(|_| !settings.is_overridden(VOTERS))
        && let Some(address) = value.strip_prefix(&prefix)
        && let Some(moved) = moved_address(address, &old, &new, true)
    {
        settings.replace(VOTERS, format!("{prefix}{moved}"));
    }
    if let Some(value) = settings.get(BOOTSTRAP).filter(|_| !settings.is_overridden(BOOTSTRAP))
        && let Some(moved) = moved_address(value, &old, &new, false)
    {
        settings.replace(BOOTSTRAP, moved);
    }
}

/// A controller's listener on the port after `first`.
fn beside(first: Option<&Endpoint>, names: &[ListenerName]) -> Option<Endpoint> {
    let (first, name) = (first?, names.first()?);
    let port = if first.port == 0 { 0 } else { first.port.checked_add(1)? };
    Some(Endpoint { listener: name.clone(), host: first.host.clone(), port })
}

/// The listeners of the file and those of the override.
struct Moves {
    before: Vec<Endpoint>,
    now: Vec<Endpoint>,
}

impl Moves {
    fn advertised(&self, mut endpoint: Endpoint) -> Endpoint {
        let of = |all: &[Endpoint]| all.iter().find(|known| known.listener == endpoint.listener).cloned();
        let (Some(old), Some(new)) = (of(&self.before), of(&self.now)) else { return endpoint };
        if endpoint.port == old.port {
            endpoint.port = new.port;
            if endpoint.host == old.host && !new.host.is_empty() {
                endpoint.host = new.host;
            }
        }
        endpoint
    }
}

/// `address` at the new port, where it is the only one and this node's: its port is the old one, and its host is the
/// old one or this machine, unless `is_mine` says that anyway.
fn moved_address(address: &str, old: &Endpoint, new: &Endpoint, is_mine: bool) -> Option<String> {
    let (host, port) = address.trim().rsplit_once(':')?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_here = is_mine || bare == old.host || ["localhost", "127.0.0.1", "::1"].contains(&bare);
    let is_old = !address.contains(',') && port.parse() == Ok(old.port);
    // Port 0 is given out by the system: the old address says as little as any.
    (is_old && is_here && new.port != 0).then(|| format!("{host}:{}", new.port))
}

fn shown(endpoints: &[Endpoint]) -> String {
    let each: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
    each.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[(&str, &str)] = &[
        ("controller.listener.names", "CONTROLLER"),
        ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093"),
        ("advertised.listeners", "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"),
        ("controller.quorum.bootstrap.servers", "localhost:9093"),
    ];

    fn followed(file: &[(&str, &str)], overrides: &[(&str, &str)]) -> [String; 4] {
        let mut settings = Settings::of(file, overrides);
        follow(&mut settings, BrokerId(1), true);
        [LISTENERS, ADVERTISED, VOTERS, BOOTSTRAP].map(|key| settings.get(key).unwrap_or_default().to_owned())
    }

    #[test]
    fn other_keys_follow_an_override_of_listeners() {
        let [listeners, advertised, _, bootstrap] =
            followed(FILE, &[("listeners", "PLAINTEXT://:19092,CONTROLLER://:19093")]);
        assert_eq!(listeners, "PLAINTEXT://:19092,CONTROLLER://:19093");
        assert_eq!(advertised, "PLAINTEXT://localhost:19092,CONTROLLER://localhost:19093");
        assert_eq!(bootstrap, "localhost:19093");
        let [listeners, advertised, _, bootstrap] = followed(FILE, &[("listeners", "PLAINTEXT://:19092")]);
        assert_eq!(listeners, "PLAINTEXT://:19092,CONTROLLER://:9093", "the file's stays");
        assert_eq!(advertised, "PLAINTEXT://localhost:19092,CONTROLLER://localhost:9093");
        assert_eq!(bootstrap, "localhost:9093");
    }

    #[test]
    fn other_keys_stay_without_an_override() {
        let [listeners, advertised, _, bootstrap] = followed(FILE, &[("log.retention.hours", "1")]);
        assert_eq!(listeners, FILE[1].1);
        assert_eq!(advertised, FILE[2].1);
        assert_eq!(bootstrap, FILE[3].1);
        let both = [("listeners", "PLAINTEXT://:1,CONTROLLER://:2"), (ADVERTISED, "PLAINTEXT://h:7")];
        assert_eq!(followed(FILE, &both)[1], "PLAINTEXT://h:7", "overridden itself");
    }

    #[test]
    fn members_of_a_larger_quorum_and_mapped_ports_stay() {
        let file = [
            ("controller.listener.names", "CONTROLLER"),
            ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093"),
            ("advertised.listeners", "PLAINTEXT://public:30092"),
            ("controller.quorum.voters", "1@a:9093,2@b:9093"),
            ("controller.quorum.bootstrap.servers", "a:9093"),
        ];
        let [_, advertised, voters, bootstrap] =
            followed(&file, &[("listeners", "PLAINTEXT://:19092,CONTROLLER://:19093")]);
        assert_eq!(advertised, "PLAINTEXT://public:30092");
        assert_eq!(voters, "1@a:9093,2@b:9093");
        assert_eq!(bootstrap, "a:9093", "another host");
        let alone = [file[0], file[1], ("controller.quorum.voters", "1@a:9093")];
        let [_, _, voters, _] = followed(&alone, &[("listeners", "PLAINTEXT://:19092,CONTROLLER://:19093")]);
        assert_eq!(voters, "1@a:19093");
    }

    #[test]
    fn node_without_a_file_gets_a_controller_listener_beside() {
        let defaults = [("controller.listener.names", "CONTROLLER")];
        let mut settings = Settings::of_overrides(&[("listeners", "PLAINTEXT://127.0.0.1:19092")]);
        defaults.iter().for_each(|(key, value)| settings.set_default(key, value));
        follow(&mut settings, BrokerId(1), true);
        assert_eq!(settings.get(LISTENERS), Some("PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"));
    }
}
