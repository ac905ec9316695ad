//! rustls' unbuffered connections, for both sides alike: its states, one after another, until it needs bytes.

use super::buffers::Received;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus};

/// States in a row without progress: none of rustls' comes near.
const STATES_MAX: usize = 64;
/// Room for an alert.
const ALERT_BYTES: usize = 64;

/// How far [`Machine::run`] came.
pub struct Outcome {
    /// Bytes at the front that are done with.
    pub used: usize,
    /// Whether the peer has said that it ends the connection.
    pub result: Result<bool, rustls::Error>,
}

pub trait Machine {
    type Data;

    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;

    /// Goes on until more bytes are needed. What has to be sent is added to `out`, after an error the alert.
    fn run(&mut self, bytes: &mut [u8], out: &mut Received, mut take: impl FnMut(&[u8])) -> Outcome {
        let (mut used, mut is_ended) = (0, false);
        loop {
            let status = self.process(&mut bytes[used..]);
            let mut discard = status.discard;
            let goes_on = match status.state {
                Err(error) => {
                    self.alert(out);
                    return Outcome { used, result: Err(error) };
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    let mut failed = None;
                    while let Some(record) = traffic.next_record() {
                        match record {
                            Ok(record) => {
                                discard += record.discard;
                                take(record.payload);
                            }
                            Err(error) => failed = Some(error),
                        }
                    }
                    if let Some(error) = failed {
                        return Outcome { used, result: Err(error) };
                    }
                    true
                }
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    encode(data, out);
                    true
                }
                Ok(ConnectionState::TransmitTlsData(sent)) => {
                    sent.done();
                    true
                }
                Ok(ConnectionState::PeerClosed) => {
                    is_ended = true;
                    true
                }
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => false,
                // Closed by both, or early data, which is never accepted.
                Ok(_) => {
                    is_ended = true;
                    false
                }
            };
            used += discard;
            if !goes_on {
                return Outcome { used, result: Ok(is_ended) };
            }
        }
    }

    /// Whether rustls has made something that is to be sent.
    fn has_out(&self) -> bool;

    /// After an error: makes the alert ready that names it. rustls looks at no byte while it has something to send; a
    /// connection that has failed is not to be given any.
    fn alert(&mut self, out: &mut Received) {
        while self.has_out() {
            match self.process(&mut []).state {
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out),
                _ => return,
            }
        }
    }

    /// Encrypts to the front of `into`; what the handshake still has to send goes before it.
    fn encrypt(
        &mut self,
        incoming: &mut Vec<u8>,
        mut take: impl FnMut(&[u8]),
        plain: &[u8],
        into: &mut [u8],
    ) -> Result<usize, String> {
        let mut filled = 0;
        for _ in 0..STATES_MAX {
            let status = self.process(incoming);
            let discard = status.discard;
            let done = match status.state {
                Err(error) => return Err(error.to_string()),
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let encrypted =
                        traffic.encrypt(plain, &mut into[filled..]).map_err(|error| match error {
                            EncryptError::InsufficientSize(_) => "the buffer is too small".to_owned(),
                            EncryptError::EncryptExhausted => "the session's keys are used up".to_owned(),
                        })?;
                    Some(filled + encrypted)
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    let encoded = data.encode(&mut into[filled..]);
                    filled += encoded.map_err(|_| "the buffer is too small for a handshake's message")?;
                    None
                }
                Ok(ConnectionState::TransmitTlsData(sent)) => {
                    sent.done();
                    None
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(Ok(record)) = traffic.next_record() {
                        take(record.payload);
                    }
                    None
                }
                Ok(ConnectionState::PeerClosed) => None,
                Ok(_) => return Err("the session has ended".to_owned()),
            };
            incoming.drain(..discard);
            if let Some(length) = done {
                return Ok(length);
            }
        }
        Err("the session does not come to where it can send".to_owned())
    }

    fn close(&mut self, incoming: &mut [u8], out: &mut Received) {
        for _ in 0..STATES_MAX {
            match self.process(incoming).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    out.fill(ALERT_BYTES, |room| traffic.queue_close_notify(room).unwrap_or(0));
                    return;
                }
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out),
                Ok(ConnectionState::TransmitTlsData(sent)) => sent.done(),
                Ok(ConnectionState::PeerClosed) => {}
                _ => return,
            }
        }
    }
}

impl Machine for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn has_out(&self) -> bool {
        self.wants_write()
    }

    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(bytes)
    }
}

impl Machine for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn has_out(&self) -> bool {
        self.wants_write()
    }

    fn process<'c, 'i>(&'c mut self, bytes: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(bytes)
    }
}

fn encode<D>(mut data: EncodeTlsData<'_, D>, out: &mut Received) {
    let size = match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(short)) => short.required_size,
        // Nothing to say, and nothing left to say.
        Ok(_) | Err(EncodeError::AlreadyEncoded) => return,
    };
    out.fill(size, |room| data.encode(room).expect("it has the size asked for"));
}
