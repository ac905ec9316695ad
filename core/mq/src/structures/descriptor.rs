//! MQMD: what is known of a message beside its data. 324 bytes, or 364 in version 2.

use crate::bytes::{Order, Reader, Writer};
use crate::reason;

pub const FORMAT_NONE: [u8; 8] = *b"        ";
pub const FORMAT_STRING: [u8; 8] = *b"MQSTR   ";
pub const FORMAT_RFH2: [u8; 8] = *b"MQHRF2  ";

const ID: &[u8; 4] = b"MD  ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    pub version: u32,
    pub report: u32,
    pub msg_type: u32,
    /// Tenths of a second; −1: none.
    pub expiry: i32,
    pub feedback: u32,
    pub encoding: u32,
    pub ccsid: i32,
    pub format: [u8; 8],
    pub priority: i32,
    pub persistence: u32,
    pub msg_id: [u8; 24],
    pub correl_id: [u8; 24],
    pub backout_count: u32,
    pub reply_to_q: [u8; 48],
    pub reply_to_qmgr: [u8; 48],
    pub user: [u8; 12],
    pub accounting: [u8; 32],
    pub appl_identity: [u8; 32],
    pub put_appl_type: i32,
    pub put_appl_name: [u8; 28],
    pub put_date: [u8; 8],
    pub put_time: [u8; 8],
    pub appl_origin: [u8; 4],
    pub group_id: [u8; 24],
    pub sequence: u32,
    pub offset: u32,
    pub flags: u32,
    pub original_length: i32,
}

impl Default for Descriptor {
    fn default() -> Self {
        Self {
            version: 2,
            report: 0,
            msg_type: 8,
            expiry: -1,
            feedback: 0,
            encoding: Order::Big.encoding(),
            ccsid: 1208,
            format: FORMAT_NONE,
            priority: 0,
            persistence: 1,
            msg_id: [0; 24],
            correl_id: [0; 24],
            backout_count: 0,
            reply_to_q: [b' '; 48],
            reply_to_qmgr: [b' '; 48],
            user: [b' '; 12],
            accounting: [0; 32],
            appl_identity: [b' '; 32],
            put_appl_type: 0,
            put_appl_name: [b' '; 28],
            put_date: [b' '; 8],
            put_time: [b' '; 8],
            appl_origin: [b' '; 4],
            group_id: [0; 24],
            sequence: 1,
            offset: 0,
            flags: 0,
            original_length: -1,
        }
    }
}

impl Descriptor {
    /// Reads one, of either version.
    ///
    /// # Errors
    /// `MQRC_MD_ERROR`.
    pub fn read(bytes: &[u8], order: Order) -> Result<(Self, &[u8]), u32> {
        let mut reader = Reader::new(bytes, order);
        let read = read(&mut reader).ok_or(reason::MD_ERROR)?;
        Ok((read, reader.left()))
    }

    pub(crate) fn read_next(reader: &mut Reader<'_>) -> Result<Self, u32> {
        read(reader).ok_or(reason::MD_ERROR)
    }

    pub fn write(&self, out: &mut Writer) {
        out.raw(ID).u32(self.version).u32(self.report).u32(self.msg_type).i32(self.expiry);
        out.u32(self.feedback).u32(self.encoding).i32(self.ccsid).raw(&self.format).i32(self.priority);
        out.u32(self.persistence).raw(&self.msg_id).raw(&self.correl_id).u32(self.backout_count);
        out.raw(&self.reply_to_q).raw(&self.reply_to_qmgr).raw(&self.user).raw(&self.accounting);
        out.raw(&self.appl_identity).i32(self.put_appl_type).raw(&self.put_appl_name).raw(&self.put_date);
        out.raw(&self.put_time).raw(&self.appl_origin);
        if self.version >= 2 {
            out.raw(&self.group_id).u32(self.sequence).u32(self.offset).u32(self.flags);
            out.i32(self.original_length);
        }
    }

    /// As bytes, in `order`.
    pub fn encode(&self, order: Order) -> Vec<u8> {
        let mut out = Writer::new(order);
        self.write(&mut out);
        out.out.to_vec()
    }
}

fn read(reader: &mut Reader<'_>) -> Option<Descriptor> {
    if reader.take(4)? != ID {
        return None;
    }
    let version = reader.u32().filter(|version| matches!(version, 1 | 2))?;
    let mut md = Descriptor {
        version,
        report: reader.u32()?,
        msg_type: reader.u32()?,
        expiry: reader.i32()?,
        feedback: reader.u32()?,
        encoding: reader.u32()?,
        ccsid: reader.i32()?,
        format: reader.array()?,
        priority: reader.i32()?,
        persistence: reader.u32()?,
        msg_id: reader.array()?,
        correl_id: reader.array()?,
        backout_count: reader.u32()?,
        reply_to_q: reader.array()?,
        reply_to_qmgr: reader.array()?,
        user: reader.array()?,
        accounting: reader.array()?,
        appl_identity: reader.array()?,
        put_appl_type: reader.i32()?,
        put_appl_name: reader.array()?,
        put_date: reader.array()?,
        put_time: reader.array()?,
        appl_origin: reader.array()?,
        ..Descriptor::default()
    };
    if version == 2 {
        md.group_id = reader.array()?;
        (md.sequence, md.offset, md.flags) = (reader.u32()?, reader.u32()?, reader.u32()?);
        md.original_length = reader.i32()?;
    }
    Some(md)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_survives_both_orders_and_versions() {
        for order in [Order::Big, Order::Little] {
            for version in [1, 2] {
                let md = Descriptor {
                    version,
                    expiry: 70,
                    msg_id: [7; 24],
                    priority: -1,
                    ..Descriptor::default()
                };
                let bytes = md.encode(order);
                assert_eq!(bytes.len(), if version == 1 { 324 } else { 364 });
                assert_eq!(Descriptor::read(&bytes, order), Ok((md, &[][..])));
                assert_eq!(Descriptor::read(&bytes[1..], order), Err(reason::MD_ERROR));
            }
        }
    }
}
