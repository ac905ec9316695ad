//! Hostile bytes: the decoder does not panic, and does not allocate more memory than its limit.
//!
//! Every message of the golden vectors is cut off at each place, and has each byte replaced by those that make lengths
//! huge or negative. Memory is counted by the allocator itself.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types)] // Vectors come from a file.

mod vectors;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;

use barnabas_messages::*;
use bytes::Bytes;

struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

// A counting allocator cannot be written without.
#[allow(unsafe_code)]
// SAFETY: hands everything on to `System`; the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get().wrapping_add(layout.size()));
        PEAK.set(PEAK.get().max(HELD.get()));
        // SAFETY: the caller's layout, as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.set(HELD.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's place and layout, as they came.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that `work` held at once beyond what was held before.
fn peak_bytes<T>(work: impl FnOnce() -> T) -> (T, usize) {
    HELD.set(1 << 40);
    PEAK.set(1 << 40);
    let result = work();
    (result, PEAK.get() - (1 << 40))
}

type Decode = fn(Bytes, i16, usize) -> Result<(), barnabas_messages::DecodeError>;

fn decode<M: Message>(
    bytes: Bytes,
    version: i16,
    memory_max: usize,
) -> Result<(), barnabas_messages::DecodeError> {
    let mut r = Reader::with_memory_max(bytes, memory_max);
    M::decode(&mut r, version)?;
    r.finish()
}

fn decoders() -> BTreeMap<&'static str, Decode> {
    let mut decoders: BTreeMap<&'static str, Decode> = BTreeMap::new();
    macro_rules! add {
        ($name:ident) => {
            decoders.insert($name::NAME, decode::<$name>);
        };
    }
    for_each_message!(add);
    decoders
}

const MEMORY_MAX: usize = 64 * 1024;
/// What an error, a few vectors' old halves while they grow, and the frame's own bookkeeping may take on top.
const PEAK_MAX: usize = 2 * MEMORY_MAX + 4096;

#[test]
fn damaged_messages_are_refused_within_their_memory() {
    let decoders = decoders();
    let mut tried = 0;
    let mut refused = 0;
    let mut try_one = |name: &str, version: i16, bytes: Bytes| {
        let (result, peak) = peak_bytes(|| decoders[name](bytes, version, MEMORY_MAX));
        assert!(peak <= PEAK_MAX, "{name} v{version} took {peak} bytes");
        tried += 1;
        refused += usize::from(result.is_err());
    };
    for (index, vectors::Entry { name, version, bytes, .. }) in vectors::entries().into_iter().enumerate() {
        if bytes.len() > 600 {
            continue;
        }
        for place in 0..bytes.len() {
            if (place + index) % 2 == 0 {
                try_one(&name, version, bytes.slice(..place));
            }
            let mut damaged = bytes.to_vec();
            damaged[place] = [0x7f, 0xff, 0x80, 0x00][(place + index) % 4];
            if (place + index) % 3 == 0 {
                damaged[place..].iter_mut().take(4).for_each(|byte| *byte = 0xff);
            }
            try_one(&name, version, Bytes::from(damaged));
        }
    }
    println!("{tried} damaged messages, {refused} refused");
    assert!(tried > 100_000 && refused > tried / 4, "{refused} of {tried} refused");
}

#[test]
fn every_request_stands_a_frame_of_ones_and_of_zeros() {
    for key in ApiKey::ALL {
        for version in key.versions().min..=key.versions().max {
            for byte in [0x00, 0x01, 0x02, 0x7f, 0x80, 0xff] {
                let frame = Bytes::from(vec![byte; 4096]);
                let (_, peak) = peak_bytes(|| {
                    RequestBody::decode(&mut Reader::with_memory_max(frame, MEMORY_MAX), key, version).is_ok()
                });
                assert!(peak <= PEAK_MAX, "{key} v{version} of {byte:#x} took {peak} bytes");
            }
        }
    }
}

/// Lengths and counts as each form writes them, of a few thousand.
const COUNTS: [&[u8]; 3] = [&[0, 0, 0x1f, 0xff], &[0xff, 0x3f], &[0x1f, 0xff]];

