//! What happens to a real node when its disk does what disks do: the parts that the fault rigs share.
//!
//! | part | is |
//! |---|---|
//! | `broker` | the node's settings; its process is the harness's |
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

pub use barnabas_harness::{Trouble, trouble};
