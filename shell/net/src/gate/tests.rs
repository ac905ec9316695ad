use super::*;

const CLIENTS: Entrance = Entrance { listener: 0, is_reserved: false };
const BROKERS: Entrance = Entrance { listener: 1, is_reserved: true };

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

#[test]
fn places_are_counted_and_freed() {
    let limits = ConnectionLimits {
        connections_max: 3,
        connections_per_ip_max: Some(2),
        connections_per_ip_overrides: vec![(ip(9), 0)],
        ..Default::default()
    };
    let gate = Gate::new(limits);
    let one = gate.enter(ip(1), CLIENTS).expect("room");
    let _two = gate.enter(ip(1), CLIENTS).expect("room");
    assert_eq!(gate.enter(ip(1), CLIENTS).err(), Some(Refused::PerIp(2)));
    assert_eq!(gate.enter(ip(9), CLIENTS).err(), Some(Refused::PerIp(0)));
    let _three = gate.enter(ip(2), CLIENTS).expect("room");
    assert_eq!(gate.enter(ip(3), CLIENTS).err(), Some(Refused::Total(3)));
    drop(one);
    assert_eq!(gate.connections(), 2);
    assert!(gate.enter(ip(1), CLIENTS).is_ok());
}

#[test]
fn address_without_a_limit_leaves_a_quarter_to_others() {
    let gate = Gate::new(ConnectionLimits { connections_max: 1_000, ..Default::default() });
    let all_of = |last: u8| std::iter::from_fn(|| gate.enter(ip(last), CLIENTS).ok()).collect::<Vec<_>>();
    let first = all_of(1);
    assert_eq!((first.len(), gate.is_crowded()), (750, true));
    assert_eq!(gate.enter(ip(1), CLIENTS).err(), Some(Refused::Share { held: 750, free: 250 }));
    let second = all_of(2);
    assert_eq!(second.len(), 188);
    // With 62 left there is room for a third address, and a fourth.
    assert!(all_of(3).len() > 16 && all_of(4).len() > 16);
    drop(first);
    assert!(!gate.is_crowded());
    assert!(gate.enter(ip(1), CLIENTS).is_ok());
}

#[test]
fn few_places_go_to_one_address() {
    let gate = Gate::new(ConnectionLimits { connections_max: 5, ..Default::default() });
    let all: Vec<_> =
        (0..5).map(|_| gate.enter(ip(1), CLIENTS).expect("max.connections alone counts")).collect();
    assert_eq!((all.len(), gate.enter(ip(1), CLIENTS).err()), (5, Some(Refused::Total(5))));
}

#[test]
fn brokers_have_places_that_clients_do_not_take() {
    let limits = ConnectionLimits {
        connections_max: 4,
        reserved_max: 2,
        connections_per_ip_max: Some(100),
        ..Default::default()
    };
    let gate = Gate::new(limits);
    gate.set_peers(&[ip(2)]);
    let mut clients: Vec<_> = (0..4).map(|_| gate.enter(ip(1), CLIENTS).expect("room")).collect();
    assert_eq!(gate.enter(ip(1), CLIENTS).err(), Some(Refused::Total(4)));
    let brokers: Vec<_> = (0..2).map(|_| gate.enter(ip(2), BROKERS).expect("reserved")).collect();
    assert_eq!(gate.enter(ip(2), BROKERS).err(), Some(Refused::Total(6)));
    clients.pop();
    let third = gate.enter(ip(2), BROKERS).expect("a client's place");
    assert_eq!(gate.enter(ip(1), CLIENTS).err(), Some(Refused::Total(4)));
    drop((third, brokers));
    assert_eq!(gate.connections(), 3);
}

#[test]
fn strangers_leave_half_of_the_reserved_places_to_peers() {
    let limits = ConnectionLimits { connections_max: 100, reserved_max: 20, ..Default::default() };
    let gate = Gate::new(limits);
    gate.set_peers(&[ip(1)]);
    let mut held = Vec::new();
    for last in 2..=250 {
        held.extend(std::iter::from_fn(|| gate.enter(ip(last), BROKERS).ok()));
        held.extend(std::iter::from_fn(|| gate.enter(ip(last), CLIENTS).ok()));
    }
    assert_eq!(gate.connections(), 110);
    assert!(matches!(gate.enter(ip(9), BROKERS), Err(Refused::Total(110))));
    held.extend((0..10).map(|_| gate.enter(ip(1), BROKERS).expect("a peer's place")));
    assert_eq!(gate.enter(ip(1), BROKERS).err(), Some(Refused::Total(120)));
    drop(held);
    assert_eq!(gate.connections(), 0);
}

