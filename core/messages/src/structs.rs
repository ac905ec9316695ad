//! Structs inside a message: one, one that may be null, an array of them. The readers and writers of primitive types do
//! not know them.

use crate::error::{DecodeError, EncodeError};
use crate::message::Struct;
use crate::reader::Reader;
use crate::writer::Writer;

impl Reader {
    pub fn structs<T: Struct>(
        &mut self,
        field: &'static str,
        flexible: bool,
        version: i16,
    ) -> Result<Vec<T>, DecodeError> {
        self.array(field, flexible, T::BYTES_MIN, |r| T::read(r, version))
    }

    pub fn nullable_structs<T: Struct>(
        &mut self,
        field: &'static str,
        flexible: bool,
        null_ok: bool,
        version: i16,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        self.nullable_array(field, flexible, null_ok, T::BYTES_MIN, |r| T::read(r, version))
    }

    /// A struct that may be null: one byte, −1 or 1, in front of it. In a version where it may not, there is no byte.
    pub fn nullable_struct<T: Struct>(
        &mut self,
        field: &'static str,
        null_ok: bool,
        version: i16,
    ) -> Result<Option<T>, DecodeError> {
        if null_ok && self.int8(field)? < 0 {
            return Ok(None);
        }
        T::read(self, version).map(Some)
    }

    /// The same as a tagged field, where an unsigned number says it: 0 for null.
    pub fn nullable_tagged_struct<T: Struct>(
        &mut self,
        field: &'static str,
        version: i16,
    ) -> Result<Option<T>, DecodeError> {
        if self.uvarint(field)? == 0 { Ok(None) } else { T::read(self, version).map(Some) }
    }
}

impl Writer {
    pub fn structs<T: Struct>(
        &mut self,
        field: &'static str,
        elements: &[T],
        flexible: bool,
        version: i16,
    ) -> Result<(), EncodeError> {
        self.array(field, elements, flexible, |w, element| element.write(w, version))
    }

    pub fn nullable_structs<T: Struct>(
        &mut self,
        field: &'static str,
        elements: &Option<Vec<T>>,
        flexible: bool,
        null_ok: bool,
        version: i16,
    ) -> Result<(), EncodeError> {
        self.nullable_array(field, elements, flexible, null_ok, |w, element| element.write(w, version))
    }

    /// See [`Reader::nullable_struct`](crate::Reader::nullable_struct).
    pub fn nullable_struct<T: Struct>(
        &mut self,
        field: &'static str,
        value: &Option<T>,
        null_ok: bool,
        version: i16,
    ) -> Result<(), EncodeError> {
        match value {
            Some(value) => {
                if null_ok {
                    self.int8(1);
                }
                value.write(self, version)
            }
            None if null_ok => {
                self.int8(-1);
                Ok(())
            }
            None => Err(EncodeError::Null { field }),
        }
    }

    /// See [`Reader::nullable_tagged_struct`](crate::Reader::nullable_tagged_struct).
    pub fn nullable_tagged_struct<T: Struct>(
        &mut self,
        value: &Option<T>,
        version: i16,
    ) -> Result<(), EncodeError> {
        self.uvarint(u32::from(value.is_some()));
        value.as_ref().map_or(Ok(()), |value| value.write(self, version))
    }
}
