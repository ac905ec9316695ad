//! Decodes requests, each with its share of the memory budget.
//!
//! A frame can grow to sixteen times its length and more, and the sender alone decides how far. So it is decoded within
//! a bound for which room was claimed before. Where that is too little, what was decoded is dropped, twice as much is
//! claimed, and the decoder begins again: decoding costs at most twice what it would, and most requests fit the first
//! time. Arrays are counted before they are read, so that most attempts that fail do so early.
//!
//! Always true:
//! 1. what waits for room is not decoded, or claimed in its decoded form, or within the connection's free bytes
//! 2. requests of one connection that are in work hold at most [`FREE_BYTES`] in decoded form without a claim
//!
//! Produce path 1¼ of 5. Before: connection.rs. After: requests.rs.

use barnabas_net::{Claim, Standing};
use barnabas_wire::{DecodeError, DecodeErrorKind, Decoded, RequestBody, request_memory_max};
use bytes::Bytes;
use std::cell::Cell;
use std::rc::Rc;

/// What a request makes of so many bytes and less goes into work without a share of the memory budget.
pub const FREE_BYTES: usize = 64 * 1024;
/// What is made of a request on the way to its answer: the decoded entries, their owners' parts and outcomes, and the
/// answer's entries, for each byte of the decoded form. An estimate, not a measurement.
const WORK_BYTES_PER_DECODED: usize = 4;
/// What decoding takes at its peak, for each byte of the decoded form: vectors double while they grow.
const PEAK_BYTES_PER_DECODED: usize = 2;

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
) -> Result<(Decoded, Option<Free>), DecodeError> {
    let held = claim.bytes();
    let most = request_memory_max(frame.len(), memory_max);
    let mut limit = FREE_BYTES.min(most);
    let decoded = loop {
        match RequestBody::decode_counted(frame.clone(), limit) {
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

/// A small frame may be large once it is decoded.
async fn grow(claim: &mut Claim, bytes: u64) {
    if claim.standing() == Standing::Small {
        claim.stand(Standing::of(bytes));
    }
    claim.grow_to(bytes).await;
}

#[cfg(test)]
mod tests;
