//! Decodes requests, each with its share of the memory budget.
//!
//! A frame can grow to sixteen times its length and more, and the sender alone decides how far. So it is decoded within
//! a bound for which room was claimed before. Where that is too little, what was decoded is dropped, twice as much is
//! claimed, and the decoder begins again: decoding costs at most twice what it would, and most requests fit the first
//! time. Arrays are counted before they are read, so that most attempts that fail do so early.
//!
//! A request that takes more than [`AT_ONCE_BYTES`] is decoded beside the workers, one of each client address at a time
//! (node/workers/unpacking.rs): forty of them would hold up a worker's other connections for seconds. Such requests are
//! started one after the other ([`LargeTurn`]), and other connections have their turn in between.
//!
//! Always true:
//! 1. what waits for room is not decoded, or claimed in its decoded form, or within the connection's free bytes
//! 2. requests of one connection that are in work hold at most [`FREE_BYTES`] in decoded form without a claim
//!
//! Produce path 1¼ of 5. Before: connection.rs. After: requests.rs.

use crate::node::workers::unpacking::Unpacking;
use barnabas_net::{Claim, Standing};
use barnabas_wire::{ApiKey, DecodeError, DecodeErrorKind, Decoded, RequestBody, request_memory_max};
use bytes::Bytes;
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use tokio::sync::{Semaphore, SemaphorePermit};

/// What a request makes of so many bytes and less goes into work without a share of the memory budget.
pub const FREE_BYTES: usize = 64 * 1024;
/// What a worker decodes itself: up to so many bytes in decoded form, which takes about a millisecond.
const AT_ONCE_BYTES: usize = 1 << 20;
/// What is made of a request on the way to its answer: the decoded entries, their owners' parts and outcomes, and the
/// answer's entries, for each byte of the decoded form. An estimate, not a measurement.
const WORK_BYTES_PER_DECODED: usize = 4;
/// What decoding takes at its peak, for each byte of the decoded form: vectors double while they grow.
const PEAK_BYTES_PER_DECODED: usize = 2;

/// The large request that is started now.
static LARGE: Semaphore = Semaphore::const_new(1);

/// The turn of a large request, from its decoded form until its work is under way.
#[derive(Debug)]
pub struct LargeTurn(#[expect(dead_code, reason = "given back when it is dropped")] SemaphorePermit<'static>);

impl LargeTurn {
    /// `None`: the request is small, or its work may wait for memory before it is under way. Such a request must not
    /// hold the turn: the memory may belong to one that waits for it.
    pub async fn of(decoded: &Decoded) -> Option<Self> {
        let may_wait = matches!(
            decoded.body.key(),
            ApiKey::Produce
                | ApiKey::Fetch
                | ApiKey::ShareFetch
                | ApiKey::DescribeLogDirs
                | ApiKey::DescribeShareGroupOffsets
        );
        let is_large = decoded.memory_bytes > AT_ONCE_BYTES;
        // Never closed.
        if is_large && !may_wait { LARGE.acquire().await.ok().map(Self) } else { None }
    }
}

/// The threads that decode large requests, and the client's address, by which they take turns.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    pub threads: &'a Unpacking,
    pub address: IpAddr,
}

/// What a connection's requests hold in decoded form without a claim.
#[derive(Debug, Default, Clone)]
pub struct Unclaimed(Rc<Cell<usize>>);

/// One request's part of [`Unclaimed`], for as long as it is in work.
#[derive(Debug)]
pub struct Free {
    of: Unclaimed,
    bytes: usize,
}

impl Unclaimed {
    fn take(&self, bytes: usize) -> Option<Free> {
        let after = self.0.get() + bytes;
        (after <= FREE_BYTES).then(|| {
            self.0.set(after);
            Free { of: self.clone(), bytes }
        })
    }
}

impl Drop for Free {
    fn drop(&mut self) {
        self.of.0.set(self.of.0.get() - self.bytes);
    }
}

/// Decodes `frame`, whose own bytes `claim` holds already, and makes the claim as large as the work on it will be.
/// Returns with it what it holds without a claim, to be dropped with the request.
///
/// # Errors
/// It cannot be read, or takes more than [`request_memory_max`].
pub async fn decode(
    frame: Bytes,
    memory_max: usize,
    claim: &mut Claim,
    unclaimed: &Unclaimed,
    beside: Beside<'_>,
) -> Result<(Decoded, Option<Free>), DecodeError> {
    let held = claim.bytes();
    let most = request_memory_max(frame.len(), memory_max);
    let mut limit = FREE_BYTES.min(most);
    let decoded = loop {
        // Replication waits for no client.
        let is_here = limit <= AT_ONCE_BYTES || claim.standing() == Standing::Replication;
        let attempt = match is_here {
            true => RequestBody::decode_counted(frame.clone(), limit),
            false => decode_beside(&frame, limit, beside).await,
        };
        match attempt {
            Err(error) if limit < most && matches!(error.kind, DecodeErrorKind::Memory(_)) => {
                limit = (2 * limit).min(most);
                grow(claim, held + (limit * PEAK_BYTES_PER_DECODED) as u64).await;
            }
            done => break done?,
        }
    };
    let wanted = held + (decoded.memory_bytes * WORK_BYTES_PER_DECODED) as u64;
    if limit <= FREE_BYTES
        && let Some(free) = unclaimed.take(decoded.memory_bytes)
    {
        return Ok((decoded, Some(free)));
    }
    claim.shrink_to(wanted);
    grow(claim, wanted).await;
    Ok((decoded, None))
}

async fn decode_beside(frame: &Bytes, limit: usize, beside: Beside<'_>) -> Result<Decoded, DecodeError> {
    let bytes = frame.clone();
    let work = move || RequestBody::decode_counted(bytes, limit);
    let decoded = beside.threads.run(Some(beside.address), work).await;
    // The system gives no thread.
    decoded.unwrap_or_else(|| RequestBody::decode_counted(frame.clone(), limit))
}

/// A small frame may be large once it is decoded.
async fn grow(claim: &mut Claim, bytes: u64) {
    if claim.standing() == Standing::Small {
        claim.stand(Standing::of(bytes));
    }
    claim.grow_to(bytes).await;
}

#[cfg(test)]
mod tests;
