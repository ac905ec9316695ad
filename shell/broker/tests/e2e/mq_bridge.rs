//! `barnabas bridge` with `mq.protocol=experimental`: an application's queue → a topic → another queue, both of a
//! node's MQ listener, while the bridge is killed.

use crate::harness::patience::until;
use crate::harness::{TempDir, TestNode, binary, free_port};
use crate::mq::{Peer, settings};
use barnabas_mq::{gmo, reason};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

const MESSAGES: usize = 400;
const KILLS: usize = 3;

fn file(directory: &Path, name: &str, ports: (u16, u16), more: &str) -> PathBuf {
    let (kafka, mq) = ports;
    let text = format!(
        "name={name}\nbootstrap.servers=127.0.0.1:{kafka}\nmq.protocol=experimental\nmq.queue.manager=QM1\n\
         mq.connection.name.list=127.0.0.1(1), 127.0.0.1({mq})\nmq.channel.name=APP.SVRCONN\n\
         mq.reconnect.delay.max.ms=500\n{more}"
    );
    let path = directory.join(name);
    std::fs::write(&path, text).expect("writes");
    path
}

struct Bridge {
    files: Vec<PathBuf>,
    log: PathBuf,
    child: Child,
}

impl Bridge {
    fn start(files: Vec<PathBuf>, log: PathBuf) -> Self {
        let child = Self::spawn(&files, &log);
        Self { files, log, child }
    }

    fn spawn(files: &[PathBuf], log: &Path) -> Child {
        let said = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        binary().arg("bridge").args(files).stdin(Stdio::null()).stderr(said).spawn().expect("runs")
    }

    fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
        self.child = Self::spawn(&self.files, &self.log);
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What stands in a topic, of committed transactions.
fn committed(kafka: u16, topic: &str) -> Vec<String> {
    let server = format!("127.0.0.1:{kafka}");
    let words = ["console-consumer", "--bootstrap-server", &server, "--topic", topic, "--from-beginning"];
    let more = ["--isolation-level", "read_committed", "--timeout-ms", "2000"];
    let done = binary().args(words).args(more).output().expect("runs");
    String::from_utf8(done.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn killed_mq_bridge_loses_nothing_and_its_source_doubles_nothing() {
    let port = free_port();
    let settings = settings(port);
    let mut node = TestNode::start_with(&settings.each_ref().map(String::as_str));
    let directory = TempDir::new();
    let ports = (node.port, port);
    let into = "connector.class=source\nmq.queue=APP.IN\ntopic=story\nmq.batch.size=20\n";
    let out = "connector.class=sink\nmq.queue=APP.OUT\ntopics=story\nvalue.converter=StringConverter\n";
    let files = vec![file(directory.path(), "in", ports, into), file(directory.path(), "out", ports, out)];
    let mut sender = Peer::connect(port, "", "").expect("let in");
    let to = sender.open_to_put("APP.IN");
    let mut bridge = Bridge::start(files, directory.path().join("log"));
    let mut kills = 0;
    for number in 0..MESSAGES {
        sender.put(to, 0, &number.to_string());
        std::thread::sleep(std::time::Duration::from_millis(5));
        if kills < KILLS && number == (kills + 1) * MESSAGES / (KILLS + 1) {
            let running = |log: &str| log.matches("exactly once by message id").count() > kills;
            until("the bridge runs", || running(&bridge.log()).then_some(()));
            bridge.kill();
            kills += 1;
        }
    }
    let wanted: BTreeSet<String> = (0..MESSAGES).map(|number| number.to_string()).collect();
    let in_topic = until("all messages are in the topic", || {
        let found = committed(ports.0, "story");
        (found.iter().cloned().collect::<BTreeSet<_>>() == wanted).then_some(found)
    });
    assert_eq!(in_topic.len(), MESSAGES, "a message came twice:\n{}", bridge.log());

    let mut receiver = Peer::connect(port, "", "").expect("let in");
    let from = receiver.open("APP.OUT");
    let mut in_queue = BTreeSet::new();
    // The group waits for the killed sink until its session is over: 45 s.
    let mut in_vain = 0;
    while in_queue != wanted {
        match receiver.get(from, gmo::NO_SYNCPOINT, 15_000) {
            Ok((text, _)) => drop(in_queue.insert(text)),
            Err(reason::NO_MSG_AVAILABLE) if in_vain < 5 => in_vain += 1,
            Err(why) => panic!("reason {why} after {} messages:\n{}", in_queue.len(), bridge.log()),
        }
    }
    let left = sender.open("APP.IN");
    assert_eq!(sender.get(left, gmo::NO_SYNCPOINT, 500), Err(reason::NO_MSG_AVAILABLE));
    assert!(bridge.log().contains("AT LEAST ONCE"), "{}", bridge.log());
    drop(bridge);
    node.stop_expecting_trouble();
}
