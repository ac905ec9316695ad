//! Performatives and outcomes → values.

use super::{
    ACCEPTED, Attach, COORDINATOR, DECLARED, ERROR, Flow, OPEN, Open, Outcome, Performative, SOURCE, Sasl,
    TARGET, TRANSACTIONAL, Terminus, Transfer,
};
use crate::{Condition, Value};

impl Performative {
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Open(open) => open.value(),
            Self::Begin(begin) => composite(
                0x11,
                vec![
                    optional(begin.remote_channel, Value::Ushort),
                    Value::Uint(begin.next_outgoing_id),
                    Value::Uint(begin.incoming_window),
                    Value::Uint(begin.outgoing_window),
                    optional(begin.handle_max, Value::Uint),
                ],
            ),
            Self::Attach(attach) => attach.value(),
            Self::Flow(flow) => flow.value(),
            Self::Transfer(transfer) => transfer.value(),
            Self::Disposition(told) => composite(
                0x15,
                vec![
                    Value::Bool(told.is_receiver),
                    Value::Uint(told.first),
                    optional(told.last, Value::Uint),
                    Value::Bool(told.settled),
                    optional(told.state.as_ref(), outcome),
                ],
            ),
            Self::Detach(detach) => composite(
                0x16,
                vec![
                    Value::Uint(detach.handle),
                    Value::Bool(detach.closed),
                    optional(detach.error.as_ref(), condition),
                ],
            ),
            Self::End(end) => composite(0x17, vec![optional(end.error.as_ref(), condition)]),
            Self::Close(close) => composite(0x18, vec![optional(close.error.as_ref(), condition)]),
            Self::Sasl(sasl) => sasl.value(),
        }
    }
}

impl Open {
    fn value(&self) -> Value {
        let properties =
            if self.properties.is_empty() { Value::Null } else { Value::Map(self.properties.clone()) };
        composite(
            OPEN,
            vec![
                Value::string(&self.container_id),
                optional(self.hostname.as_deref(), Value::string),
                optional(self.max_frame_size, Value::Uint),
                optional(self.channel_max, Value::Ushort),
                optional(self.idle_time_out_ms, Value::Uint),
                Value::Null,
                Value::Null,
                symbols(&self.offered_capabilities),
                Value::Null,
                properties,
            ],
        )
    }
}

impl Attach {
    fn value(&self) -> Value {
        composite(
            0x12,
            vec![
                Value::string(&self.name),
                Value::Uint(self.handle),
                Value::Bool(self.is_receiver),
                Value::Ubyte(self.snd_settle_mode),
                Value::Ubyte(self.rcv_settle_mode),
                optional(self.source.as_ref(), |source| terminus(source, SOURCE)),
                optional(self.target.as_ref(), |target| terminus(target, TARGET)),
                Value::Null,
                Value::Null,
                optional(self.initial_delivery_count, Value::Uint),
                optional(self.max_message_size, Value::Ulong),
            ],
        )
    }
}

impl Flow {
    fn value(&self) -> Value {
        composite(
            0x13,
            vec![
                optional(self.next_incoming_id, Value::Uint),
                Value::Uint(self.incoming_window),
                Value::Uint(self.next_outgoing_id),
                Value::Uint(self.outgoing_window),
                optional(self.handle, Value::Uint),
                optional(self.delivery_count, Value::Uint),
                optional(self.link_credit, Value::Uint),
                optional(self.available, Value::Uint),
                Value::Bool(self.drain),
                Value::Bool(self.echo),
                optional(self.txn_id.clone(), |id| {
                    Value::Map(vec![(Value::symbol("txn-id"), Value::Binary(id))])
                }),
            ],
        )
    }
}