/// The densest frames that there are: a message up to any of its fields, then a count, then elements of zeros (empty in
/// the old form), or of ones (empty in the compact form), or of what followed.
#[test]
fn no_message_decodes_into_more_than_the_stated_multiple() {
    let decoders = decoders();
    let (mut tried, mut most) = (0, (0.0, String::new()));
    let mut seen: BTreeMap<(String, i16), u32> = BTreeMap::new();
    for vectors::Entry { name, version, bytes, .. } in vectors::entries() {
        let times = seen.entry((name.clone(), version)).or_default();
        *times += 1;
        if !name.ends_with("Request") || *times > 2 || bytes.len() > 400 {
            continue;
        }
        for place in 0..bytes.len() {
            for (at, count) in COUNTS.iter().enumerate() {
                let mut frame = [&bytes[..place], count].concat();
                let after = &bytes[(place + count.len()).min(bytes.len())..];
                match (place + at) % 3 {
                    0 => frame.resize(8192, 0),
                    1 => frame.resize(8192, 1),
                    _ => frame.extend(after.iter().cycle().take(8192 - frame.len())),
                }
                let limit = frame.len() * REQUEST_MEMORY_PER_BYTE;
                let (length, frame) = (frame.len(), Bytes::from(frame));
                let (_, peak) = peak_bytes(|| drop(decoders[name.as_str()](frame, version, limit)));
                assert!(peak <= 2 * limit + 4096, "{name} v{version} takes {peak} of {length} bytes");
                tried += 1;
                let multiple = peak as f64 / length as f64;
                if multiple > most.0 {
                    most = (multiple, format!("{name} v{version}"));
                }
            }
        }
    }
    println!("{tried} frames; the largest multiple at its peak is {:.1}: {}", most.0, most.1);
    assert!(tried > 50_000, "{tried}");
}

#[test]
fn request_that_grows_beyond_the_multiple_is_refused() {
    // Metadata version 1 with 200,000 topics of one letter: 3 bytes each, 80 and more decoded.
    let count: u32 = 200_000;
    let mut frame = vec![0, 3, 0, 1, 0, 0, 0, 7, 0xff, 0xff];
    frame.extend(count.to_be_bytes());
    (0..count).for_each(|_| frame.extend([0, 1, b'a']));
    let frame = Bytes::from(frame);
    let length = frame.len();
    let (result, peak) = peak_bytes(|| RequestBody::decode_counted(frame, 100 << 20).map(|_| ()));
    let limit = request_memory_max(length, 100 << 20);
    assert_eq!(result.unwrap_err().kind, DecodeErrorKind::Memory(limit));
    assert!(peak <= 2 * limit, "{peak}");
    assert_eq!(limit, 256 * 1024 + 16 * length);
}

/// A frame that is as long as it says, made of nothing but the smallest elements there are.
#[test]
fn small_elements_do_not_make_a_frame_grow_in_memory() {
    let count: usize = 300_000;
    // CreatePartitions version 2: topics of an empty name, a count, null assignments, no tags: 7 bytes each.
    let mut frame = vec![];
    let announced = count as u32 + 1;
    frame.extend([0x80 | announced as u8, 0x80 | (announced >> 7) as u8, (announced >> 14) as u8]);
    for _ in 0..count {
        frame.extend([1, 0, 0, 0, 1, 0, 0]);
    }
    frame.extend([0, 0, 0, 0, 0, 0]);
    let frame = Bytes::from(frame);
    let read = |memory_max| {
        let mut r = Reader::with_memory_max(frame.clone(), memory_max);
        RequestBody::decode(&mut r, ApiKey::CreatePartitions, 2)
    };
    let (result, peak) = peak_bytes(|| read(1 << 20).unwrap_err().kind);
    assert_eq!(result, DecodeErrorKind::Memory(1 << 20));
    assert!(peak < 4096, "{peak}");
    let RequestBody::CreatePartitions(request) = read(100 << 20).unwrap() else { panic!("another request") };
    assert_eq!(request.topics.len(), count);
}
