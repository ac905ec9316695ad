//! A key's 128 bits: what the cleaner remembers instead of the key.
//!
//! SipHash-2-4 with 128 bits of output under a secret of the process. Two keys of one log with the same bits would
//! lose one of them: at 5 million keys the chance is 2⁻⁸⁴, and without the secret an attacker cannot search for such
//! a pair. Kafka uses MD5, for which pairs can be made.
//!
//! Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", and its 128-bit variant.

/// The secret under which keys are hashed; drawn at random by the shell.
pub(crate) type Seed = [u64; 2];

struct State([u64; 4]);

impl State {
    fn rounds(&mut self, count: usize) {
        let [a, b, c, d] = &mut self.0;
        for _ in 0..count {
            *a = a.wrapping_add(*b);
            *b = b.rotate_left(13) ^ *a;
            *a = a.rotate_left(32);
            *c = c.wrapping_add(*d);
            *d = d.rotate_left(16) ^ *c;
            *a = a.wrapping_add(*d);
            *d = d.rotate_left(21) ^ *a;
            *c = c.wrapping_add(*b);
            *b = b.rotate_left(17) ^ *c;
            *c = c.rotate_left(32);
        }
    }

    fn absorb(&mut self, word: u64) {
        self.0[3] ^= word;
        self.rounds(2);
        self.0[0] ^= word;
    }

    fn fold(&self) -> u64 {
        self.0.iter().fold(0, |all, word| all ^ word)
    }
}

/// The 128 bits of `key`.
pub(crate) fn hash(seed: Seed, key: &[u8]) -> [u64; 2] {
    let [k0, k1] = seed;
    let mut state = State([
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ]);
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        state.absorb(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = key.len() as u8;
    state.absorb(u64::from_le_bytes(last));
    state.0[2] ^= 0xee;
    state.rounds(4);
    let first = state.fold();
    state.0[1] ^= 0xdd;
    state.rounds(4);
    [first, state.fold()]
}

#[cfg(test)]
mod tests {
    use super::hash;

    /// From the reference implementation's vectors: the key is the bytes 0 to 15, the inputs are empty and one zero
    /// byte.
    #[test]
    fn agrees_with_the_reference() {
        let seed = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let bytes = |input: &[u8]| hash(seed, input).map(u64::to_le_bytes).concat();
        let empty =
            [0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93];
        let zero =
            [0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45];
        assert_eq!(bytes(&[]), empty);
        assert_eq!(bytes(&[0]), zero);
    }
}
