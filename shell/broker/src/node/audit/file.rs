//! The files of the audit log: `FILE`, and those before it, `FILE.1` (the newest of them), `FILE.2`, ….
//!
//! Lines are handed to the system as soon as there is no more to write, and not synced: a power cut may lose the last
//! ones. A line that was cut off (by a full disk, or a kill) is ended before the next is written.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// See the file's header.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    bytes_max: u64,
    files_max: u64,
    /// `None`: it could not be written, and is opened again with the next line.
    open: Option<(File, u64)>,
}

impl Files {
    /// # Errors
    /// The file cannot be opened for writing.
    pub(super) fn open(path: PathBuf, bytes_max: u64, files_max: u64) -> io::Result<Self> {
        let open = Some(open(&path)?);
        Ok(Self { path, bytes_max, files_max, open })
    }

    /// Writes whole lines, in as few calls as the size of the files allows.
    ///
    /// # Errors
    /// How many of them are not in the file, and why.
    pub(super) fn write(&mut self, lines: &[String]) -> Result<(), (usize, io::Error)> {
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
            none => none.insert(open(&self.path)?),
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
fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    let mut file = options.create(true).read(true).append(true).mode(0o600).open(path)?;
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