#[test]
fn address_beyond_its_rate_is_refused_for_the_second() {
    let gate = Gate::new(ConnectionLimits { per_ip_second_max: 3, ..Default::default() });
    let began = barnabas_clock::now();
    let enter = |last: u8, entrance, ms: u64| {
        gate.enter_at(ip(last), entrance, began + Duration::from_millis(ms)).map(drop)
    };
    // They are closed as soon as they are made: no limit on numbers sees them.
    assert_eq!([enter(1, CLIENTS, 0), enter(1, CLIENTS, 10), enter(1, CLIENTS, 20)], [Ok(()); 3]);
    assert_eq!(enter(1, CLIENTS, 30), Err(Refused::Rate(3)));
    assert_eq!([enter(2, CLIENTS, 30), enter(1, BROKERS, 30)], [Ok(()), Ok(())], "another, and a broker");
    assert_eq!(enter(1, CLIENTS, 900), Err(Refused::Rate(3)));
    assert_eq!(enter(1, CLIENTS, 1_100), Ok(()));
    assert_eq!(gate.connections(), 0);
}

#[test]
fn oldest_silent_connection_gives_its_place_to_a_new_one() {
    let limits =
        ConnectionLimits { connections_max: 100, connections_per_ip_max: Some(3), ..Default::default() };
    let gate = Gate::new(limits);
    let began = barnabas_clock::now();
    let enter = |ms: u64| gate.enter_at(ip(1), CLIENTS, began + Duration::from_millis(ms));
    let (speaks, silent, young) =
        (enter(0).expect("room"), enter(1).expect("room"), enter(400).expect("room"));
    assert!(speaks.first_request().came());
    assert_eq!(enter(500).err(), Some(Refused::PerIp(3)), "none has been silent for long");
    let new = enter(501).expect("the silent one's place");
    assert!(!silent.first_request().came(), "it comes too late");
    assert!(new.first_request().came());
    assert_eq!(enter(600).err(), Some(Refused::PerIp(3)), "the third may still speak");
    assert_eq!(gate.connections(), 3);
    drop(silent);
    assert_eq!(gate.connections(), 3, "it had no place any more");
    assert!(young.first_request().came());
    assert_eq!(enter(60_000).err(), Some(Refused::PerIp(3)), "all of them have spoken");
    assert!(gate.enter_at(ip(2), CLIENTS, began).is_ok(), "another address");
    drop((speaks, new, young));
    assert_eq!(gate.connections(), 0);
    assert!(gate.counts().per_ip.is_empty());
}

#[test]
fn silent_connections_of_others_do_not_give_way() {
    let limits = ConnectionLimits { connections_max: 4, reserved_max: 2, ..Default::default() };
    let gate = Gate::new(limits);
    let began = barnabas_clock::now();
    let late = began + Duration::from_secs(10);
    let silent: Vec<_> = (0..4).map(|_| gate.enter_at(ip(1), CLIENTS, began).expect("room")).collect();
    assert_eq!(gate.enter_at(ip(2), CLIENTS, late).err(), Some(Refused::Total(4)));
    gate.set_peers(&[ip(1)]);
    let peers: Vec<_> = (0..2).map(|_| gate.enter_at(ip(1), BROKERS, began).expect("room")).collect();
    assert_eq!(gate.enter_at(ip(1), BROKERS, late).err(), Some(Refused::Total(6)), "a client's is no node's");
    drop(silent);
    assert!(gate.enter_at(ip(1), BROKERS, late).is_ok());
    drop(peers);
}

#[tokio::test]
async fn connections_that_spoke_are_not_kept_in_mind() {
    let gate = Gate::new(ConnectionLimits::default());
    let silent = gate.enter(ip(1), CLIENTS).expect("room");
    for _ in 0..1_000 {
        assert!(gate.enter(ip(1), CLIENTS).expect("room").first_request().came());
    }
    assert!(gate.counts().per_ip[&ip(1)].openings.len() < 100);
    drop(silent);
}

