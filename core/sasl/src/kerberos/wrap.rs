//! Wrap tokens of RFC 4121 that are signed and not encrypted: the last two of SASL's tokens.
//!
//! # Source
//! RFC 4121, 4.2.4 to 4.2.6.

use super::enctype::{Key, Usage};

const KIND: [u8; 2] = [5, 4];
const HEADER_BYTES: usize = 16;

pub(super) const SENT_BY_ACCEPTOR: u8 = 1;
const SEALED: u8 = 2;
pub(super) const ACCEPTOR_SUBKEY: u8 = 4;

/// A token with `data`, signed. `flags`: of the sender and of its key.
pub(super) fn wrap(key: &Key, flags: u8, sequence: u32, data: &[u8]) -> Vec<u8> {
    let header = |checksum_bytes: u16| {
        let mut header = [0; HEADER_BYTES];
        header[..2].copy_from_slice(&KIND);
        header[2] = flags;
        header[3] = 0xff;
        header[4..6].copy_from_slice(&checksum_bytes.to_be_bytes());
        header[8..].copy_from_slice(&u64::from(sequence).to_be_bytes());
        header
    };
    let checksum = key.checksum(usage(flags), &[data, &header(0)]);
    [&header(checksum.len() as u16)[..], data, &checksum].concat()
}

/// The data of a token whose sender has these flags. Its number is not judged: each key signs one token a side.
///
/// # Errors
/// What is wrong with the token.
pub(super) fn unwrap(key: &Key, flags: u8, token: &[u8]) -> Result<Vec<u8>, &'static str> {
    let (header, body) = token.split_first_chunk::<HEADER_BYTES>().ok_or("it is too short")?;
    let [kind @ .., found, filler, c1, c2, r1, r2, _, _, _, _, _, _, _, _] = header;
    if *kind != KIND || *filler != 0xff {
        return Err("it is no wrap token of RFC 4121");
    }
    if found & SEALED != 0 {
        return Err("it is encrypted, and only signed tokens are taken here");
    }
    if found & (SENT_BY_ACCEPTOR | ACCEPTOR_SUBKEY) != flags {
        return Err("it was not signed by the peer, or with another key than this exchange's");
    }
    let checksum_bytes = usize::from(u16::from_be_bytes([*c1, *c2]));
    if checksum_bytes != key.enctype().mac_bytes() || body.len() <= checksum_bytes {
        return Err("its checksum has another length");
    }
    let mut body = body.to_vec();
    let places = usize::from(u16::from_be_bytes([*r1, *r2])) % body.len();
    body.rotate_left(places);
    let checksum = body.split_off(body.len() - checksum_bytes);
    let mut signed = *header;
    signed[4..8].fill(0);
    if !key.verifies(usage(flags), &[&body, &signed], &checksum) {
        return Err("its signature is wrong");
    }
    Ok(body)
}

fn usage(flags: u8) -> Usage {
    if flags & SENT_BY_ACCEPTOR == 0 { Usage::InitiatorSeal } else { Usage::AcceptorSeal }
}
