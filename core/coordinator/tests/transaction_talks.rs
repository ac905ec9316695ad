//! Conversations with a transaction coordinator: `tests/transaction_talks/*.txt`, in the form of `tests/transcript`.

// A test may read and write its files.
#![allow(clippy::disallowed_methods)]

mod transactions;
mod transcript;

use transactions::speech::Speaker;

#[test]
fn every_talk_goes_as_written() {
    transcript::check("transaction_talks", 12, || {
        let mut speaker = Speaker::default();
        move |command: &str| speaker.say(command)
    });
}
