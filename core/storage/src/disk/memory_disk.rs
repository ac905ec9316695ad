//! A disk in memory that forgets and tears what was not synced: for tests and the simulator.
//!
//! Every file has its contents as programs see them and as they are on the medium; every directory likewise.
//! [`DiskFile::sync`] and [`Disk::sync_dir`] carry the one over to the other. [`MemoryDisk::crash`] ends the process
//! and cuts the power: each unsynced write is kept, lost or torn, and of the unsynced changes of a directory's names as
//! many are kept as a seed decides.
//!
//! Harsher than Linux where Linux may be harsh: unsynced writes survive independently of each other, in pieces of 512
//! bytes, and a file that grew may come back long and zeroed (ext4 does that). Names are as on a journaled file system:
//! changes within a directory survive in their order, a rename as a whole; directories know nothing of each other.
//!
//! It stands in for the machine, so it may hold a lock although nothing else in core does.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
#[expect(clippy::disallowed_types, reason = "a stand-in for the machine, shared like one")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard};

use barnabas_base::{Map, TimestampMs};

use crate::disk::{
    DirEntry, Disk, DiskError, DiskErrorKind, DiskFile, DiskLock, DiskSpace, FileStat, OpenMode,
};
use crate::journal::BLOCK_BYTES;

/// What a device writes as a whole.
const SECTOR_BYTES: usize = 512;

/// A file system in memory. Clones are the same disk.
#[derive(Debug, Clone)]
pub struct MemoryDisk {
    #[expect(clippy::disallowed_types, reason = "a stand-in for the machine, shared like one")]
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    nodes: Vec<Node>,
    /// Goes up with each crash: handles from before are dead.
    boot: u64,
    now: TimestampMs,
    capacity: u64,
    faults: Faults,
    locks: Map<PathBuf, u64>,
    syncs: u64,
    random: u64,
}

/// What goes wrong from now on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Writes fail with a device error, after this many more that succeed.
    pub writes_until_error: Option<u64>,
    /// Reads fail with a device error.
    pub read_error: bool,
    /// Syncs fail with a device error, after this many more that succeed; what a failed sync covered is lost.
    pub syncs_until_error: Option<u64>,
    /// Renames fail with a device error, after this many more that succeed.
    pub renames_until_error: Option<u64>,
}

#[derive(Debug)]
enum Node {
    File(FileNode),
    Dir(DirNode),
}

#[derive(Debug, Default)]
struct FileNode {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// Ranges written since the last sync.
    unsynced: Vec<(usize, usize)>,
    /// Has no name any more: takes no room. A crash may bring an unsynced removal's name back.
    removed: bool,
    modified: TimestampMs,
}

#[derive(Debug, Default, Clone)]
struct DirNode {
    now: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    /// What was done since the last sync; each change is kept as a whole.
    unsynced: Vec<Change>,
}

/// Names and what they came to stand for.
type Change = Vec<(String, Option<usize>)>;

#[derive(Debug)]
struct MemoryFile {
    disk: MemoryDisk,
    node: usize,
    boot: u64,
    path: PathBuf,
}

#[derive(Debug)]
struct MemoryLock {
    disk: MemoryDisk,
    path: PathBuf,
    boot: u64,
}

