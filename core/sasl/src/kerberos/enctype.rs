//! The encryption types 17 to 20: keys, what is derived of them, encryption with integrity, checksums.
//!
//! | number | name | RFC |
//! |---|---|---|
//! | 17, 18 | aes128-cts-hmac-sha1-96, aes256-cts-hmac-sha1-96 | 3962 |
//! | 19, 20 | aes128-cts-hmac-sha256-128, aes256-cts-hmac-sha384-192 | 8009 |
//!
//! Left out: RC4 (23), DES and 3DES. RFC 6649 and RFC 8429 forbid them, and MIT's and Java's own defaults refuse them.
//!
//! Checksums are compared in constant time. Keys are zeroed when dropped and not printed.

use aes::cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use hmac::Hmac;
use sha1::Sha1;
use sha2::{Sha256, Sha384};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::Secret;

const BLOCK: usize = 16;
/// Bytes of random data that begin each encryption.
pub(super) const CONFOUNDER_BYTES: usize = BLOCK;

/// An encryption type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Enctype {
    Aes128Sha1,
    Aes256Sha1,
    Aes128Sha256,
    Aes256Sha384,
}

impl Enctype {
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            17 => Some(Self::Aes128Sha1),
            18 => Some(Self::Aes256Sha1),
            19 => Some(Self::Aes128Sha256),
            20 => Some(Self::Aes256Sha384),
            _ => None,
        }
    }

    pub const fn number(self) -> i64 {
        match self {
            Self::Aes128Sha1 => 17,
            Self::Aes256Sha1 => 18,
            Self::Aes128Sha256 => 19,
            Self::Aes256Sha384 => 20,
        }
    }

    /// The number of this type's checksums.
    pub(super) const fn checksum_number(self) -> i64 {
        match self {
            Self::Aes128Sha1 => 15,
            Self::Aes256Sha1 => 16,
            Self::Aes128Sha256 => 19,
            Self::Aes256Sha384 => 20,
        }
    }

    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Sha1 | Self::Aes128Sha256 => 16,
            Self::Aes256Sha1 | Self::Aes256Sha384 => 32,
        }
    }

    /// Of a checksum, and of the end of a ciphertext.
    pub(super) const fn mac_bytes(self) -> usize {
        match self {
            Self::Aes128Sha1 | Self::Aes256Sha1 => 12,
            Self::Aes128Sha256 => 16,
            Self::Aes256Sha384 => 24,
        }
    }

    /// Whether the checksum is made of the ciphertext, with RFC 8009, or of the plaintext.
    const fn is_of_ciphertext(self) -> bool {
        matches!(self, Self::Aes128Sha256 | Self::Aes256Sha384)
    }
}

impl std::fmt::Display for Enctype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Aes128Sha1 => "aes128-cts-hmac-sha1-96",
            Self::Aes256Sha1 => "aes256-cts-hmac-sha1-96",
            Self::Aes128Sha256 => "aes128-cts-hmac-sha256-128",
            Self::Aes256Sha384 => "aes256-cts-hmac-sha384-192",
        })
    }
}

/// What a key is used for, so that one message cannot be taken for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    PreAuthentication = 1,
    Ticket = 2,
    AsReply = 3,
    TgsChecksum = 6,
    TgsAuthenticator = 7,
    TgsReply = 8,
    Authenticator = 11,
    ApReply = 12,
    /// Of wrap tokens, signed or encrypted (RFC 4121, 2).
    AcceptorSeal = 22,
    InitiatorSeal = 24,
}

/// What is derived of a key for a usage.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Checksum = 0x99,
    Encryption = 0xaa,
    Integrity = 0x55,
}

/// A key and what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    enctype: Enctype,
    bytes: Secret,
}

impl Key {
    /// `None`: the bytes are not as many as the type's keys have.
    pub fn new(enctype: Enctype, bytes: &[u8]) -> Option<Self> {
        (bytes.len() == enctype.key_bytes()).then(|| Self { enctype, bytes: Secret::from(bytes) })
    }

