//! What the flags name: kinds of entities, and one of each kind by name, its default, or all.
//!
//! Source: Kafka `ConfigCommandOptions.checkArgs`; KIP-543 (a flag for each kind), KIP-612 (addresses), KIP-1043
//! (groups).

use crate::ToolError;
use crate::command_line::args::{given, text, texts};
use clap::ArgMatches;
use std::net::ToSocketAddrs;

/// A kind of entities that have configurations of their own, as the protocol has them.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    pub wire: i8,
    /// Where a value that was set for an entity by name comes from; `None`: every value counts as set.
    pub source: Option<i8>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Of `--entity-type`.
    pub words: &'static str,
    /// The flag that stands for the kind and a name.
    pub flag: &'static str,
    pub default_flag: Option<&'static str>,
    pub shown: &'static str,
    pub help: &'static str,
    /// `None`: the kind has quotas instead.
    pub resource: Option<Resource>,
    /// The kind's name where quotas are meant.
    pub quota: &'static str,
}

pub const TOPICS: &str = "topics";
pub const BROKERS: &str = "brokers";
pub const LOGGERS: &str = "broker-loggers";
pub const METRICS: &str = "client-metrics";
pub const GROUPS: &str = "groups";
const USERS: &str = "users";
const CLIENTS: &str = "clients";
const IPS: &str = "ips";

const fn resource(wire: i8, source: i8) -> Option<Resource> {
    Some(Resource { wire, source: Some(source) })
}

pub const KINDS: [Kind; 8] = [
    Kind {
        words: TOPICS,
        flag: "topic",
        default_flag: None,
        shown: "name",
        help: "The topic",
        resource: resource(2, 1),
        quota: "",
    },
    Kind {
        words: CLIENTS,
        flag: "client",
        default_flag: Some("client-defaults"),
        shown: "client id",
        help: "The client; together with a user, that user's client",
        resource: None,
        quota: "client-id",
    },
    Kind {
        words: USERS,
        flag: "user",
        default_flag: Some("user-defaults"),
        shown: "principal",
        help: "The user",
        resource: None,
        quota: "user",
    },
    Kind {
        words: BROKERS,
        flag: "broker",
        default_flag: Some("broker-defaults"),
        shown: "id",
        help: "The broker",
        resource: resource(4, 2),
        quota: "",
    },
    Kind {
        words: LOGGERS,
        flag: "broker-logger",
        default_flag: None,
        shown: "id",
        help: "The broker whose loggers are meant",
        resource: Some(Resource { wire: 8, source: None }),
        quota: "",
    },
    Kind {
        words: IPS,
        flag: "ip",
        default_flag: Some("ip-defaults"),
        shown: "address",
        help: "The address that clients connect from",
        resource: None,
        quota: "ip",
    },
    Kind {
        words: METRICS,
        flag: "client-metrics",
        default_flag: None,
        shown: "name",
        help: "The client metrics subscription",
        resource: resource(16, 7),
        quota: "",
    },
    Kind {
        words: GROUPS,
        flag: "group",
        default_flag: None,
        shown: "id",
        help: "The group",
        resource: resource(32, 8),
        quota: "",
    },
];

/// Of a broker's settings those of the cluster-wide default.
const DEFAULT_BROKER_SOURCE: i8 = 3;

impl Kind {
    /// As Kafka's tool cuts it.
    pub fn one(&self) -> &'static str {
        self.words.strip_suffix('s').unwrap_or(self.words)
    }

    pub fn has_default(&self) -> bool {
        self.default_flag.is_some()
    }

    /// Where a value comes from that was set for `entity` itself.
    pub fn source_of(&self, entity: &str) -> Option<i8> {
        if self.words == BROKERS && entity.is_empty() {
            return Some(DEFAULT_BROKER_SOURCE);
        }
        self.resource.as_ref().and_then(|resource| resource.source)
    }

    /// Whether names are brokers' ids.
    pub fn is_of_brokers(&self) -> bool {
        matches!(self.words, BROKERS | LOGGERS)
    }
}

/// Kinds and names in their order: the first name is of the first kind. The empty name is the default.
#[derive(Debug)]
pub struct Entities {
    pub kinds: Vec<&'static Kind>,
    pub names: Vec<String>,
}

fn refused<T>(why: impl Into<String>) -> Result<T, ToolError> {
    Err(ToolError::Usage(why.into()))
}

