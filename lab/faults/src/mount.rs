//! A file system of our own in a file, mounted through a loop device, that can lose its power.
//!
//! The cut is the file system's own shutdown call: from that moment nothing reaches the device any more, and every
//! write or sync fails with EIO. With `flush` the file system first writes out its journal, as it might have a
//! moment before the cut. Mounting again replays that journal: the result is what a machine finds after the power
//! came back, as far as the page cache goes. It does not cover a device that loses or tears writes that it has
//! confirmed.

use crate::{Trouble, trouble};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Which file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Ext4,
    Xfs,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

/// A mounted file system.
#[derive(Debug)]
pub struct Mount {
    kind: Kind,
    image: PathBuf,
    device: String,
    point: PathBuf,
    is_mounted: bool,
}

impl Mount {
    /// Makes an image of `bytes` (sparse) in `place`, a file system in it, and mounts it.
    pub fn make(kind: Kind, place: &Path, bytes: u64) -> Result<Self, Trouble> {
        let image = place.join(format!("{}.img", kind.name()));
        let point = place.join(kind.name());
        std::fs::create_dir_all(&point)?;
        std::fs::File::create(&image)?.set_len(bytes)?;
        let quiet: &[&str] = match kind {
            Kind::Ext4 => &["mkfs.ext4", "-q", "-F"],
            Kind::Xfs => &["mkfs.xfs", "-q", "-f"],
        };
        run(Command::new(quiet[0]).args(&quiet[1..]).arg(&image))?;
        let device = run(Command::new("losetup").args(["--find", "--show"]).arg(&image))?.trim().to_owned();
        let mut mount = Self { kind, image, device, point, is_mounted: false };
        mount.mount()?;
        Ok(mount)
    }

    pub fn point(&self) -> &Path {
        &self.point
    }

    pub fn mount(&mut self) -> Result<(), Trouble> {
        run(Command::new("mount").args(["-t", self.kind.name(), &self.device]).arg(&self.point))?;
        self.is_mounted = true;
        Ok(())
    }

    /// Gets everything ready for a cut, so that the cut itself is one system call and not the start of a program.
    pub fn arm(&self) -> Result<Armed, Trouble> {
        let mut command = Command::new("xfs_io");
        command
            .args(["-x"])
            .arg(&self.point)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        Ok(Armed { tool: command.spawn()? })
    }

    /// Waits for processes that still close files there.
    pub fn unmount(&mut self) -> Result<(), Trouble> {
        let begun = Instant::now();
        loop {
            match run(Command::new("umount").arg(&self.point)) {
                Ok(_) => break,
                Err(error) if begun.elapsed() > Duration::from_secs(20) => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        self.is_mounted = false;
        Ok(())
    }

    fn remove(&mut self) -> Result<(), Trouble> {
        if self.is_mounted {
            self.unmount()?;
        }
        run(Command::new("losetup").args(["--detach", &self.device]))?;
        Ok(std::fs::remove_file(&self.image)?)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("{} stays behind: {error}", self.image.display());
        }
    }
}

/// A file system that is about to lose its power.
#[derive(Debug)]
pub struct Armed {
    tool: Child,
}

impl Armed {
    /// From some moment in here on nothing reaches the device.
    pub fn cut(mut self, flush: bool) -> Result<(), Trouble> {
        let word = if flush { "shutdown -f\n" } else { "shutdown\n" };
        if let Some(mut input) = self.tool.stdin.take() {
            input.write_all(word.as_bytes())?;
        }
        let done = self.tool.wait_with_output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        if done.status.success() && said.trim().is_empty() {
            Ok(())
        } else {
            trouble(format!("xfs_io: {}", said.trim()))
        }
    }
}

/// Runs a tool; what it printed.
fn run(command: &mut Command) -> Result<String, Trouble> {
    let done = command.output();
    let done = done.map_err(|error| Trouble(format!("{}: {error}", command.get_program().display())))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    trouble(format!("{}: {}", command.get_program().display(), String::from_utf8_lossy(&done.stderr).trim()))
}
