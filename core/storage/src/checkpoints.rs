//! Kafka's checkpoint files of a log directory, the mark of a clean stop, and the guard that notices files which came
//! from elsewhere.

pub(crate) mod clean_shutdown;
pub(crate) mod guard;
pub(crate) mod offset_checkpoint;
pub(crate) mod text;
