//! A port that is changed on the command line alone, and a broker that is not formatted.

use crate::harness::quorum::{eventually, format, metadata, random_uuid};
use crate::harness::{Client, TempDir, binary, free_port};
use std::path::Path;
use std::process::{Child, Stdio};

/// Kafka's own server.properties, on loopback.
fn properties(dir: &Path) -> String {
    let data = dir.join("data");
    let (port, controller) = (free_port(), free_port());
    format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
         controller.quorum.bootstrap.servers=localhost:{controller}\ninter.broker.listener.name=PLAINTEXT\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
         log.dirs={}\n",
        data.display()
    )
}

/// Starts a node at `port`, and returns the port that it tells clients.
fn told_port(arguments: &[&str], listeners: &str, port: u16, dir: &Path) -> u16 {
    let mut child = binary()
        .args(arguments)
        .args(["--override", &format!("listeners={listeners}")])
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut told = None;
    eventually("the log names the node", || {
        told = Client::try_connect(port).ok().and_then(|mut client| {
            metadata(&mut client).brokers.first().and_then(|broker| u16::try_from(broker.port).ok())
        });
        told.is_some()
    });
    stop(&mut child);
    told.expect("told")
}

fn stop(child: &mut Child) {
    child.kill().expect("killed");
    child.wait().expect("reaped");
}

#[test]
fn advertised_port_follows_an_override_of_listeners() {
    let dir = TempDir::new();
    let file = dir.path().join("server.properties");
    std::fs::write(&file, properties(dir.path())).expect("writes");
    let (ok, said) = format(&file, &random_uuid(), &["--standalone"]);
    assert!(ok, "{said}");
    let file = file.to_str().expect("text");
    let (port, controller) = (free_port(), free_port());
    let both = format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}");
    assert_eq!(told_port(&["server", file], &both, port, dir.path()), port);
    // The clients' listener alone: the controller's stays as the file says.
    let port = free_port();
    assert_eq!(
        told_port(&["server", file], &format!("PLAINTEXT://127.0.0.1:{port}"), port, dir.path()),
        port
    );
    // Without a file.
    let (port, empty) = (free_port(), TempDir::new());
    assert_eq!(told_port(&["server"], &format!("PLAINTEXT://127.0.0.1:{port}"), port, empty.path()), port);
}

#[test]
fn unformatted_broker_names_the_clusters_id_in_its_error() {
    let dir = TempDir::new();
    let file = dir.path().join("server.properties");
    let text = properties(dir.path()).replace("broker,controller", "broker");
    let text: Vec<&str> = text.lines().collect();
    let listeners = format!("listeners=PLAINTEXT://127.0.0.1:{}", free_port());
    let text: Vec<String> = text
        .iter()
        .filter(|line| !line.contains("advertised"))
        .map(|line| if line.starts_with("listeners=") { listeners.clone() } else { (*line).to_owned() })
        .collect();
    std::fs::write(&file, text.join("\n")).expect("writes");
    let refused = binary().args(["server", file.to_str().expect("text")]).output().expect("runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("cluster-id --bootstrap-server"), "{said}");
    assert!(said.contains("-t CLUSTER-ID") && !said.contains("random-uuid"), "{said}");
}

#[test]
fn initial_controllers_say_where_directory_ids_come_from() {
    let dir = TempDir::new();
    let file = dir.path().join("server.properties");
    std::fs::write(&file, properties(dir.path())).expect("writes");
    let (ok, said) = format(&file, &random_uuid(), &["--initial-controllers", "1@127.0.0.1:9093"]);
    assert!(!ok && said.contains("barnabas storage random-uuid"), "{said}");
}
