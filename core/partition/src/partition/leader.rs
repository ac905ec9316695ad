//! A leader and its followers: their fetches, what the controller is asked because of them, what consumers read
//! elsewhere.
//!
//! Replication path 2 of 3. Before: a follower's Fetch (core/api/src/k01_fetch.rs). After: core/storage reads what
//! [`FollowerRead::Records`] allows.
//!
//! Source: Kafka `Partition.fetchRecords`, `maybeExpandIsr`, `maybeShrinkIsr`,
//! `ReplicaManager.findPreferredReadReplica`.

use barnabas_base::{BrokerEpoch, BrokerId, LeaderEpoch, LeaderEpochs, MonotonicMs, Offset};

use super::{Partition, Role};
use crate::divergence::diverging;
use crate::leading::Followers;
use crate::{Effect, FollowerFetch, FollowerRead, Isolation, IsrAnswer, IsrChange, IsrNext, Refusal};

impl Partition {
    /// A follower asks for what lies at `fetch.offset`; `epochs` are those of this replica's log. What lies below
    /// counts as safe with it, and so the high watermark may move; the controller may have to be asked to let it join
    /// ([`Effect::AlterIsr`]).
    ///
    /// # Errors
    /// None of these changes anything.
    /// - As [`Self::check_leader`]: a follower of another epoch is refused.
    /// - [`Refusal::UnknownReplica`] (75, or 6 where the follower names no leader epoch): not, or not yet, a replica.
    /// - [`Refusal::StaleReplica`] (6): from a former life of the broker (KIP-903).
    /// - [`Refusal::OutOfRange`] (1).
    pub fn follower_fetch(
        &mut self,
        fetch: &FollowerFetch,
        epochs: &LeaderEpochs,
        effects: &mut Vec<Effect>,
    ) -> Result<FollowerRead, Refusal> {
        self.check_leader(fetch.leader_epoch)?;
        let (log_end, high_watermark) = (self.log_end, self.high_watermark);
        let bounds = self.bounds_of(Isolation::LogEnd);
        let Role::Leader(leading) = &mut self.role else { return Err(Refusal::NotLeader) };
        let (epoch_start, needed) = (leading.epoch_start, leading.needed());
        let unknown = Refusal::UnknownReplica(fetch.broker);
        let unknown = if fetch.leader_epoch.is_some() { unknown } else { Refusal::NotLeader };
        let followers = leading.followers_mut().ok_or(unknown)?;
        followers.check(fetch).map_err(|refusal| match refusal {
            Refusal::UnknownReplica(_) => unknown,
            other => other,
        })?;
        if let Some(last) = fetch.last_epoch
            && let Some((epoch, end)) = diverging(epochs, log_end, last, fetch.offset)
        {
            if end == Offset::NONE {
                let (start, end) = (bounds.log_start, bounds.log_end);
                return Err(Refusal::OutOfRange { asked: fetch.offset, start, end });
            }
            return Ok(FollowerRead::Diverging { epoch, end });
        }
        bounds.check(fetch.offset)?;
        if followers.fetched(fetch, log_end, high_watermark, epoch_start, needed) {
            effects.push(Effect::AlterIsr);
        }
        let holds_back = followers.holds_back(fetch.broker, fetch.offset);
        let end = if holds_back { fetch.offset } else { bounds.end };
        self.advance(effects);
        let Self { high_watermark, last_stable, .. } = *self;
        Ok(FollowerRead::Records(crate::Bounds { end, high_watermark, last_stable, ..bounds }))
    }

    /// Whether the high watermark waits for `broker`, which is in sync or about to be: then no quota holds it up, or
    /// producers would wait for that quota.
    pub fn waits_for(&self, broker: BrokerId) -> bool {
        self.followers().is_some_and(|followers| followers.waits_for(broker))
    }

