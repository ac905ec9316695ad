use super::*;
use barnabas_base::Text;

const CLIENTS: usize = 0;
const BROKERS: usize = 1;

fn connections() -> Connections {
    Connections::new(Windows::new(11, 1), &[false, true])
}

fn at(ms: i64) -> MonotonicMs {
    MonotonicMs(1000).plus(DurationMs(ms))
}

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn quotas(rows: &[(Option<&str>, f64)]) -> OfAddresses {
    let mut quotas = ClientQuotas::default();
    for (name, value) in rows {
        let of = [(Text::from(entity::IP), name.map(Text::from))].into_iter().collect();
        quotas.insert(of, [(Text::from(quota::CONNECTION_CREATION_RATE), *value)].into_iter().collect());
    }
    OfAddresses::new(&quotas)
}

/// Connections of one listener at once, until one waits; and how long.
fn until_one_waits(connections: &mut Connections, listener: usize, ms: i64) -> (usize, i64) {
    let waits = (0..1000).map(|count| (count, connections.arrive(listener, at(ms)).0));
    waits.into_iter().find(|(_, wait)| *wait > 0).unwrap_or((1000, 0))
}

/// The first connections count as spread over ten seconds: a rate of 5 lets 50 pass at once. The next makes the rate
/// 5.1, and the wait (5.1 - 5) / 5 of ten seconds.
#[test]
fn connection_over_the_brokers_rate_waits() {
    let mut connections = connections();
    connections.limit(5.0, &[f64::INFINITY; 2]);
    assert_eq!(until_one_waits(&mut connections, CLIENTS, 0), (50, 200));
    assert_eq!(until_one_waits(&mut connections, BROKERS, 0), (1000, 0), "the protected listener");
    // Those that waited count: Kafka takes them.
    assert_eq!(connections.arrive(CLIENTS, at(0)).0, 400);
    for _ in 0..100 {
        connections.arrive(CLIENTS, at(0));
    }
    assert_eq!(connections.arrive(CLIENTS, at(0)).0, 1000, "one window at most");
    assert_eq!(connections.arrive(CLIENTS, at(60_000)).0, 0);
}

#[test]
fn connection_waits_for_its_listener_or_the_broker_whichever_is_longer() {
    let mut connections = connections();
    connections.limit(50.0, &[5.0, 2.0]);
    assert_eq!(until_one_waits(&mut connections, CLIENTS, 0), (50, 200));
    assert_eq!(until_one_waits(&mut connections, BROKERS, 0), (20, 500), "its own rate applies to it");
    connections.limit(0.0, &[f64::INFINITY; 2]);
    assert_eq!(connections.arrive(CLIENTS, at(0)).0, 1000, "a rate of 0");
}

#[test]
fn connection_over_the_quota_of_its_address_is_not_counted() {
    let mut connections = connections();
    connections.limit_addresses(quotas(&[(Some("10.0.0.1"), 3.0), (None, 2.0)]));
    let admitted = |connections: &mut Connections, last, ms| {
        (0..100).take_while(|_| connections.admit(CLIENTS, ip(last), at(ms)).is_ok()).count()
    };
    assert_eq!(admitted(&mut connections, 1, 0), 30);
    // (3.1 - 3) / 3 of ten seconds, each time: the refused ones are not counted.
    let over = OverQuota { per_second_max: 3.0, wait: DurationMs(333) };
    assert_eq!([1, 1, 1].map(|last| connections.admit(CLIENTS, ip(last), at(0))), [Err(over); 3]);
    assert_eq!(admitted(&mut connections, 2, 0), 20, "the default");
    assert_eq!(connections.admit(CLIENTS, "::ffff:10.0.0.1".parse().unwrap(), at(0)), Err(over));
    assert_eq!(admitted(&mut connections, 1, 60_000), 30);

    connections.limit_addresses(quotas(&[(Some("10.0.0.2"), 5.0), (Some("db.example"), 1.0)]));
    assert_eq!(admitted(&mut connections, 1, 60_000), 100, "it has none any more");
    assert_eq!((connections.has_quota(ip(1)), connections.has_quota(ip(2))), (false, true));
}

#[test]
fn addresses_beyond_the_bound_share_an_account_until_others_are_idle() {
    let mut connections = connections();
    connections.limit_addresses(quotas(&[(None, 1.0)]));
    let numbered = |number: usize| IpAddr::from(u32::try_from(number).unwrap().to_be_bytes());
    for number in 0..ADDRESSES_MAX {
        assert_eq!(connections.admit(CLIENTS, numbered(number), at(0)), Ok(()));
    }
    let further = |connections: &mut Connections, ms| {
        let from = |number: usize| numbered(ADDRESSES_MAX + number);
        (0..40).filter(|number| connections.admit(CLIENTS, from(*number), at(ms)).is_ok()).count()
    };
    assert_eq!(further(&mut connections, 10), 10);
    assert_eq!(connections.addresses.len(), ADDRESSES_MAX);
    assert_eq!(connections.admit(CLIENTS, numbered(7), at(10)), Ok(()), "its own");
    assert_eq!(further(&mut connections, 30_000), 40);
    assert!(connections.addresses.len() <= 41);
}

#[test]
fn figures_are_rates_and_averages_of_waits_that_are_not_zero() {
    let mut connections = connections();
    connections.limit(f64::INFINITY, &[1.0, f64::INFINITY]);
    connections.limit_addresses(quotas(&[(Some("10.0.0.1"), 1.0), (Some("10.0.0.2"), 10.0)]));
    assert_eq!(connections.figures(CLIENTS, at(0)).unwrap().wait_ms, 0.0);
    for _ in 0..12 {
        connections.arrive(CLIENTS, at(0));
        let _ = connections.admit(CLIENTS, ip(1), at(0));
    }
    connections.admit(CLIENTS, ip(2), at(0)).expect("within its quota");
    let figures = connections.figures(CLIENTS, at(0)).unwrap();
    // Waits of 1 s for the 11th and 12th; an address's wait of 1 s for each.
    assert_eq!(figures, ListenerFigures { per_second: 1.2, wait_ms: 1000.0, address_wait_ms: 1000.0 });
    assert_eq!((connections.per_second(at(0)), connections.figures(9, at(0))), (1.2, None));
    assert_eq!(connections.busiest(5, at(0)), [(ip(1), 1.0), (ip(2), 0.1)]);
    assert_eq!(connections.busiest(1, at(0)), [(ip(1), 1.0)]);
}
