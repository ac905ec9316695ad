use super::*;
use crate::config::logging::rotated_file::Files;
use barnabas_api::audited::events::Who;
use barnabas_base::{Text, TimestampMs};

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

fn lines_of(dir: &std::path::Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("barnabas-audit-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("made");
        Self(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn files_are_bounded_by_size_and_number() {
    let dir = Dir::new("rotation");
    let path = dir.0.join("audit.log");
    // A line that a kill cut off stays by itself.
    std::fs::write(&path, "cut of").expect("written");
    let mut files = Files::open(path, 0o600, 100, 3).expect("opened");
    let lines: Vec<String> = (0..20).map(|at| format!("{{\"number of the line\":{at:02}}}\n")).collect();
    files.write(&lines[..1]).expect("written");
    assert_eq!(lines_of(&dir.0, "audit.log")[0], "cut of");
    files.write(&lines[1..]).expect("written");
    let kept: Vec<usize> =
        ["audit.log.2", "audit.log.1", "audit.log"].iter().map(|name| lines_of(&dir.0, name).len()).collect();
    assert!(kept.iter().all(|count| (1..=4).contains(count)), "{kept:?}");
    assert!(!dir.0.join("audit.log.3").exists());
    assert_eq!(lines_of(&dir.0, "audit.log").last().map(String::as_str), Some(lines[19].trim_end()));
    for name in ["audit.log", "audit.log.1", "audit.log.2"] {
        assert!(std::fs::metadata(dir.0.join(name)).expect("there").len() <= 100, "{name}");
    }
}

#[test]
fn full_queue_drops_logins_before_changes_and_counts_them() {
    let dir = Dir::new("queue");
    let file = dir.0.join("audit.log");
    let kinds = Kinds::parse("logins,changes").expect("kinds");
    let file = FileSettings { path: file, bytes_max: 1 << 20, files_max: 2 };
    let settings = Settings { file: Some(file), topic: None, kinds };
    let meter = Arc::new(Meter::default());
    let audit = Audit::open(Some(settings), BrokerId(1), meter.clone()).expect("opened");
    assert!(audit.wants(Kind::Login) && !audit.wants(Kind::Denied));
    // Its thread does not run yet: nothing leaves the queue.
    (0..Kind::Login.room() + 10).for_each(|_| audit.note(event(Kind::Login)));
    assert_eq!(meter.audit.dropped.get(), 10);
    let left = QUEUE_EVENTS_MAX - Kind::Login.room();
    (0..left + 5).for_each(|_| audit.note(event(Kind::Change)));
    assert_eq!((meter.audit.dropped.get(), meter.audit.taken.get()), (15, QUEUE_EVENTS_MAX as u64));
    audit.start().expect("a thread");
    audit.stop();
    let lines = lines_of(&dir.0, "audit.log");
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!(count("\"event\":\"change\""), left, "each change has its line");
    assert_eq!(count("\"event\":\"login\""), 2, "{lines:?}");
    assert_eq!(count("\"event\":\"dropped\""), 1);
    assert_eq!(count("\"count\":15}"), 1);
}

#[test]
fn unwritable_file_loses_lines_and_counts_them() {
    let dir = Dir::new("unwritable");
    let path = dir.0.join("audit.log");
    let mut files = Files::open(path.clone(), 0o600, 4096, 2).expect("opened");
    files.write(&["{}\n".repeat(1360)]).expect("written");
    // It is to begin a new file, and its directory is gone.
    std::fs::remove_dir_all(&dir.0).expect("removed");
    let (lost, _) = files.write(&["{\"a\":1}\n".repeat(10), "{}\n".to_owned()]).expect_err("no directory");
    assert_eq!(lost, 2);
    std::fs::create_dir_all(&dir.0).expect("made");
    files.write(&["{\"b\":1}\n".to_owned()]).expect("written again");
    assert_eq!(lines_of(&dir.0, "audit.log"), ["{\"b\":1}"]);
}

#[test]
fn events_of_one_write_are_in_the_order_of_their_times() {
    let dir = Dir::new("order");
    let file = FileSettings { path: dir.0.join("audit.log"), bytes_max: 1 << 20, files_max: 2 };
    let settings =
        Settings { file: Some(file), topic: None, kinds: Kinds::parse("changes").expect("a kind") };
    let audit = Audit::open(Some(settings), BrokerId(1), Arc::new(Meter::default())).expect("opened");
    for (at, address) in [(3, "10.0.0.3"), (1, "10.0.0.1"), (2, "10.0.0.2")] {
        let mut event = Event { at: TimestampMs(at), ..event(Kind::Change) };
        event.who.host = Text::from(address);
        audit.note(event);
    }
    audit.start().expect("a thread");
    audit.stop();
    let hosts: Vec<String> = lines_of(&dir.0, "audit.log")
        .iter()
        .filter_map(|line| Some(line.split("\"host\":\"").nth(1)?.split('"').next()?.to_owned()))
        .collect();
    assert_eq!(hosts, ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
}
