//! Tests of the journal: conversations with it, and crashes at random.

mod crashes;
mod formats;
mod openings;
mod rig;
mod talks;
