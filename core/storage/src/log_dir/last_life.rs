//! `barnabas-last-life`: under which registration a process works in this directory, and how much of the metadata log
//! it knew lately.
//!
//! It says that all is here that the process acknowledged until then, since it acknowledges after the sync. So after a
//! kill the next process knows what Kafka's knows after a clean stop alone (KIP-966). Its time tells a directory that
//! was restored to an earlier moment: the metadata log shows that the broker lived on after that.
//!
//! Kafka takes no notice of it. Drawn in docs/format/checkpoints.md.

use barnabas_base::{BrokerEpoch, TimestampMs};
use barnabas_wire::records::crc32c;

pub(crate) const FILE_NAME: &str = "barnabas-last-life";
const FIRST_LINE: &str = "barnabas-last-life 0";

/// The life of a broker of which a log directory has everything that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastLife {
    pub epoch: BrokerEpoch,
    /// The time of the newest metadata record that it knew when it last said so; `None`: it stopped cleanly.
    pub seen: Option<TimestampMs>,
}

/// Always as long: on a full disk, one text overwrites the other.
pub(crate) fn render(epoch: BrokerEpoch, seen: TimestampMs) -> String {
    let body = format!("{:020} {:020}\n", epoch.get(), seen.0);
    format!("{FIRST_LINE}\n{:08x}\n{body}", crc32c(body.as_bytes()))
}

/// `None`: damaged, or of a later version.
pub(crate) fn parse(text: &[u8]) -> Option<LastLife> {
    let text = std::str::from_utf8(text).ok()?;
    let (checksum, body) = text.strip_prefix(FIRST_LINE)?.strip_prefix('\n')?.split_once('\n')?;
    if u32::from_str_radix(checksum, 16).ok()? != crc32c(body.as_bytes()) {
        return None;
    }
    let (epoch, seen) = body.strip_suffix('\n')?.split_once(' ')?;
    Some(LastLife { epoch: BrokerEpoch(epoch.parse().ok()?), seen: Some(TimestampMs(seen.parse().ok()?)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_life_is_read_back_and_no_bit_may_change() {
        let life = LastLife { epoch: BrokerEpoch(12), seen: Some(TimestampMs(1_732_374_000_123)) };
        let text = render(life.epoch, TimestampMs(1_732_374_000_123)).into_bytes();
        assert_eq!(parse(&text), Some(life));
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // But for a letter of the checksum that became a capital.
            assert!(parse(&flipped).is_none_or(|found| found == life), "bit {bit}");
            assert_eq!(parse(&text[..bit / 8]), None, "cut at {}", bit / 8);
        }
    }
}
