//! The few requests that a producer and the rig make, and their answers: all in versions without tagged fields.
//!
//! Nothing is checked that a client of ours or Apache's sends right; a frame that is not understood ends its
//! connection. The layouts are Kafka's: docs/COMPAT.md names versions, core/wire has the schemas.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

const PRODUCE: i16 = 0;
const FETCH: i16 = 1;
const METADATA: i16 = 3;
const FIND_COORDINATOR: i16 = 10;
const API_VERSIONS: i16 = 18;
const CREATE_TOPICS: i16 = 19;
const DELETE_TOPICS: i16 = 20;
const INIT_PRODUCER_ID: i16 = 22;
/// (key, oldest, newest version) of what is told. FETCH and FIND_COORDINATOR are told and not served: librdkafka takes
/// the record format and the codecs that a broker knows from them, and a producer asks for neither.
const TOLD: [(i16, i16, i16); 8] = [
    (PRODUCE, 3, 7),
    (FETCH, 4, 11),
    (METADATA, 1, 4),
    (FIND_COORDINATOR, 0, 1),
    (API_VERSIONS, 0, 2),
    (CREATE_TOPICS, 2, 2),
    (DELETE_TOPICS, 1, 1),
    (INIT_PRODUCER_ID, 0, 1),
];
const UNSUPPORTED_VERSION: i16 = 35;
const UNKNOWN_TOPIC: i16 = 3;

/// One partition's records within a frame.
#[derive(Debug)]
pub struct Piece {
    pub partition: (String, i32),
    pub records: Range<usize>,
}

/// What a frame asks for: its answer, and what must be kept before that is sent.
#[derive(Debug, Default)]
pub struct Asked {
    pub answer: Vec<u8>,
    pub pieces: Vec<Piece>,
    /// False: acks=0, nobody waits for the answer.
    pub is_answered: bool,
}

/// Topics and how many partitions each has.
#[derive(Debug)]
pub struct Topics {
    port: u16,
    partitions: Mutex<HashMap<String, i32>>,
}

impl Topics {
    pub fn new(port: u16) -> Self {
        Self { port, partitions: Mutex::default() }
    }

    /// Reads a frame (without its length) and says what to do.
    pub fn take(&self, frame: &[u8]) -> io::Result<Asked> {
        let mut words = Words { frame, at: 0 };
        let (key, version, correlation) = (words.i16()?, words.i16()?, words.i32()?);
        words.text()?;
        let mut asked = Asked { answer: vec![0; 4], is_answered: true, ..Asked::default() };
        asked.answer.extend(correlation.to_be_bytes());
        let out = &mut asked.answer;
        match key {
            API_VERSIONS => api_versions(version, out),
            METADATA => self.metadata(version, &mut words, out)?,
            CREATE_TOPICS => self.create(&mut words, out)?,
            DELETE_TOPICS => self.delete(&mut words, out)?,
            INIT_PRODUCER_ID => {
                put(
                    out,
                    &[&0_i32.to_be_bytes(), &0_i16.to_be_bytes(), &1_i64.to_be_bytes(), &0_i16.to_be_bytes()],
                );
            }
            PRODUCE => produce(version, &mut words, &mut asked)?,
            _ => return Err(io::Error::other(format!("API {key} is not served"))),
        }
        let length = (asked.answer.len() - 4) as u32;
        asked.answer[..4].copy_from_slice(&length.to_be_bytes());
        Ok(asked)
    }

    fn metadata(&self, version: i16, words: &mut Words<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let known = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = match words.i32()? {
            -1 => known.keys().cloned().collect(),
            count => (0..count).map(|_| words.text()).collect::<io::Result<Vec<_>>>()?,
        };
        if version >= 3 {
            put(out, &[&0_i32.to_be_bytes()]);
        }
        put(out, &[&1_i32.to_be_bytes(), &1_i32.to_be_bytes()]);
        put_text(out, "127.0.0.1");
        put(out, &[&i32::from(self.port).to_be_bytes(), &(-1_i16).to_be_bytes()]);
        if version >= 2 {
            put_text(out, "skyline");
        }
        put(out, &[&1_i32.to_be_bytes(), &(wanted.len() as i32).to_be_bytes()]);
        for name in wanted {
            let count = known.get(&name).copied();
            put(out, &[&count.map_or(UNKNOWN_TOPIC, |_| 0).to_be_bytes()]);
            put_text(out, &name);
            let count = count.unwrap_or(0);
            put(out, &[&[0], &count.to_be_bytes()]);
            for partition in 0..count {
                put(out, &[&0_i16.to_be_bytes(), &partition.to_be_bytes(), &1_i32.to_be_bytes()]);
                // Replicas, then those in sync: the one node.
                put(out, &[&1_i32.to_be_bytes(); 4].map(|word| &word[..]));
            }
        }
        Ok(())
    }

    fn create(&self, words: &mut Words<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let mut known = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let count = words.i32()?;
        put(out, &[&0_i32.to_be_bytes(), &count.to_be_bytes()]);
        for _ in 0..count {
            let (name, partitions, _, assigned, configs) =
                (words.text()?, words.i32()?, words.i16()?, words.i32()?, words.i32()?);
            if assigned != 0 || configs != 0 {
                return Err(io::Error::other("assignments and configs of topics are not served"));
            }
            put_text(out, &name);
            put(out, &[&0_i16.to_be_bytes(), &(-1_i16).to_be_bytes()]);
            known.insert(name, partitions);
        }
        Ok(())
    }

