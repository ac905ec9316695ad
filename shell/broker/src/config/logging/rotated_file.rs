//! A file of lines that is bounded: `FILE`, and those before it, `FILE.1` (the newest of them), `FILE.2`, …. The
//! node's log and the audit log have one each.
//!
//! Lines are handed to the system as soon as there is no more to write, and not synced: a power cut may lose the last
//! ones. A line that was cut off (by a full disk, or a kill) is ended before the next is written. A file that another
//! program renamed or removed (logrotate) is left to it: the next lines go to a new one.
//!
//! Used by config/logging/log_file.rs and node/audit/writer.rs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// See the file's header.
#[derive(Debug)]
pub struct Files {
    path: PathBuf,
    mode: u32,
    bytes_max: u64,
    files_max: u64,
    /// `None`: it could not be written, and is opened again with the next line.
    open: Option<(File, u64)>,
}

impl Files {
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(path: PathBuf, mode: u32, bytes_max: u64, files_max: u64) -> io::Result<Self> {
        let open = Some(open(&path, mode)?);
        Ok(Self { path, mode, bytes_max, files_max, open })
    }

    /// Whether `path` may become such a file: `Err` says why not.
    pub fn check(path: &Path) -> Result<(), String> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        if !parent.is_dir() {
            return Err(format!("{} is no directory: create it", parent.display()));
        }
        if path.exists() && !path.is_file() {
            return Err(format!("{} is no file", path.display()));
        }
        Ok(())
    }

    /// Closes a file that is no longer where it was opened, and takes note of one that was cut short.
    pub fn look_again(&mut self) {
        let Some((file, bytes)) = &mut self.open else { return };
        let (Ok(own), at) = (file.metadata(), std::fs::metadata(&self.path)) else { return };
        match at {
            Ok(at) if (at.dev(), at.ino()) == (own.dev(), own.ino()) => *bytes = own.len(),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            Ok(_) | Err(_) => self.open = None,
        }
    }

    /// Writes whole lines, in as few calls as the size of the files allows.
    ///
    /// # Errors
    /// How many of them are not in the file, and why.
    pub fn write(&mut self, lines: &[String]) -> Result<(), (usize, io::Error)> {
        let mut done = 0;
        while done < lines.len() {
            let count = self.write_some(&lines[done..]).inspect_err(|_| self.open = None);
            done += count.map_err(|error| (lines.len() - done, error))?;
        }
        Ok(())
    }

    /// Writes as many as the current file takes, and one at least.
    fn write_some(&mut self, lines: &[String]) -> io::Result<usize> {
        if self
            .open
            .as_ref()
            .is_some_and(|(_, bytes)| *bytes > 0 && bytes + lines[0].len() as u64 > self.bytes_max)
        {
            self.open = None;
            self.rotate()?;
        }
        let (file, bytes) = match &mut self.open {
            Some(open) => open,
            none => none.insert(open(&self.path, self.mode)?),
        };
        let mut text = Vec::new();
        let mut count = 0;
        for line in lines {
            if count > 0 && *bytes + (text.len() + line.len()) as u64 > self.bytes_max {
                break;
            }
            text.extend_from_slice(line.as_bytes());
            count += 1;
        }
        file.write_all(&text)?;
        *bytes += text.len() as u64;
        Ok(count)
    }

    fn rotate(&self) -> io::Result<()> {
        let numbered = |number: u64| numbered(&self.path, number);
        if self.files_max == 1 {
            return std::fs::remove_file(&self.path);
        }
        for number in (1..self.files_max - 1).rev() {
            match std::fs::rename(numbered(number), numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        std::fs::rename(&self.path, numbered(1))
    }
}

fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// The file with its size. Its last line is whole.
fn open(path: &Path, mode: u32) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    let mut file = options.create(true).read(true).append(true).mode(mode).open(path)?;
    let mut bytes = file.metadata()?.len();
    if bytes > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
            bytes += 1;
        }
    }
    Ok((file, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("barnabas-rotated-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).expect("made");
            Self(path)
        }

        fn files(&self, bytes_max: u64) -> Files {
            Files::open(self.0.join("x.log"), 0o640, bytes_max, 3).expect("opened")
        }

        fn text(&self, name: &str) -> String {
            std::fs::read_to_string(self.0.join(name)).unwrap_or_default()
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn write(files: &mut Files, line: &str) {
        files.write(&[format!("{line}\n")]).expect("written");
    }

    #[test]
    fn file_that_was_moved_away_is_opened_again() {
        let dir = Dir::new("moved");
        let mut files = dir.files(1 << 20);
        write(&mut files, "one");
        std::fs::rename(dir.0.join("x.log"), dir.0.join("x.log-20261129")).expect("renamed");
        files.look_again();
        write(&mut files, "two");
        assert_eq!((&*dir.text("x.log-20261129"), &*dir.text("x.log")), ("one\n", "two\n"));
        std::fs::remove_file(dir.0.join("x.log")).expect("removed");
        std::fs::write(dir.0.join("x.log"), "of another\n").expect("written");
        files.look_again();
        write(&mut files, "three");
        assert_eq!(dir.text("x.log"), "of another\nthree\n");
        let mode = std::fs::metadata(dir.0.join("x.log-20261129")).expect("there").mode();
        assert_eq!(mode & 0o137, 0, "no more than 0640: {mode:o}");
    }

    #[test]
    fn file_that_was_cut_short_is_not_rotated_early() {
        let dir = Dir::new("cut");
        let mut files = dir.files(10);
        write(&mut files, "12345678");
        // logrotate's copytruncate.
        std::fs::write(dir.0.join("x.log"), "").expect("emptied");
        files.look_again();
        write(&mut files, "abcdefgh");
        assert_eq!((&*dir.text("x.log"), &*dir.text("x.log.1")), ("abcdefgh\n", ""));
        write(&mut files, "next");
        assert_eq!((&*dir.text("x.log"), &*dir.text("x.log.1")), ("next\n", "abcdefgh\n"));
    }

    #[test]
    fn directory_that_is_missing_is_named() {
        let dir = Dir::new("checked");
        let refused = Files::check(&dir.0.join("none/x.log")).expect_err("refused");
        assert!(refused.contains("none is no directory"), "{refused}");
        assert!(Files::check(&dir.0).expect_err("refused").contains("is no file"));
        Files::check(&dir.0.join("x.log")).expect("may be made");
    }
}
