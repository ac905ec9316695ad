//! What replay makes of records.
