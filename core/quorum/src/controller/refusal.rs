//! A "no" for a client: Kafka's code, and a sentence of ours.

pub(super) mod limits;

use barnabas_base::ErrorCode;
use barnabas_wire::{Str, sentence};

/// All sentences of one answer together. A request may name very many things, and the code alone says enough of the
/// others.
const SENTENCES_BYTES_MAX: usize = 1 << 20;

/// Why a request, or a part of it, is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
}

impl Refusal {
    /// A long message is cut: it may hold a name that a client chose, once for each of many partitions.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: sentence(message.into()).into_owned() }
    }
}

/// Codes and sentences of one answer: sentences as long as there is room for them.
#[derive(Debug)]
pub(super) struct Sentences {
    left: usize,
}

impl Default for Sentences {
    fn default() -> Self {
        Self { left: SENTENCES_BYTES_MAX }
    }
}

impl Sentences {
    /// The code and message of a refusal, or of success, as results carry them.
    pub fn fields(&mut self, refusal: Option<&Refusal>) -> (i16, Option<Str>) {
        let Some(refusal) = refusal else { return (ErrorCode::None.code(), None) };
        let message = match self.left.checked_sub(refusal.message.len()) {
            Some(left) => {
                self.left = left;
                Some(Str::from(&refusal.message))
            }
            None => None,
        };
        (refusal.code.code(), message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_of_an_answer_end_where_they_are_too_many() {
        let refusal = Refusal::new(ErrorCode::UnknownTopicOrPartition, "n".repeat(32_767));
        let mut sentences = Sentences::default();
        let fields: Vec<_> = (0..10_000).map(|_| sentences.fields(Some(&refusal))).collect();
        assert!(fields.iter().all(|(code, _)| *code == 3));
        let said = fields.iter().take_while(|(_, message)| message.is_some()).count();
        let bytes: usize = fields.iter().flat_map(|(_, message)| message).map(|message| message.len()).sum();
        assert!(said >= 1000 && bytes <= SENTENCES_BYTES_MAX, "{said} {bytes}");
        assert_eq!(sentences.fields(None), (0, None));
    }
}
