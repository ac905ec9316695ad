//! How much memory this process may hold: the machine's, or less where a control group or a limit of the process says
//! so.
//!
//! Defaults that are shares of it (the request budget, the cache of recent batches) would end a node in a small
//! container on a large machine. A process without any limit gets the machine's memory.
//!
//! Source: cgroups(7), `memory.max` of version 2 and `memory.limit_in_bytes` of version 1; getrlimit(2), `RLIMIT_AS`.

use std::path::{Path, PathBuf};

/// What a group without a limit says in version 1 is a little below 2^63.
const UNLIMITED: u64 = 1 << 62;

/// Bytes that this process may hold.
pub fn allowed_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let machine = info.totalram.saturating_mul(u64::from(info.mem_unit));
    let address_space = rustix::process::getrlimit(rustix::process::Resource::As).current;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_files(&groups).iter().filter_map(|path| limit_of(path)).min();
    [group, address_space].into_iter().flatten().fold(machine, u64::min)
}

fn limit_of(path: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.trim().parse().ok().filter(|bytes| *bytes < UNLIMITED)
}

/// The files that may hold a limit, by `/proc/self/cgroup`: of the process's own group and of all above it. Within a
/// container the path is often that of the host, and the group's files lie at the root.
fn group_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            named if named.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let own = Path::new(path.trim_start_matches('/'));
        files.extend(own.ancestors().map(|group| Path::new(root).join(group).join(file)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_all_above_it_are_asked() {
        let files =
            |text| group_files(text).iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        assert_eq!(
            files("0::/system.slice/barnabas.service\n"),
            [
                "/sys/fs/cgroup/system.slice/barnabas.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        assert_eq!(
            files("9:name=systemd:/\n4:cpu,memory:/docker/1f\n1:cpu:/\n"),
            [
                "/sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            ]
        );
        assert_eq!(files("rubbish\n::\n").len(), 1);
    }

    #[test]
    fn a_limit_is_a_number_that_limits() {
        let dir = std::env::temp_dir().join(format!("barnabas-memory-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let path = dir.join("limit");
        for (text, limit) in
            [("1073741824\n", Some(1 << 30)), ("max\n", None), ("9223372036854771712\n", None)]
        {
            std::fs::write(&path, text).expect("written");
            assert_eq!(limit_of(&path), limit, "{text}");
        }
        assert_eq!(limit_of(&dir.join("nothing")), None);
        std::fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn some_memory_is_allowed() {
        assert!(allowed_bytes() > 1 << 20);
    }
}