    /// Looks for followers that have fallen behind. To be called every half of `replica.lag.time.max.ms` where this
    /// broker leads.
    pub fn check_lag(&mut self, now: MonotonicMs, effects: &mut Vec<Effect>) {
        let log_end = self.log_end;
        let Some(followers) = self.followers_mut() else { return };
        if followers.check_lag(log_end, now) {
            effects.push(Effect::AlterIsr);
        }
        self.advance(effects);
    }

    /// What the controller is to be asked, or has been asked and has not settled.
    pub fn isr_change(&self) -> Option<&IsrChange> {
        self.followers()?.change()
    }

    /// What the controller said to the question of that number. An answer to another one is ignored.
    pub fn isr_answered(
        &mut self,
        number: u32,
        answer: &IsrAnswer<'_>,
        now: MonotonicMs,
        effects: &mut Vec<Effect>,
    ) -> IsrNext {
        let Some(followers) = self.followers_mut() else { return IsrNext::Settled };
        let next = followers.answered(number, answer, now);
        self.advance(effects);
        next
    }

    /// A broker was registered again, fenced (`None`) or unfenced: the high watermark does not wait for a follower
    /// that cannot join the ISR.
    pub fn set_registered(
        &mut self,
        broker: BrokerId,
        registered: Option<BrokerEpoch>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(followers) = self.followers_mut() else { return };
        followers.set_registered(broker, registered);
        self.advance(effects);
    }

    /// Below it, records are deleted on every replica whose broker is there: what DeleteRecords waits for.
    ///
    /// # Errors
    /// As [`Self::check_leader`].
    pub fn low_watermark(&self) -> Result<Offset, Refusal> {
        self.check_leader(None)?;
        let alive = self.followers().into_iter().flat_map(Followers::iter);
        let alive = alive.filter(|follower| follower.state.registered.is_some());
        Ok(alive.map(|follower| follower.log_start).fold(self.log_start, Offset::min))
    }

    /// The replica that a consumer in `rack` should read `offset` from, if that is not this one: in its rack, in sync,
    /// with the offset, and of those the one that has come furthest. `rack_of` tells the rack of a broker that
    /// consumers can reach.
    ///
    /// # Source
    /// KIP-392; Kafka `RackAwareReplicaSelector`.
    pub fn preferred_read_replica<'a>(
        &self,
        me: BrokerId,
        rack: &str,
        offset: Offset,
        rack_of: impl Fn(BrokerId) -> Option<&'a str>,
    ) -> Option<BrokerId> {
        if rack.is_empty() || rack_of(me) == Some(rack) {
            return None;
        }
        let holds = |end: Offset, start: Offset| (start..=end).contains(&offset) && end >= Offset::ZERO;
        let near = self.followers()?.iter().filter(|follower| {
            follower.state.in_sync
                && holds(follower.end, follower.log_start)
                && rack_of(follower.state.broker) == Some(rack)
        });
        let best = near.max_by_key(|follower| (follower.end, follower.caught_up, follower.state.broker))?;
        Some(best.state.broker)
    }

    /// Where the largest epoch up to `epoch` ends, for OffsetForLeaderEpoch. Both −1: not known.
    ///
    /// # Errors
    /// As [`Self::check_leader`].
    pub fn epoch_end(
        &self,
        epoch: LeaderEpoch,
        current: Option<LeaderEpoch>,
        epochs: &LeaderEpochs,
    ) -> Result<(LeaderEpoch, Offset), Refusal> {
        self.check_leader(current)?;
        Ok(epochs.end_offset_for(epoch, self.log_end))
    }

    fn followers(&self) -> Option<&Followers> {
        match &self.role {
            Role::Leader(leading) => leading.followers(),
            Role::Follower(_) | Role::AsksAgain(_) | Role::Failed => None,
        }
    }

    fn followers_mut(&mut self) -> Option<&mut Followers> {
        match &mut self.role {
            Role::Leader(leading) => leading.followers_mut(),
            Role::Follower(_) | Role::AsksAgain(_) | Role::Failed => None,
        }
    }
}