impl Entities {
    /// # Errors
    /// A kind that there is not, kinds that do not go together, names that are none of their kind.
    pub fn read(matches: &ArgMatches) -> Result<Self, ToolError> {
        let mut kinds = Vec::new();
        for word in texts(matches, "entity-type") {
            let known = KINDS.iter().find(|kind| kind.words == word);
            let words: Vec<&str> = KINDS.iter().map(|kind| kind.words).collect();
            kinds.push(known.ok_or_else(|| {
                ToolError::Usage(format!("--entity-type takes one of {}, not '{word}'", words.join(", ")))
            })?);
        }
        let mut names = named(matches);
        let is_general = !kinds.is_empty() || !names.is_empty();
        for kind in KINDS.iter().filter(|kind| text(matches, kind.flag).is_some()) {
            kinds.push(kind);
            names.extend(text(matches, kind.flag).map(str::to_owned));
        }
        for kind in KINDS.iter().filter(|kind| kind.default_flag.is_some_and(|flag| matches.get_flag(flag))) {
            kinds.push(kind);
            names.push(String::new());
        }
        let specific: Vec<&str> =
            KINDS.iter().flat_map(|kind| [Some(kind.flag), kind.default_flag]).flatten().collect();
        if let (true, [flag, ..]) = (is_general, &given(matches, &specific)[..]) {
            return refused(format!(
                "--{flag} cannot be used together with --entity-type, --entity-name or --entity-default"
            ));
        }
        let entities = Self { kinds, names };
        entities.check()?;
        Ok(entities)
    }

    fn check(&self) -> Result<(), ToolError> {
        let words: Vec<&str> = self.kinds.iter().map(|kind| kind.words).collect();
        match words[..] {
            [] => {
                return refused(
                    "an entity type is missing. Example: --entity-type topics, or --topic orders",
                );
            }
            [_] | [USERS, CLIENTS] | [CLIENTS, USERS] => {}
            [one, other] if one == other => return refused(format!("--entity-type {one} is given twice")),
            _ => return refused(format!("only {USERS} and {CLIENTS} go together, not {}", words.join(", "))),
        }
        if self.names.len() > self.kinds.len() {
            return refused("more entity names are given than entity types");
        }
        for name in self.names.iter().filter(|name| !name.is_empty()) {
            if self.first().is_of_brokers() && name.parse::<i32>().is_err() {
                return refused(format!("a broker's id is a number, not '{name}'"));
            }
            if self.first().words == IPS && (name.as_str(), 0).to_socket_addrs().is_err() {
                return refused(format!("'{name}' is no address, and no name that has one"));
            }
        }
        Ok(())
    }

    pub fn check_described(&self, matches: &ArgMatches) -> Result<(), ToolError> {
        let first = self.first();
        if !first.has_default() && text(matches, "entity-default").is_some() {
            return refused(format!("--entity-default: {} have no default", first.words));
        }
        if first.words == LOGGERS && self.name().is_none_or(str::is_empty) {
            return refused("--describe of broker-loggers needs a broker: --broker-logger 1");
        }
        Ok(())
    }

    pub fn check_altered(&self) -> Result<(), ToolError> {
        let first = self.first();
        let default = if first.has_default() { " or its default" } else { "" };
        let has_name = self.names.iter().any(|name| !name.is_empty());
        if !has_name && (self.names.is_empty() || !first.has_default()) {
            return refused(format!(
                "--alter of {} needs an entity's name{default}. Example: --{} NAME",
                first.words, first.flag
            ));
        }
        if self.names.len() < self.kinds.len() {
            return refused(format!("--alter needs a name or the default of both {USERS} and {CLIENTS}"));
        }
        Ok(())
    }

    pub fn first(&self) -> &'static Kind {
        self.kinds[0]
    }

    pub fn name(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }

    /// Kinds with their names; `None`: all of the kind.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static Kind, Option<&str>)> {
        let names = self.names.iter().map(|name| Some(name.as_str())).chain(std::iter::repeat(None));
        self.kinds.iter().copied().zip(names)
    }

    /// The users that are meant where no client is, and no default.
    pub fn users_alone(&self) -> Option<Vec<&str>> {
        let is_alone = self.first().words == USERS && self.kinds.len() == 1;
        let names = || self.names.iter().map(String::as_str).collect::<Vec<&str>>();
        (is_alone && !self.names.iter().any(String::is_empty)).then(names)
    }

    /// Whether users alone are meant, by name or not.
    pub fn is_of_users(&self) -> bool {
        self.kinds.len() == 1 && self.first().words == USERS
    }
}

/// `--entity-name` and `--entity-default`, in the order of the command line.
fn named(matches: &ArgMatches) -> Vec<String> {
    let of = |flag: &str| {
        let places: Vec<usize> = matches.indices_of(flag).into_iter().flatten().collect();
        places.into_iter().zip(texts(matches, flag).map(str::to_owned)).collect::<Vec<_>>()
    };
    let mut named = [of("entity-name"), of("entity-default")].concat();
    named.sort_by_key(|entry| entry.0);
    named.into_iter().map(|entry| entry.1).collect()
}