impl Default for MemoryDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryDisk {
    /// An empty disk of 1 TiB.
    pub fn new() -> Self {
        let state = State {
            nodes: vec![Node::Dir(DirNode::default())],
            boot: 0,
            now: TimestampMs(0),
            capacity: 1 << 40,
            faults: Faults::default(),
            locks: Map::default(),
            syncs: 0,
            random: 0,
        };
        #[expect(clippy::disallowed_types, reason = "a stand-in for the machine, shared like one")]
        let state = Arc::new(Mutex::new(state));
        Self { state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked while it held the lock has failed already.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What files that are written from now on say of when that was.
    pub fn set_now(&self, now: TimestampMs) {
        self.state().now = now;
    }

    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = bytes;
    }

    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Syncs of files and directories so far.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// The process dies, the machine goes on: nothing is lost, and all handles and locks are dead.
    pub fn kill(&self) {
        let mut state = self.state();
        state.boot += 1;
        state.locks.clear();
        state.faults = Faults::default();
    }

    /// The power goes. What was not synced is kept, lost or torn as `seed` decides; all handles and locks are dead.
    pub fn crash(&self, seed: u64) {
        self.kill();
        let mut state = self.state();
        state.random = seed ^ 0x9e37_79b9_7f4a_7c15;
        for at in 0..state.nodes.len() {
            let mut random = state.random;
            match &mut state.nodes[at] {
                Node::File(file) => file.crash(&mut random),
                Node::Dir(dir) => dir.crash(&mut random),
            }
            state.random = random;
        }
        let all: Vec<usize> = (0..state.nodes.len()).collect();
        state.note_names(&all);
    }

    /// As `syncfs`: everything is on the medium as programs see it.
    ///
    /// # Errors
    /// Where syncs fail ([`Faults`]).
    pub fn sync_all(&self) -> Result<(), DiskError> {
        let mut state = self.state();
        if state.sync_fails() {
            return Err(DiskError::new("sync", Path::new("/"), DiskErrorKind::Device));
        }
        for node in &mut state.nodes {
            match node {
                Node::File(file) => file.sync(),
                Node::Dir(dir) => dir.sync(),
            }
        }
        Ok(())
    }

    /// Changes the bytes of a file as a failing medium would: behind everybody's back, for good.
    pub fn corrupt(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let node = state.find(path).expect("the file to damage exists");
        if let Node::File(file) = &mut state.nodes[node] {
            change(&mut file.now);
            file.durable = file.now.clone();
            file.unsynced.clear();
        }
    }

    /// The bytes of a file.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        match &state.nodes[state.find(path)?] {
            Node::File(file) => Some(file.now.clone()),
            Node::Dir(_) => None,
        }
    }
}

/// Whether a fault happens now; counts what succeeds until then.
fn is_due(until: &mut Option<u64>) -> bool {
    let is_due = *until == Some(0);
    *until = until.map(|left| left.saturating_sub(1));
    is_due
}

/// SplitMix64: enough to decide what a crash keeps.
fn draw(random: &mut u64, below: u64) -> u64 {
    barnabas_base::split_mix_64(random) % below
}

impl FileNode {
    fn sync(&mut self) {
        self.durable = self.now.clone();
        self.unsynced.clear();
    }

    fn crash(&mut self, random: &mut u64) {
        let mut kept = self.durable.clone();
        // The length may have reached the medium whether or not the bytes did.
        match draw(random, 4) {
            0 => {}
            1 => kept.resize(self.now.len(), 0),
            _ => {
                let between = self.now.len().abs_diff(kept.len()) as u64 + 1;
                let len = self.now.len().min(kept.len()) + draw(random, between) as usize;
                kept.resize(len, 0);
            }
        }
        let all = draw(random, 8);
        for (from, to) in std::mem::take(&mut self.unsynced) {
            let mut at = from;
            while at < to {
                let end = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(to);
                let keep = all == 0 || (all != 1 && draw(random, 2) == 0);
                let end_kept = end.min(kept.len()).min(self.now.len());
                if keep && at < end_kept {
                    kept[at..end_kept].copy_from_slice(&self.now[at..end_kept]);
                }
                at = end;
            }
        }
        self.durable = kept.clone();
        self.now = kept;
    }
}

impl DirNode {
    fn sync(&mut self) {
        self.durable = self.now.clone();
        self.unsynced.clear();
    }

    fn crash(&mut self, random: &mut u64) {
        let kept = draw(random, self.unsynced.len() as u64 + 1) as usize;
        for change in std::mem::take(&mut self.unsynced).into_iter().take(kept) {
            apply(&mut self.durable, &change);
        }
        self.now = self.durable.clone();
    }
}

fn apply(names: &mut BTreeMap<String, usize>, change: &Change) {
    for (name, node) in change {
        match node {
            Some(node) => names.insert(name.clone(), *node),
            None => names.remove(name),
        };
    }
}

impl DirNode {
    fn change(&mut self, change: Change) {
        apply(&mut self.now, &change);
        self.unsynced.push(change);
    }
}

impl State {
    fn find(&self, path: &Path) -> Option<usize> {
        let mut at = 0;
        for part in path.components() {
            if let Component::Normal(name) = part {
                let Node::Dir(dir) = &self.nodes[at] else { return None };
                at = *dir.now.get(&*name.to_string_lossy())?;
            }
        }
        Some(at)
    }

