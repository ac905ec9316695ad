//! Frames ↔ bytes: a length, a data offset, a type and a channel, then a performative and its payload.
//!
//! ```text
//! 0       4    5    6       8        4 × doff        size
//! | size  |doff|type|channel| extended… | performative | payload |
//! ```
//!
//! # Source
//! AMQP 1.0 part 2, section 2.3; part 5, section 5.3.1.

use crate::performative::Performative;
use crate::value::write_value;
use crate::{AmqpError, Reader};
use bytes::{BufMut, Bytes, BytesMut};

pub const HEADER_AMQP: [u8; 8] = *b"AMQP\x00\x01\x00\x00";
pub const HEADER_SASL: [u8; 8] = *b"AMQP\x03\x01\x00\x00";

const TYPE_AMQP: u8 = 0;
const TYPE_SASL: u8 = 1;

/// One frame. An empty one (`body` is `None`) says only that its sender lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub channel: u16,
    pub body: Option<Performative>,
    pub payload: Bytes,
}

/// Cuts a stream into protocol headers and frames. Holds at most one frame and what came with it.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    frame_bytes_max: usize,
}

impl FrameDecoder {
    pub fn new(frame_bytes_max: usize) -> Self {
        Self { buffer: BytesMut::new(), frame_bytes_max }
    }

    /// Of the frames that are not taken yet: a login's are smaller than those that follow.
    pub fn set_frame_bytes_max(&mut self, frame_bytes_max: usize) {
        self.frame_bytes_max = frame_bytes_max;
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The eight bytes before the frames of a layer.
    pub fn header(&mut self) -> Option<[u8; 8]> {
        let header = *self.buffer.first_chunk::<8>()?;
        drop(self.buffer.split_to(8));
        Some(header)
    }

    /// The next whole frame, if there is one.
    ///
    /// # Errors
    /// [`AmqpError::FrameTooLarge`] as soon as its length is known; [`AmqpError::Decode`].
    pub fn frame(&mut self) -> Result<Option<Frame>, AmqpError> {
        let Some(length) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.frame_bytes_max {
            return Err(AmqpError::FrameTooLarge { length, max: self.frame_bytes_max });
        }
        if length < 8 {
            return Err(AmqpError::Decode("a frame is shorter than its header"));
        }
        if self.buffer.len() < length {
            return Ok(None);
        }
        decode_frame(self.buffer.split_to(length).freeze()).map(Some)
    }
}

/// Of a whole frame of at least eight bytes.
fn decode_frame(mut bytes: Bytes) -> Result<Frame, AmqpError> {
    let (offset, kind) = (usize::from(bytes[4]) * 4, bytes[5]);
    let channel = u16::from_be_bytes([bytes[6], bytes[7]]);
    if offset < 8 || offset > bytes.len() {
        return Err(AmqpError::Decode("a frame's data begins outside of it"));
    }
    if kind != TYPE_AMQP && kind != TYPE_SASL {
        return Err(AmqpError::Decode("a frame is of neither AMQP nor SASL"));
    }
    let body = bytes.split_off(offset);
    if body.is_empty() {
        return Ok(Frame { channel, body: None, payload: body });
    }
    let mut reader = Reader::new(body);
    let performative = Performative::read(reader.value()?)?;
    if matches!(performative, Performative::Sasl(_)) != (kind == TYPE_SASL) {
        return Err(AmqpError::Decode("a frame's type and its performative do not agree"));
    }
    Ok(Frame { channel, body: Some(performative), payload: reader.rest() })
}

/// Appends a frame.
pub fn encode_frame(out: &mut BytesMut, channel: u16, body: Option<&Performative>, payload: &[u8]) {
    let at = out.len();
    let kind = if matches!(body, Some(Performative::Sasl(_))) { TYPE_SASL } else { TYPE_AMQP };
    out.put_slice(&[0, 0, 0, 0, 2, kind]);
    out.put_u16(channel);
    if let Some(body) = body {
        write_value(out, &body.value());
    }
    out.put_slice(payload);
    let size = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&size.to_be_bytes());
}
