//! What happens to a real node when its disk does what disks do: the parts that the fault rigs share.
//!
//! | part | is |
//! |---|---|
//! | `broker` | a node in a process of its own, started, killed, stopped |
//! | `kafka` | one connection that keeps several requests in flight |
//! | `records` | records that say who wrote them and as which of theirs |
//! | `chance` | random numbers that a seed gives again |
//! | `mount` | a file system of our own that can lose its power |
//! | `cut` | the load and the judge of the power cuts |
//! | `damage` | files that are not what they were |
//!
//! The programs are in `bin/`. Nothing here is shipped, and nothing here knows the broker's insides: it is judged by
//! what it says over Kafka's protocol, by what it logs and by what lies in its directories.

pub mod broker;
pub mod chance;
pub mod cut;
pub mod damage;
pub mod kafka;
pub mod mount;
pub mod records;

/// What went wrong with a rig, in words.
#[derive(Debug)]
pub struct Trouble(pub String);

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// A failure in words.
pub fn trouble<T>(text: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble(text.into()))
}
