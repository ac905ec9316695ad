//! The cleaner on a disk in memory, beside a model that remembers every record ever written.

mod crashes;
mod rig;
mod single;
