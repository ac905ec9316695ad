//! A value of Avro as JSON, by the schema that it was written with.
//!
//! | Avro | JSON |
//! |---|---|
//! | record, map | object, in the order of the schema or of the bytes |
//! | union | the value of its branch alone |
//! | bytes, fixed | a text in base 64 |
//! | decimal | a number with all its digits |
//! | enum | its symbol |
//! | float, double | the shortest number that is read back as the same; `"NaN"`, `"Infinity"` as texts |
//! | other logical types | what they are stored as: a timestamp is a number |
//!
//! Left out: aliases, defaults, a reader's schema. What is shown is what was written.
//!
//! # Source
//! Avro 1.12, *Binary encoding* and *Names*.

mod schema;
#[cfg(test)]
mod tests;
mod value;

pub use schema::Schema;
