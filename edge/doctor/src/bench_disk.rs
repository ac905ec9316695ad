//! `doctor bench-disk DIRECTORY`: how long a synced write takes, as the journal makes it, and what that means for acks.
//!
//! The question: what does acks=all cost at least on this device. The unit: seconds of one write past the page cache
//! with O_DIRECT and O_DSYNC, into a file that is written already, one at a time. Left out: replication, and what a
//! broker's own work adds. Where the file system refuses O_DIRECT, O_DSYNC alone is used, and the result says so.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The file's size: that of a journal file.
const FILE_BYTES: usize = 256 << 20;
/// Direct I/O wants memory and lengths in multiples of it.
const BLOCK: usize = 4096;
/// A header's page, a round under little load, a round as the journal wants it, a large append.
const SIZES: [usize; 4] = [BLOCK, 64 << 10, 256 << 10, 1 << 20];

/// Writes of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Writes {
    pub bytes: usize,
    pub count: usize,
    pub p50: Duration,
    pub p99: Duration,
    pub longest: Duration,
    pub mib_s: f64,
}

#[derive(Debug)]
pub struct DiskBench {
    pub is_direct: bool,
    pub writes: Vec<Writes>,
}

/// Writes for `each` per size.
///
/// # Errors
/// The directory takes no file of 256 MiB.
pub fn bench_disk(directory: &Path, each: Duration) -> std::io::Result<DiskBench> {
    let path = directory.join(format!("barnabas-bench-disk-{}", std::process::id()));
    let result = measure(&path, each);
    // The measurement's own error says more than that of the removal.
    match (result, std::fs::remove_file(&path)) {
        (Ok(_), Err(error)) => Err(error),
        (result, _) => result,
    }
}

fn measure(path: &Path, each: Duration) -> std::io::Result<DiskBench> {
    let memory = vec![0x5a_u8; SIZES[3] + BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK);
    let block = &memory[start..start + SIZES[3]];
    let (file, is_direct) = open(path, block)?;
    for at in (0..FILE_BYTES).step_by(block.len()) {
        file.write_all_at(block, at as u64)?;
    }
    let mut writes = Vec::new();
    for bytes in SIZES {
        writes.push(write(&file, &block[..bytes], each)?);
    }
    Ok(DiskBench { is_direct, writes })
}

/// The file, and whether it is written past the page cache.
fn open(path: &Path, block: &[u8]) -> std::io::Result<(File, bool)> {
    let open = |flags: rustix::fs::OFlags| {
        let flags = flags.bits() as i32;
        OpenOptions::new().write(true).create(true).truncate(false).custom_flags(flags).open(path)
    };
    let direct = open(rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::DSYNC);
    match direct.and_then(|file| file.write_all_at(&block[..BLOCK], 0).map(|()| file)) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            Ok((open(rustix::fs::OFlags::DSYNC)?, false))
        }
        Err(error) => Err(error),
    }
}

fn write(file: &File, block: &[u8], each: Duration) -> std::io::Result<Writes> {
    let (begun, mut at, mut times) = (Instant::now(), 0, Vec::new());
    while times.is_empty() || begun.elapsed() < each {
        let started = Instant::now();
        file.write_all_at(block, at as u64)?;
        times.push(started.elapsed());
        at = (at + block.len()) % FILE_BYTES;
    }
    let seconds = begun.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    Ok(Writes {
        bytes: block.len(),
        count: times.len(),
        p50: at(0.5),
        p99: at(0.99),
        longest: at(1.0),
        mib_s: (times.len() * block.len()) as f64 / seconds / 1_048_576.0,
    })
}

impl DiskBench {
    /// The table and what it means.
    pub fn text(&self) -> String {
        let mut lines = vec!["   bytes   writes       p50       p99   longest     MiB/s".to_owned()];
        let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1000.0);
        for row in &self.writes {
            lines.push(format!(
                "{:>8} {:>8} {:>9} {:>9} {:>9} {:>9.1}",
                row.bytes,
                row.count,
                ms(row.p50),
                ms(row.p99),
                ms(row.longest),
                row.mib_s
            ));
        }
        let (small, round) = (self.writes[0], self.writes[2]);
        lines.push(format!(
            "acks=all takes {} and more here ({} in one of a hundred); a producer with one request in flight gets {:.0} acks a second at most",
            ms(small.p50),
            ms(small.p99),
            1.0 / small.p50.as_secs_f64()
        ));
        lines.push(format!(
            "in rounds of 256 KiB, which many producers fill together, the device takes {:.0} MiB/s of synced records",
            round.mib_s
        ));
        if !self.is_direct {
            lines.push(
                "the file system refuses O_DIRECT: writes went through the page cache, with O_DSYNC"
                    .to_owned(),
            );
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_measures_every_size_and_removes_its_file() {
        let directory = std::env::temp_dir().join(format!("barnabas-bench-disk-test-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let bench = bench_disk(&directory, Duration::ZERO).expect("a measurement");
        assert_eq!(bench.writes.iter().map(|row| row.bytes).collect::<Vec<_>>(), SIZES);
        assert!(bench.writes.iter().all(|row| row.count == 1 && row.p50 == row.longest && row.mib_s > 0.0));
        assert_eq!(bench.text().lines().count(), if bench.is_direct { 7 } else { 8 });
        assert_eq!(std::fs::read_dir(&directory).expect("it is there").count(), 0);
        std::fs::remove_dir(&directory).expect("it is empty");
    }

    #[test]
    fn missing_directory_is_an_error() {
        assert!(bench_disk(Path::new("/no/such/directory"), Duration::ZERO).is_err());
    }
}
