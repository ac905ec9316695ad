use bytes::Bytes;

use super::*;

fn fill(memory: &mut TailMemory, bytes: usize, with: u8) -> Bytes {
    let mut room = memory.take(bytes);
    assert!(room.is_empty() && room.capacity() >= bytes);
    let place = room.as_ptr();
    room.resize(bytes, with);
    assert_eq!(room.as_ptr(), place, "filling moves nothing");
    room.freeze()
}

#[test]
fn small_ones_lie_side_by_side_and_their_slab_comes_back() {
    let mut memory = TailMemory::new(64 << 20);
    let pieces: Vec<Bytes> = (0..8).map(|with| fill(&mut memory, 64 << 10, with)).collect();
    let places: Vec<usize> = pieces.iter().map(|piece| piece.as_ptr() as usize).collect();
    assert!(places.windows(2).all(|pair| pair[1] == pair[0] + (64 << 10)));
    let other = fill(&mut memory, 100, 9);
    for (with, piece) in pieces.iter().enumerate() {
        assert!(piece.iter().all(|byte| *byte == with as u8));
    }
    drop(pieces);
    // What is left of the second slab is used up first.
    let second = fill(&mut memory, 128 << 10, 1);
    assert_eq!(second.as_ptr() as usize, other.as_ptr() as usize + 100);
    let more: Vec<Bytes> = (0..4).map(|with| fill(&mut memory, 128 << 10, with)).collect();
    assert!(more.iter().any(|piece| piece.as_ptr() as usize == places[0]));
    assert!(other.iter().all(|byte| *byte == 9));
}

#[test]
fn one_piece_keeps_its_slab() {
    let mut memory = TailMemory::new(64 << 20);
    let kept = fill(&mut memory, 1000, 7);
    for round in 0..100 {
        fill(&mut memory, 100 << 10, round);
    }
    assert!(kept.iter().all(|byte| *byte == 7));
    assert!(memory.kept_bytes <= 3 << 20, "the others go round: {}", memory.kept_bytes);
}

#[test]
fn large_ones_come_back_too() {
    let mut memory = TailMemory::new(64 << 20);
    let first = fill(&mut memory, 700_000, 1);
    let place = first.as_ptr();
    let second = fill(&mut memory, 900_000, 2);
    assert_ne!(second.as_ptr(), place);
    drop(first);
    let third = fill(&mut memory, 1_000_000, 3);
    assert_eq!(third.as_ptr(), place);
    assert!(second.iter().all(|byte| *byte == 2) && third.iter().all(|byte| *byte == 3));
}

#[test]
fn what_is_kept_is_bounded() {
    let mut memory = TailMemory::new(4 << 20);
    let pieces: Vec<Bytes> = (0..40).map(|at| fill(&mut memory, 100_000 + at * 20_000, at as u8)).collect();
    let sum: usize = memory.kept.iter().enumerate().map(|(class, kept)| kept.len() << class).sum();
    assert_eq!(sum, memory.kept_bytes);
    assert!(memory.kept_bytes <= 4 << 20);
    for (at, piece) in pieces.iter().enumerate() {
        assert!(piece.iter().all(|byte| *byte == at as u8));
    }
    let mut nothing = TailMemory::new(0);
    assert_eq!(nothing.take(100).capacity(), 100);
    assert_eq!(nothing.kept_bytes, 0);
}
