//! Which quota applies to a client: the most specific one, in Kafka's order.
//!
//! | place | quota of | shared by |
//! |---|---|---|
//! | 1 | the user and the client id | the user's clients with this id |
//! | 2 | the user and any client id | the same |
//! | 3 | the user | the user's clients |
//! | 4 | any user and the client id | the user's clients with this id |
//! | 5 | any user and any client id | the same |
//! | 6 | any user | the user's clients |
//! | 7 | the client id | all clients with this id |
//! | 8 | any client id | the same |
//!
//! Each kind of quota is looked up by itself. A client without an id has the quotas of its user only.
//!
//! Source: KIP-55; Kafka `ClientQuotaManager.DefaultQuotaCallback`.

use barnabas_base::{Map, Text};
use barnabas_metadata::access::{ClientQuotas, QuotaValues, entity, quota};

/// What a quota limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Bytes of Produce requests per second.
    Produce,
    /// Bytes of records in answers to consumers, per second.
    Fetch,
    /// Hundredths of one thread's time.
    Request,
    /// Partitions that the controller creates or deletes, per second.
    Mutation,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Produce, Self::Fetch, Self::Request, Self::Mutation];

    /// Whether brokers charge it, for each request. The controller charges the other one.
    pub const fn is_of_brokers(self) -> bool {
        !matches!(self, Self::Mutation)
    }

    const fn key(self) -> &'static str {
        match self {
            Self::Produce => quota::PRODUCER_BYTE_RATE,
            Self::Fetch => quota::CONSUMER_BYTE_RATE,
            Self::Request => quota::REQUEST_PERCENTAGE,
            Self::Mutation => quota::CONTROLLER_MUTATION_RATE,
        }
    }
}

/// Whose use is added up: Kafka's metric tags `user` and `client-id`, of which one may be empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    pub user: Text,
    pub client_id: Text,
}

/// A client's limit of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    pub per_second: f64,
    pub account: Account,
}

/// One for each [`Kind`].
type Values = [Option<f64>; Kind::ALL.len()];

#[derive(Debug, Clone)]
struct Named<T> {
    named: Map<Text, T>,
    default: T,
}

impl<T: Default> Default for Named<T> {
    fn default() -> Self {
        Self { named: Map::default(), default: T::default() }
    }
}

impl<T: Default> Named<T> {
    fn entry(&mut self, name: Option<&Text>) -> &mut T {
        match name {
            Some(name) => self.named.entry(name.clone()).or_default(),
            None => &mut self.default,
        }
    }
}

#[derive(Debug, Clone, Default)]
struct OfUser {
    own: Values,
    clients: Named<Values>,
}

/// All quotas of clients, ready to be looked up.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    users: Named<OfUser>,
    clients: Named<Values>,
    is_any: bool,
}

impl Limits {
    /// Quotas of addresses are not among them.
    pub fn new(quotas: &ClientQuotas) -> Self {
        let mut limits = Self::default();
        for (of, values) in quotas {
            let values = read(values);
            let (user, client) = (of.get(entity::USER), of.get(entity::CLIENT_ID));
            let place = match (user, client) {
                (Some(user), Some(client)) => {
                    limits.users.entry(user.as_ref()).clients.entry(client.as_ref())
                }
                (Some(user), None) => &mut limits.users.entry(user.as_ref()).own,
                (None, Some(client)) => limits.clients.entry(client.as_ref()),
                (None, None) => continue,
            };
            *place = values;
            limits.is_any |=
                Kind::ALL.iter().zip(values).any(|(kind, value)| kind.is_of_brokers() && value.is_some());
        }
        limits
    }

    /// Whether any client has a limit that brokers charge.
    pub fn is_any(&self) -> bool {
        self.is_any
    }

