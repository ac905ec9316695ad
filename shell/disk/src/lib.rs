//! [`barnabas_storage::Disk`] for Linux. Not written yet.
