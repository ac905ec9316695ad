//! What is done to a file. A file keeps its time of change where a failing medium would not change it either.

use crate::{Trouble, trouble};
use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::path::Path;

/// See the file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    FlippedBit,
    ZeroedPage,
    Truncated,
    Swapped,
    Stale,
    Missing,
    /// The segment's other files, too.
    Vanished,
    WrongOwner,
    ReadOnly,
}

pub const ALL: [Harm; 9] = [
    Harm::FlippedBit,
    Harm::ZeroedPage,
    Harm::Truncated,
    Harm::Swapped,
    Harm::Stale,
    Harm::Missing,
    Harm::Vanished,
    Harm::WrongOwner,
    Harm::ReadOnly,
];

const PAGE_BYTES: u64 = 4096;

impl Harm {
    pub fn name(self) -> &'static str {
        match self {
            Self::FlippedBit => "flipped bit",
            Self::ZeroedPage => "zeroed page",
            Self::Truncated => "truncated",
            Self::Swapped => "swapped",
            Self::Stale => "stale copy",
            Self::Missing => "missing",
            Self::Vanished => "all of the segment missing",
            Self::WrongOwner => "wrong owner",
            Self::ReadOnly => "read-only",
        }
    }

    /// Does it to `file`. `other`: one of its kind; `older`: the file as it once was. `tail`: what changed bytes shall
    /// hit is the file's end. Returns `false` where it cannot be done to this file.
    pub fn apply(self, file: &Path, other: Option<&Path>, older: &Path, tail: bool) -> Result<bool, Trouble> {
        let len = std::fs::metadata(file)?.len();
        match self {
            Self::FlippedBit | Self::ZeroedPage if len == 0 => return Ok(false),
            Self::FlippedBit => flip(file, len, tail)?,
            Self::ZeroedPage => zero(file, len, tail)?,
            Self::Truncated if len < 2 => return Ok(false),
            Self::Truncated => truncate(file, len, tail)?,
            Self::Swapped => {
                let Some(other) = other else { return Ok(false) };
                if std::fs::read(file)? == std::fs::read(other)? {
                    return Ok(false);
                }
                let aside = file.with_extension("aside");
                std::fs::rename(file, &aside)?;
                std::fs::rename(other, file)?;
                std::fs::rename(&aside, other)?;
            }
            Self::Stale => {
                if !older.exists() || std::fs::read(older)? == std::fs::read(file)? {
                    return Ok(false);
                }
                let bytes = std::fs::read(older)?;
                let permissions = std::fs::metadata(file)?.permissions();
                std::fs::write(file, bytes)?;
                std::fs::set_permissions(file, permissions)?;
            }
            Self::Missing => std::fs::remove_file(file)?,
            Self::Vanished if file.extension().is_none_or(|ending| ending != "log") => return Ok(false),
            Self::Vanished => remove_segment(file)?,
            Self::WrongOwner => {
                if !is_root()? {
                    return Ok(false);
                }
                chown(file, Some(0), Some(0))?;
                std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600))?;
            }
            Self::ReadOnly => std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o444))?,
        }
        Ok(true)
    }
}

/// Everything that begins with the same offset.
fn remove_segment(file: &Path) -> Result<(), Trouble> {
    let (Some(dir), Some(base)) = (file.parent(), file.file_stem()) else { return trouble("no segment") };
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.file_stem() == Some(base) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

pub fn is_root() -> Result<bool, Trouble> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata("/proc/self")?.uid() == 0)
}

/// Changes bytes in place and puts the file's time back.
fn change(file: &Path, work: impl FnOnce(&File) -> std::io::Result<()>) -> Result<(), Trouble> {
    let open = File::options().read(true).write(true).open(file)?;
    let modified = open.metadata()?.modified()?;
    work(&open)?;
    Ok(open.set_modified(modified)?)
}

/// In a text, a digit becomes another digit: the file stays one of its kind as far as that goes.
fn flip(file: &Path, len: u64, tail: bool) -> Result<(), Trouble> {
    let bytes = std::fs::read(file)?;
    let is_text = bytes.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let middle = if tail { len - len.min(100) } else { len / 2 } as usize;
    let digit = |at: &usize| bytes[*at].is_ascii_digit();
    let at = match is_text {
        true => (middle..bytes.len()).rev().find(digit).or_else(|| (0..middle).rev().find(digit)),
        false => Some(middle),
    };
    let Some(at) = at else { return trouble("a text without a digit") };
    let mask = if is_text { 0x01 } else { 0x10 };
    change(file, |open| open.write_all_at(&[bytes[at] ^ mask], at as u64))
}

fn zero(file: &Path, len: u64, tail: bool) -> Result<(), Trouble> {
    let at = if tail { len - 1 } else { len / 2 };
    let from = at / PAGE_BYTES * PAGE_BYTES;
    let zeros = vec![0; (len - from).min(PAGE_BYTES) as usize];
    change(file, |open| open.write_all_at(&zeros, from))
}

fn truncate(file: &Path, len: u64, tail: bool) -> Result<(), Trouble> {
    let to = if tail { len - len.min(100) } else { len / 2 };
    change(file, |open| open.set_len(to))
}