    /// The directory that holds `path`, and the last part of its name.
    fn parent(&mut self, action: &'static str, path: &Path) -> Result<(&mut DirNode, String), DiskError> {
        let missing = || DiskError::new(action, path, DiskErrorKind::NotFound);
        let name = path.file_name().ok_or_else(missing)?.to_string_lossy().into_owned();
        let parent = self.find(path.parent().unwrap_or(Path::new("/"))).ok_or_else(missing)?;
        match &mut self.nodes[parent] {
            Node::Dir(dir) => Ok((dir, name)),
            Node::File(_) => Err(missing()),
        }
    }

    fn add(&mut self, action: &'static str, path: &Path, node: Node) -> Result<usize, DiskError> {
        let at = self.nodes.len();
        let (dir, name) = self.parent(action, path)?;
        dir.change(vec![(name, Some(at))]);
        self.nodes.push(node);
        Ok(at)
    }

    /// Notes of each of `nodes` whether some directory names it.
    fn note_names(&mut self, nodes: &[usize]) {
        let mut named = vec![false; self.nodes.len()];
        for node in &self.nodes {
            if let Node::Dir(dir) = node {
                dir.now.values().for_each(|at| named[*at] = true);
            }
        }
        for &at in nodes {
            if let Node::File(file) = &mut self.nodes[at] {
                file.removed = !named[at];
            }
        }
    }

    fn used(&self) -> u64 {
        let len = |node: &Node| match node {
            Node::File(file) if !file.removed => file.now.len() as u64,
            Node::File(_) | Node::Dir(_) => 0,
        };
        self.nodes.iter().map(len).sum()
    }

