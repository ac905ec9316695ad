//! Messages to a transaction's coordinator ↔ bytes, and the words of transactions.
//!
//! # Source
//! AMQP 1.0 part 4, sections 4.3 and 4.5.

use crate::performative::{DECLARE, DISCHARGE, binary_of, described};
use crate::{AmqpError, Body, Message, Value, decode_message, encode_message};
use bytes::Bytes;

/// Conditions of errors.
pub const UNKNOWN_TRANSACTION: &str = "amqp:transaction:unknown-id";
pub const TRANSACTION_ROLLBACK: &str = "amqp:transaction:rollback";
pub const TRANSACTION_TIMEOUT: &str = "amqp:transaction:timeout";

/// What a coordinator here can do: several transactions of one session, and one over several sessions.
pub const TRANSACTION_CAPABILITIES: [&str; 3] =
    ["amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"];

/// What a controller asks of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Begin a transaction. With `is_global` it is a branch of one that another coordinator has.
    Declare { is_global: bool },
    /// End it: commit, or with `fail` roll back.
    Discharge { txn_id: Bytes, fail: bool },
}

const WRONG: AmqpError = AmqpError::Decode("a message to a coordinator is neither declare nor discharge");

impl Control {
    /// Of a message's payload.
    ///
    /// # Errors
    /// [`AmqpError::Decode`].
    pub fn decode(payload: Bytes) -> Result<Self, AmqpError> {
        let Body::Value(value) = decode_message(payload)?.body else { return Err(WRONG) };
        let (code, Value::List(fields)) = described(value).ok_or(WRONG)? else { return Err(WRONG) };
        let mut fields = fields.into_iter();
        match code {
            DECLARE => Ok(Self::Declare { is_global: fields.next().is_some_and(|id| id != Value::Null) }),
            DISCHARGE => {
                let txn_id = fields.next().and_then(binary_of).ok_or(WRONG)?;
                match fields.next() {
                    None | Some(Value::Null) => Ok(Self::Discharge { txn_id, fail: false }),
                    Some(Value::Bool(fail)) => Ok(Self::Discharge { txn_id, fail }),
                    Some(_) => Err(WRONG),
                }
            }
            _ => Err(WRONG),
        }
    }

    /// As a message's payload. A branch's own id is not written.
    pub fn encode(&self) -> Bytes {
        let value = match self {
            Self::Declare { .. } => Value::described(DECLARE, Value::List(Vec::new())),
            Self::Discharge { txn_id, fail } => {
                let fields = vec![Value::Binary(txn_id.clone()), Value::Bool(*fail)];
                Value::described(DISCHARGE, Value::List(fields))
            }
        };
        encode_message(&Message { body: Body::Value(value), ..Message::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(name: Value, fields: Vec<Value>) -> Result<Control, AmqpError> {
        let body = Body::Value(Value::Described(Box::new((name, Value::List(fields)))));
        Control::decode(encode_message(&Message { body, ..Message::default() }))
    }

    #[test]
    fn control_survives_a_round_trip() {
        let txn_id = Bytes::from_static(b"t1");
        for control in [
            Control::Declare { is_global: false },
            Control::Discharge { txn_id: txn_id.clone(), fail: true },
            Control::Discharge { txn_id, fail: false },
        ] {
            assert_eq!(Control::decode(control.encode()), Ok(control));
        }
    }

    #[test]
    fn control_may_have_a_symbolic_descriptor_and_nulls() {
        // As Proton's Python binding writes them.
        assert_eq!(
            decoded(Value::symbol("amqp:declare:list"), vec![Value::Null]),
            Ok(Control::Declare { is_global: false })
        );
        let id = Bytes::from_static(b"t");
        assert_eq!(
            decoded(Value::symbol("amqp:discharge:list"), vec![Value::Binary(id.clone())]),
            Ok(Control::Discharge { txn_id: id, fail: false })
        );
        let global = vec![Value::Binary(Bytes::from_static(b"xid"))];
        assert_eq!(decoded(Value::Ulong(0x31), global), Ok(Control::Declare { is_global: true }));
    }

    #[test]
    fn other_messages_to_a_coordinator_are_refused() {
        assert!(decoded(Value::Ulong(0x32), vec![]).is_err(), "no id");
        assert!(decoded(Value::Ulong(0x24), vec![]).is_err(), "an outcome");
        assert!(Control::decode(encode_message(&Message::default())).is_err());
    }
}
