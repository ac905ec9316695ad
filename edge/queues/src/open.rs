//! A link that a peer attaches: what it asks for, and the task that serves it until it ends.
//!
//! Before: connection.rs. After: put.rs, get.rs, browse.rs, temporary.rs, discharge.rs. Between them: link.rs.

use crate::link::{FromLink, Opening};
use crate::refusal::{INVALID, NOT_IMPLEMENTED, condition};
use crate::{browse, discharge, get, put, temporary};
use barnabas_amqp::{Attach, Condition, Selector, Terminus};
use barnabas_queue_access::Address;

/// What a peer asks for with a link.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    Put(Address),
    Get(Address),
    Browse(Address, Option<Selector>),
    PutTemporary,
    GetTemporary,
    Transact,
}

/// Reads an attach.
///
/// # Errors
/// Why there is no such link.
pub fn judge(attach: &Attach) -> Result<Wanted, Condition> {
    if attach.is_receiver {
        judge_source(attach.source.as_ref())
    } else {
        judge_target(attach.target.as_ref())
    }
}

fn judge_target(target: Option<&Terminus>) -> Result<Wanted, Condition> {
    let target = target.ok_or_else(|| Condition::new(INVALID, "the link has no target"))?;
    if target.is_coordinator {
        return Ok(Wanted::Transact);
    }
    if target.is_dynamic {
        return Ok(Wanted::PutTemporary);
    }
    let Some(address) = &target.address else {
        return Err(missing("a link without a target address (ANONYMOUS-RELAY) is not there"));
    };
    named(address).map(Wanted::Put)
}

fn judge_source(source: Option<&Terminus>) -> Result<Wanted, Condition> {
    let source = source.ok_or_else(|| Condition::new(INVALID, "the link has no source"))?;
    let browses = source.distribution_mode.as_deref() == Some("copy");
    let selector = selector(source, browses)?;
    if source.capabilities.iter().any(|name| name == "topic") {
        return Err(missing(
            "subscriptions to topics (capability topic) are not there: receive from the queue",
        ));
    }
    if source.is_dynamic {
        return Ok(Wanted::GetTemporary);
    }
    let address =
        source.address.as_ref().ok_or_else(|| Condition::new(INVALID, "the source has no address"))?;
    let address = named(address)?;
    Ok(if browses { Wanted::Browse(address, selector) } else { Wanted::Get(address) })
}

/// Of a link that looks at a queue. A share group gives a record to any member, so one that a receiver's selector
/// leaves out would come to it again and again, be counted each time, and be gone before another receiver has seen it.
fn selector(source: &Terminus, browses: bool) -> Result<Option<Selector>, Condition> {
    let mut found = None;
    for (name, value) in &source.filter {
        match Selector::of_filter(value) {
            Some(Ok(selector)) if browses && !source.is_dynamic => found = Some(selector),
            Some(Ok(_)) => {
                return Err(missing(
                    "a selector is there for links that browse (distribution-mode copy), not for receivers: a share \
                     group gives each record to any member",
                ));
            }
            Some(Err(error)) => return Err(Condition::new(INVALID, error.to_string())),
            None => {
                let words = format!(
                    "the filter '{name}' is not there: a share group gives each record to any member"
                );
                return Err(missing(&words));
            }
        }
    }
    Ok(found)
}

fn named(text: &str) -> Result<Address, Condition> {
    Address::parse(text).ok_or_else(|| {
        Condition::new(
            INVALID,
            format!("the address '{text}' names no topic. Expected TOPIC or TOPIC::GROUP"),
        )
    })
}

fn missing(words: &str) -> Condition {
    Condition::new(NOT_IMPLEMENTED, words)
}

/// Serves a link until it ends, from either side.
pub async fn serve(opening: Opening, wanted: Wanted) {
    let (link, reports) = (opening.link, opening.reports.clone());
    let served = match wanted {
        Wanted::Put(address) => put::serve(opening, &address.topic, None).await,
        Wanted::Get(address) => get::serve(opening, &address, None).await,
        Wanted::Browse(address, selector) => browse::serve(opening, &address, selector).await,
        Wanted::PutTemporary => temporary::serve(opening, false).await,
        Wanted::GetTemporary => temporary::serve(opening, true).await,
        Wanted::Transact => discharge::serve(opening).await,
    };
    if let Err(error) = served {
        // The connection may be gone.
        let _ = reports.send(FromLink::Ended(link, condition(&error))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_amqp::Value;

    fn attach(is_receiver: bool, terminus: Terminus) -> Attach {
        let (source, target) = if is_receiver { (Some(terminus), None) } else { (None, Some(terminus)) };
        Attach { is_receiver, source, target, ..Attach::default() }
    }

    fn at(address: &str) -> Terminus {
        Terminus { address: Some(address.to_owned()), ..Terminus::default() }
    }

    #[test]
    fn link_is_what_its_terminus_says() {
        let address = Address::parse("q").expect("whole");
        assert_eq!(judge(&attach(false, at("q"))), Ok(Wanted::Put(address.clone())));
        assert_eq!(judge(&attach(true, at("q"))), Ok(Wanted::Get(address.clone())));
        let copy = Terminus { distribution_mode: Some("copy".to_owned()), ..at("q") };
        assert_eq!(judge(&attach(true, copy)), Ok(Wanted::Browse(address, None)));
        let dynamic = Terminus { is_dynamic: true, ..Terminus::default() };
        assert_eq!(judge(&attach(true, dynamic.clone())), Ok(Wanted::GetTemporary));
        assert_eq!(judge(&attach(false, dynamic)), Ok(Wanted::PutTemporary));
        let coordinator = Terminus { is_coordinator: true, ..Terminus::default() };
        assert_eq!(judge(&attach(false, coordinator)), Ok(Wanted::Transact));
    }

    #[test]
    fn selector_is_for_links_that_browse() {
        let filter = |text: &str| {
            let value = Value::described(0x0000_468C_0000_0004, Value::string(text));
            vec![("jms-selector".to_owned(), value)]
        };
        let copy =
            |text| Terminus { distribution_mode: Some("copy".to_owned()), filter: filter(text), ..at("q") };
        let browse = judge(&attach(true, copy("n > 1")));
        assert!(matches!(browse, Ok(Wanted::Browse(_, Some(_)))), "{browse:?}");
        assert_eq!(judge(&attach(true, copy("n >"))).expect_err("refused").condition, INVALID);
        let receiver = Terminus { filter: filter("n > 1"), ..at("q") };
        assert_eq!(judge(&attach(true, receiver)).expect_err("refused").condition, NOT_IMPLEMENTED);
        let dynamic = Terminus { is_dynamic: true, ..copy("n > 1") };
        assert_eq!(judge(&attach(true, dynamic)).expect_err("refused").condition, NOT_IMPLEMENTED);
    }

    #[test]
    fn what_is_missing_is_refused_by_its_condition() {
        let filter = vec![("jms-selector".to_owned(), Value::Null)];
        for (is_receiver, terminus) in [
            (false, Terminus::default()),
            (true, Terminus { filter, ..at("q") }),
            (true, Terminus { capabilities: vec!["topic".to_owned()], ..at("q") }),
        ] {
            let refused = judge(&attach(is_receiver, terminus.clone())).expect_err("refused");
            assert_eq!(refused.condition, NOT_IMPLEMENTED, "{terminus:?}");
        }
        let nameless = judge(&attach(true, at("::"))).expect_err("refused");
        assert_eq!(nameless.condition, INVALID);
    }
}
