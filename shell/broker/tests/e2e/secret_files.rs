//! Files with secrets that every user of the machine can read: one WARN each at the start.

use crate::harness::{TestNode, free_port};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const WARNING: &str = "every user of this machine can open it";

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("own file");
}

#[test]
fn file_with_a_secret_that_others_can_read_is_warned_of() {
    let (port, controller_port) = (free_port(), free_port());
    let mut node = TestNode::of_file("", port);
    let (folder, settings) = (node.dir.path().to_owned(), node.dir.path().join("server.properties"));
    let text = format!(
        "process.roles=broker,controller\nnode.id=1\nlog.dirs={}\ncontroller.listener.names=CONTROLLER\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n\
         controller.quorum.voters=1@127.0.0.1:{controller_port}\noffsets.topic.replication.factor=1\n\
         delegation.token.secret.key=hunter2\n",
        node.data().display()
    );
    std::fs::write(&settings, text).expect("written");
    node.set_file(&settings.display().to_string(), (port, controller_port));
    let formatted = crate::harness::binary()
        .args(["storage", "format", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qk", "--config"])
        .arg(&settings)
        .output()
        .expect("runs");
    assert!(formatted.status.success(), "{formatted:?}");
    let mut warnings = |folder_mode, mode| {
        set_mode(&folder, folder_mode);
        set_mode(&settings, mode);
        let before = node.log().len();
        node.launch();
        node.stop_expecting_trouble();
        let log = node.log().split_off(before);
        log.lines().filter(|line| line.contains(WARNING)).map(str::to_owned).collect::<Vec<_>>()
    };
    let found = warnings(0o755, 0o644);
    let said = format!("{} holds the secret of delegation.token.secret.key", settings.display());
    assert!(
        found.len() == 1 && found[0].contains(&said) && found[0].contains("mode=0644"),
        "{found:?}, expected {said}"
    );
    assert!(!found[0].contains("hunter2"), "{found:?}");
    assert_eq!(warnings(0o755, 0o640), <[&str; 0]>::default(), "its group may read it");
    assert_eq!(warnings(0o700, 0o644), <[&str; 0]>::default(), "its folder is closed to others");
}
