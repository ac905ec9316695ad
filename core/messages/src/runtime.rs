//! What the generated code uses.

pub(crate) use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
pub(crate) use crate::message::{Message, Struct, VersionRange};
pub(crate) use crate::reader::Reader;
pub(crate) use crate::str::Str;
pub(crate) use crate::tagged::TaggedFields;
pub(crate) use crate::writer::Writer;

/// A field that the schema calls `secret`, as `Debug` shows it: `[hidden]`. `{:-?}` shows the value, for tests that
/// compare what was decoded; the flag reaches the fields of a message, and nothing else heeds it.
pub(crate) struct Secret<'a, T>(pub(crate) &'a T);

impl<T: std::fmt::Debug> std::fmt::Debug for Secret<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if f.sign_minus() { self.0.fmt(f) } else { f.write_str("[hidden]") }
    }
}

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