    /// The limit of a client; `None`: it has none of this kind.
    pub fn of(&self, kind: Kind, user: &str, client_id: &str) -> Option<Limit> {
        let both = || Account { user: user.into(), client_id: client_id.into() };
        let of_user = || Account { user: user.into(), client_id: Text::default() };
        let of_client = || Account { user: Text::default(), client_id: client_id.into() };
        let limit = |per_second: f64, account: Account| Some(Limit { per_second, account });
        let of_clients = |clients: &Named<Values>| {
            let named = || clients.named.get(client_id)?[kind as usize];
            if client_id.is_empty() { None } else { named().or(clients.default[kind as usize]) }
        };
        for known in [self.users.named.get(user), Some(&self.users.default)].into_iter().flatten() {
            if let Some(per_second) = of_clients(&known.clients) {
                return limit(per_second, both());
            }
            if let Some(per_second) = known.own[kind as usize] {
                return limit(per_second, of_user());
            }
        }
        of_clients(&self.clients).and_then(|per_second| limit(per_second, of_client()))
    }
}

fn read(values: &QuotaValues) -> Values {
    Kind::ALL.map(|kind| values.get(kind.key()).copied().filter(|value| *value > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `user client value`, `*` for the default, `-` where the quota is not for that kind.
    fn limits(rows: &[(&str, &str, f64)]) -> Limits {
        let mut quotas = ClientQuotas::default();
        for (user, client, value) in rows {
            let part = |kind: &str, name: &str| match name {
                "-" => None,
                "*" => Some((Text::from(kind), None)),
                name => Some((Text::from(kind), Some(Text::from(name)))),
            };
            let of = [part(entity::USER, user), part(entity::CLIENT_ID, client)].into_iter().flatten();
            let values = [(Text::from(quota::PRODUCER_BYTE_RATE), *value)].into_iter().collect();
            quotas.insert(of.collect(), values);
        }
        Limits::new(&quotas)
    }

    fn told(limits: &Limits, user: &str, client: &str) -> String {
        limits.of(Kind::Produce, user, client).map_or("none".into(), |limit| {
            format!("{} {}/{}", limit.per_second, limit.account.user, limit.account.client_id)
        })
    }

    /// All places at once, then without the first, and so on.
    #[test]
    fn most_specific_quota_applies() {
        let all = [
            ("u", "c", 1.0),
            ("u", "*", 2.0),
            ("u", "-", 3.0),
            ("*", "c", 4.0),
            ("*", "*", 5.0),
            ("*", "-", 6.0),
            ("-", "c", 7.0),
            ("-", "*", 8.0),
        ];
        let expected = ["1 u/c", "2 u/c", "3 u/", "4 u/c", "5 u/c", "6 u/", "7 /c", "8 /c", "none"];
        for (place, expected) in expected.into_iter().enumerate() {
            assert_eq!(told(&limits(&all[place..]), "u", "c"), expected, "{place}");
        }
        let limits = limits(&all);
        for (user, client, expected) in [
            ("u", "d", "2 u/d"),
            ("v", "c", "4 v/c"),
            ("v", "d", "5 v/d"),
            ("u", "", "3 u/"),
            ("v", "", "6 v/"),
        ] {
            assert_eq!(told(&limits, user, client), expected, "{user} {client}");
        }
    }

    #[test]
    fn client_without_an_id_has_no_quota_of_client_ids() {
        assert_eq!(told(&limits(&[("-", "*", 8.0)]), "u", ""), "none");
        assert_eq!(told(&limits(&[("*", "*", 5.0), ("-", "*", 8.0)]), "u", ""), "none");
    }

    #[test]
    fn other_kind_and_address_limit_nothing() {
        let limits = limits(&[("u", "-", 3.0), ("-", "-", 9.0)]);
        assert_eq!(limits.of(Kind::Fetch, "u", "c"), None);
        assert!(limits.is_any() && !Limits::default().is_any());
        assert!(!self::limits(&[("-", "-", 9.0)]).is_any());
    }

    #[test]
    fn quota_of_mutations_limits_no_request_at_brokers() {
        let mut quotas = ClientQuotas::default();
        let of = [(Text::from(entity::USER), None)].into_iter().collect();
        quotas.insert(of, [(Text::from(quota::CONTROLLER_MUTATION_RATE), 2.0)].into_iter().collect());
        let limits = Limits::new(&quotas);
        assert!(!limits.is_any());
        assert_eq!(limits.of(Kind::Mutation, "u", "c").map(|limit| limit.per_second), Some(2.0));
    }
}