    fn sync_fails(&mut self) -> bool {
        self.syncs += 1;
        is_due(&mut self.faults.syncs_until_error)
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        let mut state = self.state();
        let node = match (state.find(path), mode) {
            (Some(node), _) => node,
            (None, OpenMode::Create | OpenMode::Truncate) => {
                let modified = state.now;
                state.add("create", path, Node::File(FileNode { modified, ..FileNode::default() }))?
            }
            (None, _) => return Err(DiskError::new("open", path, DiskErrorKind::NotFound)),
        };
        let boot = state.boot;
        drop(state);
        let file = MemoryFile { disk: self.clone(), node, boot, path: path.to_path_buf() };
        if mode == OpenMode::Truncate {
            file.set_len(0)?;
        }
        Ok(Arc::new(file))
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, DiskError> {
        let state = self.state();
        let node = state.find(dir).map(|at| &state.nodes[at]);
        let Some(Node::Dir(found)) = node else {
            return Err(DiskError::new("list", dir, DiskErrorKind::NotFound));
        };
        let entry = |(name, node): (&String, &usize)| DirEntry {
            name: name.clone(),
            is_dir: matches!(state.nodes[*node], Node::Dir(_)),
        };
        Ok(found.now.iter().map(entry).collect())
    }

    fn stat(&self, path: &Path) -> Result<Option<FileStat>, DiskError> {
        let state = self.state();
        Ok(state.find(path).map(|at| match &state.nodes[at] {
            Node::File(file) => {
                FileStat { is_dir: false, len: file.now.len() as u64, modified: file.modified }
            }
            Node::Dir(_) => FileStat { is_dir: true, len: 0, modified: TimestampMs(0) },
        }))
    }

    fn create_dir(&self, dir: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        if state.find(dir).is_none() {
            state.add("create", dir, Node::Dir(DirNode::default()))?;
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        let Some(node) = state.find(from) else {
            return Err(DiskError::new("rename", from, DiskErrorKind::NotFound));
        };
        if is_due(&mut state.faults.renames_until_error) {
            return Err(DiskError::new("rename", from, DiskErrorKind::Device));
        }
        let same_dir = from.parent() == to.parent();
        let (_, old_name) = state.parent("rename", from)?;
        let (dir, name) = state.parent("rename", to)?;
        let replaced = dir.now.get(&name).copied();
        let mut change = vec![(name, Some(node))];
        if same_dir {
            change.push((old_name, None));
            dir.change(change);
        } else {
            dir.change(change);
            let (dir, name) = state.parent("rename", from)?;
            dir.change(vec![(name, None)]);
        }
        state.note_names(replaced.as_slice());
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        if let Some(node) = state.find(path) {
            let (dir, name) = state.parent("remove", path)?;
            dir.change(vec![(name, None)]);
            state.note_names(&[node]);
        }
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        let Some(node) = state.find(dir) else { return Ok(()) };
        if let Node::Dir(found) = &state.nodes[node]
            && !found.now.is_empty()
        {
            return Err(DiskError::new("remove", dir, DiskErrorKind::NotEmpty));
        }
        let (parent, name) = state.parent("remove", dir)?;
        parent.change(vec![(name, None)]);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        let fails = state.sync_fails();
        let node = state.find(dir);
        match node.map(|at| &mut state.nodes[at]) {
            Some(Node::Dir(_)) if fails => Err(DiskError::new("sync", dir, DiskErrorKind::Device)),
            Some(Node::Dir(found)) => {
                found.sync();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn space(&self, _dir: &Path) -> Result<DiskSpace, DiskError> {
        let state = self.state();
        Ok(DiskSpace { total: state.capacity, free: state.capacity.saturating_sub(state.used()), device: 0 })
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>, DiskError> {
        self.open(path, OpenMode::Create)?;
        let mut state = self.state();
        if state.locks.contains_key(path) {
            return Err(DiskError::new("lock", path, DiskErrorKind::Locked));
        }
        let boot = state.boot;
        state.locks.insert(path.to_path_buf(), boot);
        Ok(Box::new(MemoryLock { disk: self.clone(), path: path.to_path_buf(), boot }))
    }
}

impl DiskLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.boot == self.boot {
            state.locks.remove(&self.path);
        }
    }
}

impl MemoryFile {
    fn with<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut State, &mut FileNode) -> Result<T, DiskErrorKind>,
    ) -> Result<T, DiskError> {
        let mut state = self.disk.state();
        let error = |kind| DiskError::new(action, &*self.path, kind);
        if state.boot != self.boot {
            // A process that has died does nothing more.
            return Err(error(DiskErrorKind::Device));
        }
        let Node::File(file) = &mut state.nodes[self.node] else {
            return Err(error(DiskErrorKind::NotFound));
        };
        let mut file = std::mem::take(file);
        let done = work(&mut state, &mut file).map_err(error);
        state.nodes[self.node] = Node::File(file);
        done
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        self.with("read", |state, file| {
            if state.faults.read_error {
                return Err(DiskErrorKind::Device);
            }
            let from = (position as usize).min(file.now.len());
            let len = buffer.len().min(file.now.len() - from);
            buffer[..len].copy_from_slice(&file.now[from..from + len]);
            Ok(len)
        })
    }

    fn write_at(&self, position: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        self.with("write", |state, file| {
            if is_due(&mut state.faults.writes_until_error) {
                return Err(DiskErrorKind::Device);
            }
            let others = state.used();
            let mut at = position as usize;
            for part in parts {
                let end = at + part.len();
                if end > file.now.len() && others + end as u64 > state.capacity {
                    return Err(DiskErrorKind::Full);
                }
                if end > file.now.len() {
                    file.now.resize(end, 0);
                }
                file.now[at..end].copy_from_slice(part);
                file.unsynced.push((at, end));
                at = end;
            }
            file.modified = state.now;
            Ok(())
        })
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.with("sync", |state, file| {
            if state.sync_fails() {
                // Linux drops the dirty pages and calls them clean.
                file.unsynced.clear();
                return Err(DiskErrorKind::Device);
            }
            file.sync();
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.with("resize", |_, file| {
            file.now.resize(len as usize, 0);
            Ok(())
        })
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.with("stat", |_, file| Ok(file.now.len() as u64))
    }

    fn set_modified(&self, at: TimestampMs) -> Result<(), DiskError> {
        self.with("set the time of", |_, file| {
            file.modified = at;
            Ok(())
        })
    }

    fn write_direct(&self, position: u64, parts: &[&[u8]]) -> Result<bool, DiskError> {
        let is_whole = |number: u64| number.is_multiple_of(BLOCK_BYTES as u64);
        let are_whole = parts
            .iter()
            .all(|part| part.as_ptr().align_offset(BLOCK_BYTES) == 0 && is_whole(part.len() as u64));
        assert!(is_whole(position) && are_whole, "whole blocks are written");
        self.write_at(position, parts)?;
        Ok(true)
    }

    fn allocate(&self, _len: u64) -> Result<(), DiskError> {
        Ok(())
    }
}