impl Transfer {
    fn value(&self) -> Value {
        composite(
            0x14,
            vec![
                Value::Uint(self.handle),
                optional(self.delivery_id, Value::Uint),
                optional(self.delivery_tag.clone(), Value::Binary),
                optional(self.message_format, Value::Uint),
                optional(self.settled, Value::Bool),
                if self.more { Value::Bool(true) } else { Value::Null },
                Value::Null,
                optional(self.state.as_ref(), outcome),
                Value::Null,
                if self.aborted { Value::Bool(true) } else { Value::Null },
            ],
        )
    }
}

impl Sasl {
    fn value(&self) -> Value {
        match self {
            Self::Mechanisms(names) => composite(0x40, vec![symbols(names)]),
            Self::Init { mechanism, response, hostname } => composite(
                0x41,
                vec![
                    Value::symbol(mechanism),
                    optional(response.clone(), Value::Binary),
                    optional(hostname.as_deref(), Value::string),
                ],
            ),
            Self::Challenge(bytes) => composite(0x42, vec![Value::Binary(bytes.clone())]),
            Self::Response(bytes) => composite(0x43, vec![Value::Binary(bytes.clone())]),
            Self::Outcome(code) => composite(0x44, vec![Value::Ubyte(*code)]),
        }
    }
}

fn composite(code: u64, mut fields: Vec<Value>) -> Value {
    while fields.last() == Some(&Value::Null) {
        fields.pop();
    }
    Value::described(code, Value::List(fields))
}

fn optional<T>(given: Option<T>, value: impl FnOnce(T) -> Value) -> Value {
    given.map_or(Value::Null, value)
}

fn symbols(names: &[String]) -> Value {
    if names.is_empty() {
        return Value::Null;
    }
    Value::Array(names.iter().map(|name| Value::symbol(name)).collect())
}

fn condition(error: &Condition) -> Value {
    let description =
        if error.description.is_empty() { Value::Null } else { Value::string(&error.description) };
    composite(ERROR, vec![Value::symbol(&error.condition), description])
}

fn outcome(of: &Outcome) -> Value {
    match of {
        Outcome::Accepted => composite(ACCEPTED, vec![]),
        Outcome::Rejected(error) => composite(0x25, vec![condition(error)]),
        Outcome::Released => composite(0x26, vec![]),
        Outcome::Modified { delivery_failed, undeliverable_here } => {
            composite(0x27, vec![Value::Bool(*delivery_failed), Value::Bool(*undeliverable_here)])
        }
        Outcome::Received => composite(0x23, vec![Value::Uint(0), Value::Ulong(0)]),
        Outcome::Declared { txn_id } => composite(DECLARED, vec![Value::Binary(txn_id.clone())]),
        Outcome::Transactional { txn_id, outcome: inner } => {
            let inner = inner.as_deref().map_or(Value::Null, outcome);
            composite(TRANSACTIONAL, vec![Value::Binary(txn_id.clone()), inner])
        }
        Outcome::Other(code) => composite(*code, vec![]),
    }
}

fn terminus(terminus: &Terminus, code: u64) -> Value {
    if terminus.is_coordinator {
        return composite(COORDINATOR, vec![symbols(&terminus.capabilities)]);
    }
    let mut fields = vec![
        optional(terminus.address.as_deref(), Value::string),
        if terminus.durable == 0 { Value::Null } else { Value::Uint(terminus.durable) },
        Value::Null,
        Value::Null,
        if terminus.is_dynamic { Value::Bool(true) } else { Value::Null },
        Value::Null,
    ];
    if code == SOURCE {
        let filter = terminus.filter.iter().map(|(name, value)| (Value::symbol(name), value.clone()));
        let filter: Vec<_> = filter.collect();
        fields.push(optional(terminus.distribution_mode.as_deref(), Value::symbol));
        fields.push(if filter.is_empty() { Value::Null } else { Value::Map(filter) });
        let outcomes =
            ["amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"];
        fields.push(Value::Null);
        fields.push(symbols(&outcomes.map(str::to_owned)));
    }
    fields.push(symbols(&terminus.capabilities));
    composite(code, fields)
}