#[test]
fn lowered_limit_closes_none_and_refuses_new_ones() {
    let limits = |connections_max, connections_per_ip_max| ConnectionLimits {
        connections_max,
        connections_per_ip_max,
        ..Default::default()
    };
    let gate = Gate::new(limits(10, None));
    let mut held: Vec<_> = (0..5).map(|_| gate.enter(ip(1), CLIENTS).expect("room")).collect();
    gate.set_limits(limits(3, None));
    assert_eq!(gate.connections(), 5);
    assert_eq!(gate.enter(ip(2), CLIENTS).err(), Some(Refused::Total(3)));
    held.truncate(2);
    held.push(gate.enter(ip(2), CLIENTS).expect("room again"));
    assert_eq!(gate.enter(ip(2), CLIENTS).err(), Some(Refused::Total(3)));
    gate.set_limits(limits(10, Some(1)));
    assert_eq!(gate.enter(ip(1), CLIENTS).err(), Some(Refused::PerIp(1)));
    assert!(gate.enter(ip(3), CLIENTS).is_ok());
    gate.set_limits(limits(10, None));
    assert!(gate.enter(ip(1), CLIENTS).is_ok());
    drop(held);
    assert_eq!(gate.connections(), 0);
}

#[test]
fn listener_has_a_limit_of_its_own() {
    let at = |listener| Entrance { listener, is_reserved: false };
    let limits = |max| ConnectionLimits { listeners_max: vec![usize::MAX, max], ..Default::default() };
    let gate = Gate::new(limits(2));
    let began = barnabas_clock::now();
    let late = began + Duration::from_secs(10);
    let other: Vec<_> = (0..3).map(|_| gate.enter_at(ip(1), at(0), began).expect("no limit")).collect();
    let first = gate.enter_at(ip(1), at(1), began).expect("room");
    let second = gate.enter_at(ip(1), at(1), began).expect("room");
    assert!(first.first_request().came() && second.first_request().came());
    // A silent connection of another listener makes no room on this one.
    assert_eq!(gate.enter_at(ip(1), at(1), late).err(), Some(Refused::Listener(2)));
    assert!(gate.enter_at(ip(1), at(2), late).is_ok(), "a listener behind the last limit");
    drop(first);
    let silent = gate.enter_at(ip(1), at(1), began).expect("room again");
    let new = gate.enter_at(ip(2), at(1), late).err();
    assert_eq!(new, Some(Refused::Listener(2)), "the silent one is another address's");
    let new = gate.enter_at(ip(1), at(1), late);
    assert!(new.is_err(), "the oldest of the address is on the other listener: {new:?}");
    gate.set_limits(limits(0));
    assert_eq!(gate.enter_at(ip(3), at(1), late).err(), Some(Refused::Listener(0)));
    drop((other, second, silent));
    assert_eq!(gate.connections(), 0);
}

/// At both limits, a silent connection of another listener gives no place on a listener that is full.
#[test]
fn listener_stays_within_its_limit_when_all_places_are_held() {
    let at = |listener| Entrance { listener, is_reserved: false };
    let limits = ConnectionLimits { connections_max: 2, listeners_max: vec![9, 1], ..Default::default() };
    let gate = Gate::new(limits);
    let began = barnabas_clock::now();
    let late = began + Duration::from_secs(10);
    let silent = gate.enter_at(ip(1), at(0), began).expect("room");
    let busy = gate.enter_at(ip(1), at(1), began).expect("room");
    assert!(busy.first_request().came());
    assert_eq!(gate.enter_at(ip(1), at(1), late).err(), Some(Refused::Listener(1)));
    drop((silent, busy));
}

/// The place that a connection takes over may be on another listener.
#[test]
fn place_given_away_is_counted_on_the_new_listener() {
    let at = |listener| Entrance { listener, is_reserved: false };
    let limits = ConnectionLimits {
        connections_max: 100,
        listeners_max: vec![1, 1],
        connections_per_ip_max: Some(1),
        ..Default::default()
    };
    let gate = Gate::new(limits);
    let began = barnabas_clock::now();
    let late = began + Duration::from_secs(10);
    let silent = gate.enter_at(ip(1), at(0), began).expect("room");
    let new = gate.enter_at(ip(1), at(1), late).expect("the silent one's place");
    assert_eq!(gate.enter_at(ip(2), at(1), late).err(), Some(Refused::Listener(1)));
    let other = gate.enter_at(ip(2), at(0), late).expect("the first listener is free");
    drop((silent, new, other));
    assert_eq!((gate.connections(), gate.counts().on_listener.clone()), (0, vec![0, 0]));
}
