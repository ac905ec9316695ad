//! Each thing that [`Tail::check`] looks at, made wrong: what the random lives of a log rest on can fire.

use super::*;
use crate::log::tests::staged::{check_bytes, in_three_parts};

#[test]
fn the_check_finds_what_is_wrong() {
    let marker = AbortedTransaction {
        producer_id: barnabas_base::ProducerId(1),
        first_offset: Offset(1),
        last_offset: Offset(59),
        last_stable_offset: Offset(60),
    };
    let plants: [&dyn Fn(&mut Tail); 9] = [
        &|tail| tail.bytes += 1,
        &|tail| tail.staged_bytes -= 1,
        &|tail| tail.written_back -= 1,
        &|tail| tail.end = Offset(81),
        &|tail| tail.pieces[0].from = tail.pieces[0].end,
        &|tail| tail.pieces.swap(0, 1),
        &|tail| tail.pieces[0].end = Offset(29),
        &|tail| tail.pieces.back_mut().expect("staged").from = Offset(79),
        &|tail| tail.aborted.push(marker),
    ];
    for (at, plant) in plants.iter().enumerate() {
        let (mut bench, _) = in_three_parts();
        check_bytes(&bench);
        plant(bench.log.tail.as_mut().expect("a tail"));
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check_bytes(&bench)));
        assert!(found.is_err(), "plant {at} went unnoticed");
    }
}
