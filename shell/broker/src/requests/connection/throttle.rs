//! Quotas of the connection's client: what a request used is charged when its answer is ready, the answer says how long
//! the client is throttled, and the connection is muted for so long: nothing more of it is read.
//!
//! Requests that were started before are answered meanwhile. Each is charged as well, and makes the wait longer.
//!
//! A Fetch over a quota is answered without its records, and the client asks for them again ([`charge_records`]).
//!
//! Different from Kafka: the time of a request is that of the connection's worker until the request was started. A
//! Fetch whose own time is the first that is too long, and a ShareFetch, are answered with their records.
//!
//! Source: KIP-124, KIP-219; Kafka `KafkaApis`, `RequestHandlerHelper`.

use super::Session;
use crate::node::cluster::callers::Caller;
use crate::node::workers::quotas::Limited;
use crate::requests::call::{Answer, Call};
use barnabas_api::Client;
use barnabas_api::k00_produce::forwarding::FORWARDING_CLIENT_ID;
use barnabas_api::throttled::{is_exempt, is_mutation, mutation_wait, set_throttle_time, share_record_bytes};
use barnabas_base::{DurationMs, MonotonicMs};
use barnabas_security::quotas::Kind;
use barnabas_wire::messages::FetchRequest;
use barnabas_wire::{ApiKey, ResponseBody};
use std::sync::Arc;
use std::time::Duration;

/// Hundredths of a thread's time in a nanosecond.
const PERCENT_PER_NANOSECOND: f64 = 100.0 / 1e9;

/// What a request has used, to be charged with its answer.
#[derive(Debug)]
pub(super) struct Charge {
    client: Arc<Client>,
    bytes: u32,
    worked_ns: u64,
    is_follower: bool,
}

impl Charge {
    /// `None`: no client is limited, or brokers and controllers ask such things of each other. A client that was denied
    /// such a thing is none of them, and is charged.
    ///
    /// # Source
    /// Kafka `RequestHandlerHelper.handleError`.
    pub fn of(session: &Session, api: ApiKey, bytes: u32, worked_ns: u64) -> Option<Self> {
        let is_denied = session.is_denied.take();
        // The controller's answer has the throttle time of a mutation.
        let is_throttled = session.node.workers.quotas.is_any() || is_mutation(api);
        if !is_throttled || (is_exempt(api) && !is_denied) {
            return None;
        }
        let client = session.known_client()?;
        if api == ApiKey::Produce && is_handed_on(session, &client) {
            return None;
        }
        let is_follower = api == ApiKey::Fetch && session.follows.get();
        Some(Self { client, bytes, worked_ns, is_follower })
    }
}

/// Whether a broker forwards a batch: its producer is charged where it sent it.
fn is_handed_on(session: &Session, client: &Client) -> bool {
    client.client_id.as_deref() == Some(FORWARDING_CLIENT_ID)
        && Caller::of(&session.node, &session.callers, client).is_broker()
}

/// Charges a request whose answer is ready.
pub(super) fn charge(session: &Session, charge: &Charge, answer: &mut Answer) {
    if charge.is_follower || matches!(answer, Answer::Close) {
        return;
    }
    let now = session.node.clock.monotonic();
    let quotas = &session.node.workers.quotas;
    let limited = session.limited(&charge.client, now);
    let bytes = match &*answer {
        Answer::Nothing => Some((Kind::Produce, f64::from(charge.bytes))),
        Answer::Reply(ResponseBody::Produce(_)) | Answer::Held(ResponseBody::Produce(_), _) => {
            Some((Kind::Produce, f64::from(charge.bytes)))
        }
        answer => answer.body().and_then(share_record_bytes).map(|bytes| (Kind::Fetch, bytes as f64)),
    };
    let mut longest = answer.body().and_then(mutation_wait).map(|wait| (Kind::Mutation, wait));
    let mut spend = |kind, used| {
        let wait = quotas.charge(&limited, kind, used, now);
        if wait.0 > longest.map_or(0, |(_, wait)| wait.0) {
            longest = Some((kind, wait));
        }
    };
    if let Some((kind, used)) = bytes {
        spend(kind, used);
    }
    if !matches!(answer, Answer::Nothing) {
        spend(Kind::Request, charge.worked_ns as f64 * PERCENT_PER_NANOSECOND);
    }
    let Some((kind, wait)) = longest else { return };
    quotas.throttled(kind, wait);
    session.mute_until(now.plus(wait));
    if let Answer::Reply(body) | Answer::Held(body, _) = answer {
        set_throttle_time(body, i32::try_from(wait.0).unwrap_or(i32::MAX));
    }
}

/// What the quotas make of an answer to a consumer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fetched {
    /// For so long its connection is muted.
    pub wait: DurationMs,
    /// It leaves without its records.
    pub is_withheld: bool,
}

/// Charges the records of an answer to a consumer.
pub fn charge_records(call: &Call, bytes: u64) -> Fetched {
    let session = &call.session;
    let quotas = &session.node.workers.quotas;
    if !quotas.is_any() {
        return Fetched::default();
    }
    let now = session.node.clock.monotonic();
    let limited = session.limited(&call.client, now);
    let worked = quotas.charge(&limited, Kind::Request, 0.0, now);
    let (kind, wait, is_withheld) = if worked.0 > 0 {
        (Kind::Request, worked, true)
    } else {
        let (wait, is_withheld) = quotas.charge_records(&limited, bytes as f64, now);
        (Kind::Fetch, wait, is_withheld)
    };
    if wait.0 > 0 {
        quotas.throttled(kind, wait);
        session.mute_until(now.plus(wait));
    }
    Fetched { wait, is_withheld }
}

/// A consumer with a quota gets at most what its windows hold at once: more would keep it waiting for longer than it
/// waits for an answer. Source: Kafka `ClientQuotaManager.getMaxValueInQuotaWindow`.
pub fn bound_fetch(call: &Call, request: &mut FetchRequest) {
    let quotas = &call.session.node.workers.quotas;
    if !quotas.is_any() || request.replica_id >= 0 || request.replica_state.replica_id >= 0 {
        return;
    }
    let limited = call.session.limited(&call.client, call.session.node.clock.monotonic());
    if let Some(per_second) = limited.per_second(Kind::Fetch) {
        // A float that is too large becomes the largest number.
        let most = (quotas.windows().largest_use(per_second) as i32).max(1);
        request.max_bytes = request.max_bytes.min(most);
        request.min_bytes = request.min_bytes.min(most);
    }
}

/// Waits until the connection is no longer muted. Returns whether it was.
pub(super) async fn unmuted(session: &Session) -> bool {
    let mut is_muted = false;
    loop {
        let until = session.muted_until();
        let left = until.since(session.node.clock.monotonic()).0;
        if until == MonotonicMs(0) || left <= 0 {
            return is_muted;
        }
        is_muted = true;
        tokio::time::sleep(Duration::from_millis(left.unsigned_abs())).await;
    }
}

impl Session {
    /// The limits of a client, looked up again when it or a quota has changed.
    fn limited(&self, client: &Arc<Client>, now: MonotonicMs) -> Limited {
        let quotas = &self.node.workers.quotas;
        let mut known = self.limited.borrow_mut();
        match &*known {
            Some(limited) if limited.is_of(client, quotas) => limited.clone(),
            _ => known.insert(quotas.limited(client, now)).clone(),
        }
    }
}
