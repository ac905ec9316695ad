//! Does the work that is due, and computes when work is due next.

use super::PipelinedProducer;
use super::link::Outbound;
use super::outcome::SWEEP;
use crate::ClientError;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

impl PipelinedProducer {
    /// Does the work that is due. Then waits, at most for `wait`, until another delivery is complete.
    ///
    /// # Errors
    /// A codec failed, or the topic has no partitions any more. What the cluster refuses is among the deliveries.
    pub async fn turn(&mut self, wait: Duration) -> Result<(), ClientError> {
        let before = self.deliveries.len();
        if wait.is_zero() {
            poll_fn(|cx| Poll::Ready(self.poll_once(cx))).await?;
            if self.deliveries.len() > before {
                return Ok(());
            }
            // Only a task that steps back lets the runtime ask the system which sockets have something.
            tokio::task::yield_now().await;
            return poll_fn(|cx| Poll::Ready(self.poll_once(cx))).await;
        }
        let until = Instant::now() + wait;
        let mut sleep = pin!(tokio::time::sleep_until(until.into()));
        poll_fn(|cx| {
            loop {
                self.poll_once(cx)?;
                let now = Instant::now();
                if self.deliveries.len() > before || now >= until {
                    return Poll::Ready(Ok(()));
                }
                let next = self.timer().map_or(until, |timer| timer.min(until));
                sleep.as_mut().reset(next.into());
                if sleep.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    fn poll_once(&mut self, cx: &mut Context<'_>) -> Result<(), ClientError> {
        let now = Instant::now();
        self.is_due = false;
        self.poll_errands(cx, now)?;
        self.end_lingers(now)?;
        self.end_backoffs(now);
        if now >= self.sweep_at {
            self.sweep(now)?;
            self.sweep_at = now + SWEEP;
        }
        loop {
            let mut events = std::mem::take(&mut self.events);
            for link in &mut self.links {
                link.poll(&self.config, cx, &mut events);
            }
            for event in events.drain(..) {
                self.take_in(event, now)?;
            }
            self.events = events;
            let mut is_moving = false;
            for link in 0..self.links.len() {
                is_moving |= self.send_ready(link, now)?;
            }
            if !is_moving {
                return Ok(());
            }
        }
    }

    fn end_lingers(&mut self, now: Instant) -> Result<(), ClientError> {
        while let Some((at, partition, id)) = self.lingers.front().copied() {
            let is_open = self.lanes[partition].open.as_ref().is_some_and(|open| open.id == id);
            if is_open {
                if at > now {
                    break;
                }
                self.list(partition);
            }
            self.lingers.pop_front();
        }
        Ok(())
    }

    fn end_backoffs(&mut self, now: Instant) {
        let mut index = 0;
        while index < self.retries.len() {
            if self.retries[index].0 > now {
                index += 1;
                continue;
            }
            let (_, partition) = self.retries.swap_remove(index);
            self.lanes[partition].retry_at = None;
            self.list(partition);
        }
    }

    /// Hands requests to a link while it takes some. Whether any was.
    fn send_ready(&mut self, link: usize, now: Instant) -> Result<bool, ClientError> {
        let mut has_sent = false;
        while !self.is_renewing
            && !self.links[link].ready.is_empty()
            && self.links[link].has_room(&self.config, now)
        {
            let (outbound, again) = self.gather(link, now)?;
            for partition in again {
                self.list(partition);
            }
            if outbound.batches.is_empty() {
                break;
            }
            self.counters.requests += 1;
            self.counters.batches += outbound.batches.len() as u64;
            self.counters.bytes += outbound.bytes as u64;
            self.links[link].send(outbound, &self.config, &self.topic)?;
            has_sent = true;
        }
        Ok(has_sent)
    }

    /// One batch of each partition in the row, as many as a request holds; and the partitions that have more.
    fn gather(&mut self, link: usize, now: Instant) -> Result<(Outbound, Vec<usize>), ClientError> {
        let (mut outbound, mut again) = (Outbound::default(), Vec::new());
        while let Some(partition) = self.links[link].ready.pop_front() {
            self.lanes[partition].is_listed = false;
            if self.lanes[partition].leader != Some(link) {
                again.push(partition);
                continue;
            }
            // It comes back at its time, or with the answer that it waits for.
            let lane = &self.lanes[partition];
            if lane.retry_at.is_some() || lane.waits_for_answers(link, self.identity.is_some()) {
                continue;
            }
            if !self.lanes[partition].has_waiting() && self.is_open_due(partition, now) {
                self.lanes[partition].is_listed = true;
                self.close(partition)?;
                self.lanes[partition].is_listed = false;
            }
            let Some(size) = self.lanes[partition].next_size() else { continue };
            if !outbound.batches.is_empty() && outbound.bytes + size > self.config.request_bytes_max {
                self.lanes[partition].is_listed = true;
                self.links[link].ready.push_front(partition);
                break;
            }
            let lane = &mut self.lanes[partition];
            if let Some((id, records)) = lane.take(self.identity, link) {
                outbound.push(partition, id, records);
            }
            // Without a linger nothing else would come back to an open batch behind those that were closed.
            if self.lanes[partition].has_waiting() || self.is_open_due(partition, now) {
                again.push(partition);
            }
        }
        Ok((outbound, again))
    }

    fn is_open_due(&self, partition: usize, now: Instant) -> bool {
        let open = self.lanes[partition].open.as_ref();
        open.is_some_and(|open| open.count() > 0 && open.opened + self.config.linger <= now)
    }

    /// When something is due although no socket says so.
    fn timer(&self) -> Option<Instant> {
        let linger = self.lingers.front().map(|linger| linger.0);
        let retry = self.retries.iter().map(|retry| retry.0).min();
        let links = self.links.iter().filter_map(|link| link.timer()).min();
        let sweep = (self.outstanding > 0).then_some(self.sweep_at);
        let errands = self.errands.timer(self.is_renewing);
        [linger, retry, links, sweep, errands].into_iter().flatten().min()
    }
}
