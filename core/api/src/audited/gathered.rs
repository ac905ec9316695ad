//! What happens again and again is one line at once, and from then on one a minute with a count: what clients can cause
//! at will must not push everything else out of the files. Changes that were made have a line each.
//!
//! Bounded: so many different lines of a kind in a minute; further ones are counted, and a line says how many.

use super::events::{Event, Kind};
use super::line::{bodies, line, notice};
use barnabas_base::{BrokerId, DurationMs, Map, MonotonicMs, TimestampMs};

const WINDOW: DurationMs = DurationMs(60_000);

impl Kind {
    /// All clients of a large cluster may log in within a minute.
    const fn different_max(self) -> usize {
        match self {
            Self::Login => 16_384,
            Self::FailedLogin | Self::Denied | Self::WouldDeny | Self::Change => 4096,
        }
    }
}

/// See the file's header.
#[derive(Debug, Default)]
pub struct Gathered {
    of: Map<(Kind, String), Again>,
    different: Map<Kind, usize>,
    left_out: Map<Kind, u64>,
    left_out_since: Option<MonotonicMs>,
}

#[derive(Debug)]
struct Again {
    since: MonotonicMs,
    last: TimestampMs,
    unsaid: u64,
}

impl Gathered {
    /// The lines of an event that are to be written now.
    pub fn take(&mut self, event: &Event, node: BrokerId, now: MonotonicMs, lines: &mut Vec<String>) {
        for (body, outcome) in bodies(event) {
            let is_made = event.kind == Kind::Change && outcome == "success";
            if is_made || self.happened(event.kind, &body, event.at, now) {
                lines.push(line(event.at, node, &body, 1));
            }
        }
    }

    /// Whether this is to be written now.
    fn happened(&mut self, kind: Kind, body: &str, at: TimestampMs, now: MonotonicMs) -> bool {
        let key = (kind, body.to_owned());
        if let Some(again) = self.of.get_mut(&key) {
            (again.last, again.unsaid) = (at, again.unsaid + 1);
            return false;
        }
        let different = self.different.entry(kind).or_default();
        if *different >= kind.different_max() {
            *self.left_out.entry(kind).or_default() += 1;
            self.left_out_since.get_or_insert(now);
            return false;
        }
        *different += 1;
        self.of.insert(key, Again { since: now, last: at, unsaid: 0 });
        true
    }

