//! The text of an event: one JSON object a line, its fields in this order, those that are unknown left out.
//!
//! `time`, `node`, `event`, `outcome`, `principal`, `client_id`, `host`, `listener`, `mechanism`, `via`, `request`,
//! `operation`, `resource_type`, `resource`, `changes`, `reason`, `count`. docs/SECURITY.md says what they mean.

use super::events::{Event, Kind, Who};
use super::{Edit, Subject};
use barnabas_base::{BrokerId, Date, TimestampMs};

/// Of what clients choose freely.
const TEXT_BYTES_MAX: usize = 1024;

/// One object under construction.
struct Object(String);

impl Object {
    fn new() -> Self {
        Self(String::from("{"))
    }

    fn raw(&mut self, name: &str, value: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
        self.0.push_str(value);
    }

    fn text(&mut self, name: &str, value: &str) {
        let value = &value[..value.floor_char_boundary(TEXT_BYTES_MAX + 4)];
        self.raw(name, &serde_json::Value::from(value).to_string());
    }

    fn texts<'a>(&mut self, values: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) {
        for (name, value) in values {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                self.text(name, value);
            }
        }
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::FailedLogin => "login_failed",
            Self::Denied => "denied",
            Self::WouldDeny => "would_be_denied",
            Self::Change => "change",
        }
    }

    const fn outcome(self) -> &'static str {
        match self {
            Self::Login | Self::WouldDeny | Self::Change => "success",
            Self::FailedLogin => "failure",
            Self::Denied => "denied",
        }
    }
}

/// What an event says besides its time: equal for what happens again. One text for each of its subjects.
pub(super) fn bodies(event: &Event) -> Vec<(String, &'static str)> {
    if event.what.is_empty() {
        return vec![(body(event, None, event.kind.outcome()), event.kind.outcome())];
    }
    event.what.iter().map(|(subject, outcome)| (body(event, Some(subject), outcome), *outcome)).collect()
}

fn body(event: &Event, subject: Option<&Subject>, outcome: &str) -> String {
    let Who { principal, client_id, host, listener, via, mechanism } = &event.who;
    let mut object = Object::new();
    object.texts([
        ("event", Some(event.kind.name())),
        ("outcome", Some(outcome)),
        ("principal", Some(&**principal)),
        ("client_id", client_id.as_deref()),
        ("host", Some(&**host)),
        ("listener", Some(&**listener)),
        ("mechanism", *mechanism),
        ("via", via.as_deref()),
        ("request", event.request.map(|api| api.name())),
    ]);
    if let Some(subject) = subject {
        object.texts([
            ("operation", Some(subject.operation)),
            ("resource_type", Some(subject.resource_type)),
            ("resource", Some(&*subject.name)),
        ]);
        if !subject.edits.is_empty() {
            let edits: Vec<String> = subject.edits.iter().map(edit).collect();
            object.raw("changes", &format!("[{}]", edits.join(",")));
        }
    }
    object.texts([("reason", event.reason.as_deref())]);
    object.end()
}

fn edit(edit: &Edit) -> String {
    let mut object = Object::new();
    object.texts([("name", Some(&*edit.name)), ("from", edit.from.as_deref()), ("to", edit.to.as_deref())]);
    object.end()
}

/// A line of the log itself, about `count` events that are not in it.
pub fn notice(at: TimestampMs, node: BrokerId, event: &str, reason: &str, count: u64) -> String {
    let mut object = Object::new();
    object.texts([("event", Some(event)), ("reason", Some(reason))]);
    object.raw("count", &count.to_string());
    line(at, node, &object.end(), 1)
}

/// The line, with its end.
pub fn line(at: TimestampMs, node: BrokerId, body: &str, count: u64) -> String {
    let rest = body.strip_prefix('{').and_then(|body| body.strip_suffix('}')).unwrap_or(body);
    let count = if count > 1 { format!(",\"count\":{count}") } else { String::new() };
    format!("{{\"time\":\"{}\",\"node\":{},{rest}{count}}}\n", time(at), node.get())
}

/// `2026-11-24T13:20:00.123Z` (RFC 3339).
fn time(at: TimestampMs) -> String {
    let (seconds, ms) = (at.0.div_euclid(1000), at.0.rem_euclid(1000));
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let Date { year, month, day } = Date::of_days_since_1970(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_written_as_rfc_3339_says() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_526_400_123, "2026-11-24T13:20:00.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(time(TimestampMs(ms)), expected);
        }
    }
}
