//! Sound requests over one connection, for the good client and for what is set up before the attack.

use barnabas_wire::messages::RequestHeader;
use barnabas_wire::{RequestBody, ResponseBody, decode_response, encode_request};
use bytes::Bytes;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A request that takes longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Talk {
    stream: TcpStream,
    correlation_id: i32,
}

impl Talk {
    /// # Errors
    /// The node does not accept.
    pub fn connect(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, correlation_id: 0 })
    }

    /// # Errors
    /// The connection was closed, or the answer is late or none.
    pub fn call(&mut self, body: impl Into<RequestBody>, version: i16) -> std::io::Result<ResponseBody> {
        let body = body.into();
        let key = body.key();
        self.correlation_id += 1;
        let header = RequestHeader {
            request_api_key: key.number(),
            request_api_version: version,
            correlation_id: self.correlation_id,
            client_id: Some("good".into()),
            ..RequestHeader::default()
        };
        let frame = encode_request(&header, &body).map_err(std::io::Error::other)?.into_bytes();
        self.stream.write_all(&[&(frame.len() as i32).to_be_bytes()[..], &frame].concat())?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut answer)?;
        let (_, body) = decode_response(Bytes::from(answer), key, version).map_err(std::io::Error::other)?;
        Ok(body)
    }
}
