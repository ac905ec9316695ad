//! What a process uses, out of `/proc`.

use crate::Trouble;

/// Figures of one moment, or the highest of several.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub resident_mib: u64,
    pub descriptors: u64,
    pub maps: u64,
}

impl Usage {
    /// All zero once the process has ended.
    pub fn of(pid: u32) -> Self {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        Self {
            resident_mib: resident_bytes(pid) >> 20,
            descriptors: descriptors as u64,
            maps: maps.lines().count() as u64,
        }
    }

    /// The higher of each figure.
    #[must_use]
    pub fn highest(self, other: Self) -> Self {
        Self {
            resident_mib: self.resident_mib.max(other.resident_mib),
            descriptors: self.descriptors.max(other.descriptors),
            maps: self.maps.max(other.maps),
        }
    }
}

/// Resident memory; 0 once the process has ended.
pub fn resident_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

/// The most that was resident since the start or the last [`reset_peak`]; 0 once the process has ended.
pub fn peak_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmHWM:")
}

/// [`peak_bytes`] counts from now on.
///
/// # Errors
/// The process has ended, or is another user's.
pub fn reset_peak(pid: u32) -> Result<(), Trouble> {
    Ok(std::fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}

fn status_bytes(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_of_this_process_is_seen_and_of_none_is_zero() {
        let own = Usage::of(std::process::id());
        assert!(own.resident_mib > 0 && own.descriptors > 2 && own.maps > 1, "{own:?}");
        assert!(peak_bytes(std::process::id()) >= resident_bytes(std::process::id()) / 2);
        assert_eq!(resident_bytes(u32::MAX), 0);
    }
}
