//! Random numbers that follow from a seed: elections and simulations draw the same numbers for the same seed. Not for
//! secrets.

/// The next number of the sequence with this `state`, equally spread over all 64 bits: SplitMix64 (Steele, Lea and
/// Flood, 2014).
pub fn split_mix_64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::split_mix_64;

    /// The first numbers of Vigna's reference implementation with seed 1234567.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut state = 1_234_567;
        let drawn: Vec<u64> = (0..3).map(|_| split_mix_64(&mut state)).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