    fn delete(&self, words: &mut Words<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let mut known = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let count = words.i32()?;
        put(out, &[&0_i32.to_be_bytes(), &count.to_be_bytes()]);
        for _ in 0..count {
            let name = words.text()?;
            known.remove(&name);
            put_text(out, &name);
            put(out, &[&0_i16.to_be_bytes()]);
        }
        Ok(())
    }
}

fn api_versions(version: i16, out: &mut Vec<u8>) {
    let error = if version > 2 { UNSUPPORTED_VERSION } else { 0 };
    put(out, &[&error.to_be_bytes(), &(TOLD.len() as i32).to_be_bytes()]);
    for (key, oldest, newest) in TOLD {
        put(out, &[&key.to_be_bytes(), &oldest.to_be_bytes(), &newest.to_be_bytes()]);
    }
    if (1..=2).contains(&version) {
        put(out, &[&0_i32.to_be_bytes()]);
    }
}

fn produce(version: i16, words: &mut Words<'_>, asked: &mut Asked) -> io::Result<()> {
    words.text()?;
    asked.is_answered = words.i16()? != 0;
    words.i32()?;
    let topics = words.i32()?;
    put(&mut asked.answer, &[&topics.to_be_bytes()]);
    for _ in 0..topics {
        let name = words.text()?;
        let partitions = words.i32()?;
        put_text(&mut asked.answer, &name);
        put(&mut asked.answer, &[&partitions.to_be_bytes()]);
        for _ in 0..partitions {
            let partition = words.i32()?;
            let length = words.i32()?.max(0) as usize;
            let records = words.at..words.at + length;
            words.skip(length)?;
            asked.pieces.push(Piece { partition: (name.clone(), partition), records });
            // No error; every batch is called the first: producers do not look.
            put(
                &mut asked.answer,
                &[
                    &partition.to_be_bytes(),
                    &0_i16.to_be_bytes(),
                    &0_i64.to_be_bytes(),
                    &(-1_i64).to_be_bytes(),
                ],
            );
            if version >= 5 {
                put(&mut asked.answer, &[&0_i64.to_be_bytes()]);
            }
        }
    }
    put(&mut asked.answer, &[&0_i32.to_be_bytes()]);
    Ok(())
}

fn put(out: &mut Vec<u8>, words: &[&[u8]]) {
    words.iter().for_each(|word| out.extend_from_slice(word));
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, &[&(text.len() as i16).to_be_bytes(), text.as_bytes()]);
}

/// Where a reader is within a frame.
struct Words<'a> {
    frame: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn skip(&mut self, count: usize) -> io::Result<&[u8]> {
        let found = self.frame.get(self.at..self.at + count);
        self.at += count;
        found.ok_or_else(|| io::Error::other("a frame ends too soon"))
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut word = [0; N];
        word.copy_from_slice(self.skip(N)?);
        Ok(word)
    }

    fn i16(&mut self) -> io::Result<i16> {
        self.bytes().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> io::Result<i32> {
        self.bytes().map(i32::from_be_bytes)
    }

    /// A text; null reads as empty.
    fn text(&mut self) -> io::Result<String> {
        let length = self.i16()?.max(0) as usize;
        Ok(String::from_utf8_lossy(self.skip(length)?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(key: i16, version: i16, body: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        put(&mut frame, &[&key.to_be_bytes(), &version.to_be_bytes(), &7_i32.to_be_bytes()]);
        put_text(&mut frame, "test");
        frame.extend(body);
        frame
    }

    fn produced(acks: i16) -> Vec<u8> {
        let mut body = Vec::new();
        put(
            &mut body,
            &[&(-1_i16).to_be_bytes(), &acks.to_be_bytes(), &1000_i32.to_be_bytes(), &1_i32.to_be_bytes()],
        );
        put_text(&mut body, "t");
        put(&mut body, &[&1_i32.to_be_bytes(), &2_i32.to_be_bytes(), &3_i32.to_be_bytes(), b"abc"]);
        request(PRODUCE, 7, &body)
    }

    #[test]
    fn a_newer_version_question_is_answered_in_the_oldest_way() {
        let asked = Topics::new(1).take(&request(API_VERSIONS, 4, &[])).unwrap();
        assert_eq!(asked.answer[8..10], UNSUPPORTED_VERSION.to_be_bytes());
        assert_eq!(asked.answer.len(), 4 + 4 + 2 + 4 + TOLD.len() * 6);
        assert_eq!(asked.answer[..4], (asked.answer.len() as u32 - 4).to_be_bytes());
    }

    #[test]
    fn the_pieces_of_a_produce_request_are_found() {
        let frame = produced(-1);
        let asked = Topics::new(1).take(&frame).unwrap();
        assert!(asked.is_answered);
        assert_eq!(asked.pieces[0].partition, ("t".to_owned(), 2));
        assert_eq!(&frame[asked.pieces[0].records.clone()], b"abc");
        assert!(!Topics::new(1).take(&produced(0)).unwrap().is_answered);
    }

    #[test]
    fn a_frame_that_ends_too_soon_is_an_error() {
        let frame = produced(1);
        for cut in 0..frame.len() {
            assert!(Topics::new(1).take(&frame[..cut]).is_err(), "cut at {cut}");
        }
    }
}
