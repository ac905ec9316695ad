//! Fields in either byte order. A peer says in each segment which it uses; it is answered in the same.

use bytes::{BufMut, BytesMut};

/// How integers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Big,
    Little,
}

impl Order {
    /// As a segment's header has it.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Big),
            2 => Some(Self::Little),
            _ => None,
        }
    }

    pub fn code(self) -> u8 {
        if self == Self::Big { 1 } else { 2 }
    }

    /// `MQENC_*`: integers and decimals in this order, IEEE floats in it.
    pub fn encoding(self) -> u32 {
        if self == Self::Big { 0x111 } else { 0x222 }
    }
}

/// Reads fields one after the other. `None`: there is no such field left.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    left: &'a [u8],
    order: Order,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], order: Order) -> Self {
        Self { left: bytes, order }
    }

    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(count)?;
        self.left = left;
        Some(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u16(&mut self) -> Option<u16> {
        let bytes = self.array()?;
        Some(match self.order {
            Order::Big => u16::from_be_bytes(bytes),
            Order::Little => u16::from_le_bytes(bytes),
        })
    }

    pub fn u32(&mut self) -> Option<u32> {
        let bytes = self.array()?;
        Some(match self.order {
            Order::Big => u32::from_be_bytes(bytes),
            Order::Little => u32::from_le_bytes(bytes),
        })
    }

    pub fn i32(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }

    pub fn order(&self) -> Order {
        self.order
    }

    pub fn left(&self) -> &'a [u8] {
        self.left
    }

    /// Whether the next field is a structure of this name.
    pub fn is_at(&self, id: &[u8; 4]) -> bool {
        self.left.starts_with(id)
    }
}

/// Writes fields.
#[derive(Debug)]
pub struct Writer {
    pub out: BytesMut,
    order: Order,
}

impl Writer {
    pub fn new(order: Order) -> Self {
        Self { out: BytesMut::new(), order }
    }

    pub fn u16(&mut self, value: u16) -> &mut Self {
        match self.order {
            Order::Big => self.out.put_u16(value),
            Order::Little => self.out.put_u16_le(value),
        }
        self
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        match self.order {
            Order::Big => self.out.put_u32(value),
            Order::Little => self.out.put_u32_le(value),
        }
        self
    }

    pub fn i32(&mut self, value: i32) -> &mut Self {
        self.u32(value.cast_unsigned())
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.put_slice(bytes);
        self
    }

    /// As an integer field inside bytes that were taken from a peer.
    pub fn set_u32(&mut self, at: usize, value: u32) -> &mut Self {
        let bytes = match self.order {
            Order::Big => value.to_be_bytes(),
            Order::Little => value.to_le_bytes(),
        };
        if let Some(field) = self.out.get_mut(at..at + 4) {
            field.copy_from_slice(&bytes);
        }
        self
    }
}
