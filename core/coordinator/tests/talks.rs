//! Conversations with a group coordinator: `tests/talks/*.txt`, in the form of `tests/transcript`.

// A test may read and write its files.
#![allow(clippy::disallowed_methods)]

mod rig;
mod speech;
mod transcript;

#[test]
fn every_talk_goes_as_written() {
    transcript::check("talks", 20, || {
        let mut speaker = speech::Speaker::default();
        move |command| speaker.say(command)
    });
}
