//! What bounds deliveries beside credit: the peer's largest message, tags, and bytes that are held.

use super::*;

fn transfers(talk: &mut Talk) -> Vec<Transfer> {
    let mut found = Vec::new();
    talk.flush();
    while let Some(frame) = talk.heard.frame().expect("whole") {
        if let Some(Performative::Transfer(transfer)) = frame.body {
            found.push(transfer);
        }
    }
    found
}

#[test]
fn deliveries_without_outcome_have_different_tags() {
    let mut talk = Talk::ready(100);
    let link = talk.sender(2);
    for _ in 0..2 {
        talk.client.send(link, Bytes::from_static(b"the same")).expect("credit");
    }
    assert_eq!(talk.client.unsettled(), 2);
    let tags: Vec<_> =
        transfers(&mut talk).into_iter().map(|sent| sent.delivery_tag.expect("a tag")).collect();
    assert_eq!(tags.len(), 2);
    assert_ne!(tags[0], tags[1]);
    talk.said(told(0, Some(1), true, Outcome::Accepted));
    assert_eq!(talk.client.unsettled(), 0);
}

#[test]
fn message_above_the_peers_maximum_is_not_sent() {
    let mut talk = Talk::ready(100);
    let link = talk.sender_of(2, Some(10));
    let refused = talk.client.send(link, vec![7; 11].into());
    assert_eq!(refused, Err(NotSent::TooLarge { bytes_max: 10 }));
    assert_eq!((talk.client.credit(link), transfers(&mut talk).len()), (2, 0), "nothing has changed");
    talk.client.send(link, vec![7; 10].into()).expect("as large as it may be");
    let mut talk = Talk::ready(100);
    let link = talk.sender_of(1, Some(0));
    talk.client.send(link, vec![7; 11].into()).expect("0 is no maximum");
}

#[test]
fn held_payloads_close_the_window_and_release_opens_it() {
    let mut talk = Talk::ready_with(100, ClientConfig { held_bytes_max: 4 * 1024, ..config(Login::None) });
    let link = talk.receiver();
    talk.client.grant(link, 100);
    let Performative::Flow(granted) = talk.body() else { panic!("no flow") };
    assert_eq!(granted.incoming_window, 4, "four frames at their largest");
    let mut id = 0;
    while talk.client.session.incoming.left > 0 {
        talk.say(transfer(Some(id), false), &[0; 990]).expect("within the window");
        id += 1;
    }
    while !talk.is_quiet() {}
    let beyond = transfer(Some(id), false);
    let held: usize = std::iter::from_fn(|| talk.client.next_event())
        .map(|event| match event {
            Event::Message(delivery) => delivery.payload.len(),
            _ => 0,
        })
        .sum();
    assert_eq!(held, id as usize * 990);
    assert!(held <= 4 * 1024);
    talk.client.release(held);
    let Performative::Flow(flow) = talk.body() else { panic!("no flow") };
    assert_eq!(flow.incoming_window, 4);
    talk.say(beyond.clone(), &[0; 990]).expect("the window is open");
    for id in 0..4 {
        if talk.say(transfer(Some(100 + id), false), &[0; 990]).is_err() {
            return;
        }
    }
    panic!("a peer that passes the window was borne");
}

#[test]
fn message_of_the_largest_size_comes_through_the_smallest_window() {
    let mut talk = Talk::ready_with(100, ClientConfig { held_bytes_max: 0, ..config(Login::None) });
    let link = talk.receiver();
    talk.client.grant(link, 10);
    for id in 0..5 {
        talk.say(transfer(Some(id), true), &[0; 900]).expect("the first frame");
        talk.say(transfer(None, false), &[0; 900]).expect("the second");
        let Some(Event::Message(delivery)) = talk.client.next_event() else { panic!("no message") };
        assert_eq!((delivery.payload.len(), delivery.size_bytes), (1000, 1800));
        talk.client.release(delivery.payload.len());
    }
}
