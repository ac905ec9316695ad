//! `.kafka_cleanshutdown`: the last process closed every log in this directory and synced it.
//!
//! JSON with the broker epoch under which that was (KIP-966); older Kafka leaves the file empty.
//! Source: Kafka `CleanShutdownFileHandler`.

use barnabas_base::BrokerEpoch;

pub(crate) const FILE_NAME: &str = ".kafka_cleanshutdown";

pub(crate) fn render(epoch: BrokerEpoch) -> String {
    format!("{{\"version\":0,\"brokerEpoch\":{epoch}}}")
}

/// The broker epoch, where the file holds one.
pub(crate) fn parse(text: &[u8]) -> Option<BrokerEpoch> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, after) = text.split_once("\"brokerEpoch\"")?;
    let number = after.trim_start().strip_prefix(':')?.trim_start();
    let end = number.find(|letter: char| letter != '-' && !letter.is_ascii_digit()).unwrap_or(number.len());
    number[..end].parse().ok().map(BrokerEpoch)
}