    /// The lines of what happened again, once a minute is over, or `all` of them.
    pub fn due(&mut self, node: BrokerId, wall: TimestampMs, now: MonotonicMs, all: bool) -> Vec<String> {
        let is_over = |since: MonotonicMs| all || now.since(since) >= WINDOW;
        let mut lines = Vec::new();
        let different = &mut self.different;
        self.of.retain(|(kind, body), again| {
            if !is_over(again.since) {
                return true;
            }
            if again.unsaid == 0 {
                *different.entry(*kind).or_insert(1) -= 1;
                return false;
            }
            lines.push(line(again.last, node, body, again.unsaid));
            (again.since, again.unsaid) = (now, 0);
            true
        });
        if self.left_out_since.is_some_and(is_over) {
            self.left_out_since = None;
            for (kind, count) in std::mem::take(&mut self.left_out) {
                let reason = format!("more different {} events in a minute than lines for them", kind.name());
                lines.push(notice(wall, node, "left_out", &reason, count));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audited::events::Who;
    use crate::audited::{Edit, Subject};
    use barnabas_base::Text;
    use barnabas_wire::ApiKey;

    fn event(kind: Kind) -> Event {
        let who = Who {
            principal: Text::from("User:alice"),
            client_id: Some(Text::from("c\"\n")),
            host: Text::from("10.0.0.1"),
            listener: Text::from("SASL_SSL"),
            ..Who::default()
        };
        Event { kind, at: TimestampMs(0), who, request: None, what: Vec::new(), reason: None }
    }

    #[test]
    fn change_is_one_json_object_a_line() {
        let edit = Edit { name: "retention.ms".to_owned(), from: None, to: Some("1".to_owned()) };
        let subject = Subject {
            operation: "ALTER_CONFIGS",
            resource_type: "TOPIC",
            name: "t\u{2028}".to_owned(),
            edits: vec![edit],
        };
        let change = Event {
            request: Some(ApiKey::IncrementalAlterConfigs),
            what: vec![(subject, "success")],
            ..event(Kind::Change)
        };
        let body = &bodies(&change)[0].0;
        let text = line(TimestampMs(0), BrokerId(1), body, 1);
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["time"], "1970-01-01T00:00:00.000Z");
        assert_eq!(
            (&value["event"], &value["outcome"], &value["node"]),
            (&"change".into(), &"success".into(), &1.into())
        );
        assert_eq!((&value["client_id"], &value["resource"]), (&"c\"\n".into(), &"t\u{2028}".into()));
        assert_eq!(value["changes"], serde_json::json!([{"name": "retention.ms", "to": "1"}]));
        assert!(value.get("count").is_none() && value.get("reason").is_none(), "{text}");
    }

    #[test]
    fn repeated_event_is_written_once_a_minute_with_a_count() {
        let (mut gathered, begun) = (Gathered::default(), MonotonicMs(5_000));
        let body = &bodies(&event(Kind::FailedLogin))[0].0;
        let happened = |gathered: &mut Gathered, s: i64| {
            gathered.happened(
                Kind::FailedLogin,
                body,
                TimestampMs(s * 1000),
                begun.plus(DurationMs(s * 1000)),
            )
        };
        assert!(happened(&mut gathered, 0));
        assert!(!happened(&mut gathered, 1) && !happened(&mut gathered, 2));
        let due = |gathered: &mut Gathered, s: i64| {
            gathered.due(BrokerId(1), TimestampMs(0), begun.plus(DurationMs(s * 1000)), false)
        };
        assert!(due(&mut gathered, 59).is_empty());
        let lines = due(&mut gathered, 60);
        assert!(lines.len() == 1 && lines[0].ends_with(",\"count\":2}\n"), "{lines:?}");
        assert!(lines[0].contains("00:00:02.000Z"), "{lines:?}");
        // A silent minute ends it: the next one is new.
        assert!(due(&mut gathered, 120).is_empty());
        assert!(happened(&mut gathered, 121));
    }

    #[test]
    fn different_events_beyond_the_bound_are_counted() {
        let (mut gathered, now) = (Gathered::default(), MonotonicMs(5_000));
        let written = (0..5000)
            .filter(|at| gathered.happened(Kind::Denied, &format!("{{\"n\":{at}}}"), TimestampMs(0), now));
        assert_eq!(written.count(), 4096);
        assert!(gathered.happened(Kind::Login, "{}", TimestampMs(0), now), "each kind has its own");
        let lines = gathered.due(BrokerId(1), TimestampMs(0), now.plus(WINDOW), false);
        assert!(
            lines.len() == 1 && lines[0].contains("left_out") && lines[0].contains("\"count\":904}"),
            "{lines:?}"
        );
        assert!(gathered.happened(Kind::Denied, "{\"n\":-1}", TimestampMs(0), now));
    }

    #[test]
    fn each_change_that_was_made_has_a_line_and_a_refused_one_is_counted() {
        let subject = |name: &str| Subject::new("CREATE", "TOPIC", name);
        let what = vec![(subject("a"), "success"), (subject("b"), "TOPIC_ALREADY_EXISTS")];
        let change = Event { what, ..event(Kind::Change) };
        let (mut gathered, mut lines) = (Gathered::default(), Vec::new());
        for _ in 0..3 {
            gathered.take(&change, BrokerId(1), MonotonicMs(1), &mut lines);
        }
        let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
        assert_eq!((count("\"resource\":\"a\""), count("\"resource\":\"b\"")), (3, 1), "{lines:?}");
    }
}
