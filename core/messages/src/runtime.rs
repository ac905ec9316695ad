//! What the generated code uses.

pub(crate) use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
pub(crate) use crate::message::{Message, Struct, VersionRange};
pub(crate) use crate::reader::Reader;
pub(crate) use crate::str::Str;
pub(crate) use crate::tagged::TaggedFields;
pub(crate) use crate::writer::Writer;

#[cold]
pub(crate) fn cannot_carry(field: &'static str, version: i16) -> EncodeError {
    EncodeError::CannotCarry { field, version }
}

#[cold]
pub(crate) fn no_type(r: &Reader, enumeration: &'static str, value: i64) -> DecodeError {
    r.error("", DecodeErrorKind::Type { enumeration, value })
}

/// Refuses tagged fields in a version that has no place for them.
pub(crate) fn no_tagged_fields(unknown: &TaggedFields, version: i16) -> Result<(), EncodeError> {
    if unknown.is_empty() { Ok(()) } else { Err(cannot_carry("_tagged_fields", version)) }
}
