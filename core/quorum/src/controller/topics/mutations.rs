//! `controller_mutation_rate`: how many partitions a client creates and deletes per second.
//!
//! Versions that know THROTTLING_QUOTA_EXCEEDED are refused what exceeds it, topic by topic; older ones are throttled
//! alone. What is only validated counts too. A request that no client asked for is not limited.
//!
//! The buckets are the active controller's own: its successor begins with full ones, as in Kafka.
//!
//! Source: KIP-599; Kafka `ControllerMutationQuotaManager`, `ControllerRequestContext.applyPartitionChangeQuota`.

use std::cell::Cell;

use barnabas_base::{DurationMs, ErrorCode, Map, MonotonicMs};
use barnabas_metadata::Image;
use barnabas_metadata::access::ClientQuotas;
use barnabas_metadata::config::BrokerConfig;
use barnabas_security::quotas::{Account, Bucket, Kind, Limits, Windows};
use barnabas_wire::RequestBody;

use crate::controller::{Asked, Refusal};

/// Further clients have a full bucket in each request.
const BUCKETS_MAX: usize = 10_000;

/// The quotas, and what is left of them. See the file's header.
#[derive(Debug)]
pub(crate) struct Mutations {
    windows: Windows,
    /// What `limits` were read from.
    quotas: ClientQuotas,
    limits: Limits,
    buckets: Map<Account, Bucket>,
}

/// What the client of one request may still do; by default everything.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    of: Option<Limited>,
}

#[derive(Debug)]
struct Limited {
    account: Account,
    per_second: f64,
    windows: Windows,
    is_strict: bool,
    now: MonotonicMs,
    bucket: Cell<Bucket>,
    wait: Cell<DurationMs>,
}

impl Mutations {
    pub fn new(config: &BrokerConfig) -> Self {
        let (count, seconds) =
            (config.int("controller.quota.window.num"), config.int("controller.quota.window.size.seconds"));
        let windows = Windows::new(count, seconds);
        Self { windows, quotas: ClientQuotas::default(), limits: Limits::default(), buckets: Map::default() }
    }

    /// What the client of this request may do; without limit where it changes no partitions.
    pub fn budget(
        &mut self,
        image: &Image,
        request: &RequestBody,
        asked: &Asked,
        now: MonotonicMs,
    ) -> Budget {
        let (Some(since), Some(client)) = (strict_since(request), &asked.client) else {
            return Budget::default();
        };
        if !self.quotas.ptr_eq(&image.quotas) {
            (self.quotas, self.limits) = (image.quotas.clone(), Limits::new(&image.quotas));
        }
        let user = client.principal.split_once(':').map_or("", |(_, name)| name);
        let client_id = client.client_id.as_deref().unwrap_or_default();
        let Some(limit) = self.limits.of(Kind::Mutation, user, client_id) else { return Budget::default() };
        let (per_second, windows) = (limit.per_second, self.windows);
        let known = self.buckets.get(&limit.account).copied();
        let bucket = known.unwrap_or_else(|| Bucket::full(per_second, now, windows));
        Budget {
            of: Some(Limited {
                account: limit.account,
                per_second,
                windows,
                is_strict: asked.version >= since,
                now,
                bucket: Cell::new(bucket),
                wait: Cell::default(),
            }),
        }
    }

    /// Notes what became of a budget.
    pub fn settle(&mut self, budget: Budget) {
        let Some(Limited { account, bucket, now, windows, .. }) = budget.of else { return };
        if self.buckets.len() >= BUCKETS_MAX && !self.buckets.contains_key(&account) {
            self.buckets.retain(|_, bucket| !bucket.is_full(now, windows));
        }
        if self.buckets.len() < BUCKETS_MAX || self.buckets.contains_key(&account) {
            self.buckets.insert(account, bucket.get());
        }
    }
}

/// From which version on a request is refused what exceeds the quota; `None`: it has none.
fn strict_since(request: &RequestBody) -> Option<i16> {
    match request {
        RequestBody::CreateTopics(_) => Some(6),
        RequestBody::DeleteTopics(_) => Some(5),
        RequestBody::CreatePartitions(_) => Some(3),
        _ => None,
    }
}

impl Budget {
    /// Takes partitions that are created or deleted.
    ///
    /// # Errors
    /// THROTTLING_QUOTA_EXCEEDED.
    pub fn take(&self, partitions: usize) -> Result<(), Refusal> {
        let Some(of) = &self.of else { return Ok(()) };
        let mut bucket = of.bucket.get();
        let used = partitions as f64;
        let taken = match of.is_strict {
            true => bucket.take_or_refuse(used, of.per_second, of.now, of.windows),
            false => {
                of.wait.set(bucket.take(used, of.per_second, of.now, of.windows));
                Ok(())
            }
        };
        of.bucket.set(bucket);
        taken.map_err(|wait| {
            of.wait.set(wait);
            Refusal::new(ErrorCode::ThrottlingQuotaExceeded, "The throttling quota has been exceeded.")
        })
    }

    /// How long the client is throttled.
    pub fn throttle_ms(&self) -> i32 {
        let wait = self.of.as_ref().map_or(DurationMs(0), |of| of.wait.get());
        i32::try_from(wait.0).unwrap_or(i32::MAX)
    }
}
