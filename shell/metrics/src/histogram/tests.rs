use super::*;

#[test]
fn a_reader_sees_what_another_thread_counts() {
    let histogram = std::sync::Arc::new(Histogram::new(Scale::Nanoseconds));
    let writer = std::thread::spawn({
        let histogram = histogram.clone();
        move || (0..100_000_u64).for_each(|value| histogram.record(value * 64))
    });
    let mut seen = 0;
    while !writer.is_finished() {
        let count = histogram.counts().count();
        assert!(count >= seen, "counts never fall");
        seen = count;
    }
    writer.join().expect("counted");
    assert_eq!(histogram.counts().count(), 100_000);
}

#[test]
fn what_a_thread_counts_is_in_its_buckets() {
    let histogram = Histogram::new(Scale::Count);
    [1, 5, 5, 100].into_iter().for_each(|value| histogram.record(value));
    let counts = histogram.counts();
    assert_eq!((counts.count(), counts.sum, counts.max), (4, 111, 100));
    assert_eq!((counts.at_most(1), counts.quantile_of(0.5, 4), counts.quantile_of(1.0, 4)), (1, 5, 100));
}