    pub fn enctype(&self) -> Enctype {
        self.enctype
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// The plaintext. `None`: it was not encrypted with this key for this usage, or it was changed.
    pub(super) fn decrypt(&self, usage: Usage, ciphertext: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let length = ciphertext.len().checked_sub(self.enctype.mac_bytes())?;
        if length < CONFOUNDER_BYTES {
            return None;
        }
        let (body, mac) = ciphertext.split_at(length);
        let integrity = self.derive(usage, Purpose::Integrity);
        if self.enctype.is_of_ciphertext() && !is_same(&self.mac(&integrity, &[&[0; BLOCK], body]), mac) {
            return None;
        }
        let mut plain = Zeroizing::new(body.to_vec());
        Cipher::new(&self.derive(usage, Purpose::Encryption))?.decrypt(&mut plain);
        if !self.enctype.is_of_ciphertext() && !is_same(&self.mac(&integrity, &[&plain]), mac) {
            return None;
        }
        plain.drain(..CONFOUNDER_BYTES);
        Some(plain)
    }

    pub(super) fn encrypt(
        &self,
        usage: Usage,
        confounder: &[u8; CONFOUNDER_BYTES],
        plain: &[u8],
    ) -> Option<Vec<u8>> {
        let mut body = [&confounder[..], plain].concat();
        let integrity = self.derive(usage, Purpose::Integrity);
        let of_plain = self.mac(&integrity, &[&body]);
        Cipher::new(&self.derive(usage, Purpose::Encryption))?.encrypt(&mut body);
        let mac = match self.enctype.is_of_ciphertext() {
            true => self.mac(&integrity, &[&[0; BLOCK], &body]),
            false => of_plain,
        };
        body.extend_from_slice(&mac);
        Some(body)
    }

    pub(super) fn checksum(&self, usage: Usage, parts: &[&[u8]]) -> Vec<u8> {
        self.mac(&self.derive(usage, Purpose::Checksum), parts)
    }

    pub(super) fn verifies(&self, usage: Usage, parts: &[&[u8]], checksum: &[u8]) -> bool {
        is_same(&self.checksum(usage, parts), checksum)
    }

    fn mac(&self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut mac = match self.enctype {
            Enctype::Aes128Sha1 | Enctype::Aes256Sha1 => hmac::<Hmac<Sha1>>(key, parts),
            Enctype::Aes128Sha256 => hmac::<Hmac<Sha256>>(key, parts),
            Enctype::Aes256Sha384 => hmac::<Hmac<Sha384>>(key, parts),
        };
        mac.truncate(self.enctype.mac_bytes());
        mac
    }

    /// RFC 3961, 5.3, and RFC 8009, 3 and 5.
    fn derive(&self, usage: Usage, purpose: Purpose) -> Zeroizing<Vec<u8>> {
        let constant = [0, 0, 0, usage as u8, purpose as u8];
        match self.enctype {
            Enctype::Aes128Sha1 | Enctype::Aes256Sha1 => self.derive_by_cipher(&constant),
            Enctype::Aes128Sha256 => self.derive_by_hmac::<Hmac<Sha256>>(&constant, 16),
            Enctype::Aes256Sha384 => {
                let bytes = if matches!(purpose, Purpose::Encryption) { 32 } else { 24 };
                self.derive_by_hmac::<Hmac<Sha384>>(&constant, bytes)
            }
        }
    }

    fn derive_by_cipher(&self, constant: &[u8]) -> Zeroizing<Vec<u8>> {
        let cipher = Cipher::new(self.bytes()).expect("invariant: Key::new checks the length");
        let mut block = fold(constant);
        let mut derived = Zeroizing::new(Vec::with_capacity(self.enctype.key_bytes()));
        while derived.len() < self.enctype.key_bytes() {
            cipher.encrypt_block(&mut block);
            derived.extend_from_slice(&block);
        }
        derived
    }

    fn derive_by_hmac<M: hmac::Mac + hmac::KeyInit>(&self, label: &[u8], bytes: usize) -> Zeroizing<Vec<u8>> {
        let bits = (bytes as u32 * 8).to_be_bytes();
        let mut derived = Zeroizing::new(hmac::<M>(self.bytes(), &[&[0, 0, 0, 1], label, &[0], &bits]));
        derived.truncate(bytes);
        derived
    }
}

fn hmac<M: hmac::Mac + hmac::KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac =
        <M as hmac::KeyInit>::new_from_slice(key).expect("invariant: HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

fn is_same(one: &[u8], other: &[u8]) -> bool {
    bool::from(one.ct_eq(other))
}

/// RFC 3961's n-fold to one block: the bytes again and again, each copy rotated by 13 bits more, added in ones'
/// complement.
fn fold(bytes: &[u8]) -> [u8; BLOCK] {
    let (length, bits) = (bytes.len(), bytes.len() * 8);
    let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
    // The least common multiple of both lengths.
    let mut common = length.max(1);
    while !common.is_multiple_of(BLOCK) || !common.is_multiple_of(length.max(1)) {
        common += length.max(1);
    }
    let mut sum = [0_u8; BLOCK];
    let mut carry = 0_u32;
    for at in (0..common).rev() {
        let (copy, within) = (at / length, at % length);
        let byte = (0..8).fold(0_u32, |byte, place| {
            // Rotated to the right by 13 bits for each copy before.
            let from = (within * 8 + place + bits * 13 * (copy + 1) - 13 * copy) % bits;
            byte << 1 | u32::from(bit(from))
        });
        carry += byte + u32::from(sum[at % BLOCK]);
        sum[at % BLOCK] = carry as u8;
        carry >>= 8;
    }
    // The carry out of the highest place comes in at the lowest.
    let mut place = BLOCK;
    while carry > 0 {
        place = if place == 0 { BLOCK - 1 } else { place - 1 };
        carry += u32::from(sum[place]);
        sum[place] = carry as u8;
        carry >>= 8;
    }
    sum
}

/// AES in CBC with ciphertext stealing, from an initial vector of zeros.
enum Cipher {
    Of128(Box<Aes128>),
    Of256(Box<Aes256>),
}

impl Cipher {
    fn new(key: &[u8]) -> Option<Self> {
        match key.len() {
            16 => Some(Self::Of128(Box::new(Aes128::new_from_slice(key).ok()?))),
            32 => Some(Self::Of256(Box::new(Aes256::new_from_slice(key).ok()?))),
            _ => None,
        }
    }

    fn encrypt_block(&self, block: &mut [u8; BLOCK]) {
        let into: &mut Block<Aes128> = block.into();
        match self {
            Self::Of128(cipher) => cipher.encrypt_block(into),
            Self::Of256(cipher) => cipher.encrypt_block(into),
        }
    }

    fn decrypt_block(&self, block: &mut [u8; BLOCK]) {
        let into: &mut Block<Aes128> = block.into();
        match self {
            Self::Of128(cipher) => cipher.decrypt_block(into),
            Self::Of256(cipher) => cipher.decrypt_block(into),
        }
    }

    /// At least one block. The last two change places, and the last has as many bytes as the text leaves it.
    fn encrypt(&self, text: &mut Vec<u8>) {
        let length = text.len();
        text.resize(length.next_multiple_of(BLOCK), 0);
        let mut before = [0; BLOCK];
        for chunk in text.as_chunks_mut::<BLOCK>().0 {
            xor(chunk, &before);
            self.encrypt_block(chunk);
            before = *chunk;
        }
        if let Some(last) = text.len().checked_sub(BLOCK).filter(|&last| last > 0) {
            let (head, tail) = text.split_at_mut(last);
            head[last - BLOCK..].swap_with_slice(tail);
        }
        text.truncate(length);
    }

    fn decrypt(&self, text: &mut [u8]) {
        let length = text.len();
        if length <= BLOCK {
            if let Ok(block) = text.try_into() {
                self.decrypt_block(block);
            }
            return;
        }
        let last = (length - 1) / BLOCK * BLOCK;
        let mut before = [0; BLOCK];
        for chunk in text[..last - BLOCK].as_chunks_mut::<BLOCK>().0 {
            let encrypted = *chunk;
            self.decrypt_block(chunk);
            xor(chunk, &before);
            before = encrypted;
        }
        // The block that stands last but one was the last, padded with the end of the other.
        let mut stolen = [0; BLOCK];
        stolen.copy_from_slice(&text[last - BLOCK..last]);
        self.decrypt_block(&mut stolen);
        let tail = length - last;
        let mut other = stolen;
        other[..tail].copy_from_slice(&text[last..]);
        let end: Vec<u8> = stolen[..tail].iter().zip(&other).map(|(one, other)| one ^ other).collect();
        self.decrypt_block(&mut other);
        xor(&mut other, &before);
        text[last - BLOCK..last].copy_from_slice(&other);
        text[last..].copy_from_slice(&end);
    }
}

fn xor(into: &mut [u8; BLOCK], with: &[u8; BLOCK]) {
    into.iter_mut().zip(with).for_each(|(into, with)| *into ^= with);
}

#[cfg(test)]
mod tests;
