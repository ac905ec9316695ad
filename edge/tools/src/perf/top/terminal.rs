//! The terminal: keys in, screens out. A thread of its own asks the cluster, so that a silent node does not hold up a
//! key.
//!
//! The terminal is set back on every way out: a key, a signal, an error, a panic.

use super::collect::Collector;
use super::facts::Before;
use super::screen::{Status, draw};
use super::sheet::View;
use super::sheets::{Snapshot, snapshot};
use super::viewing::{Next, Viewing};
use crate::asking::signals::stopped;
use crate::{ToolError, block_on};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

/// How long a key may wait for a new screen, and a new screen for the end of a wait for keys.
const BEAT: Duration = Duration::from_millis(100);

/// What the asking thread hands over.
type Looked = Result<Snapshot, String>;

/// What the keyboard asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wish {
    view: View,
    is_paused: bool,
    /// To look once, also where it is paused.
    is_urgent: bool,
}

impl Wish {
    fn of(viewing: &Viewing, is_urgent: bool) -> Self {
        Self { view: viewing.view, is_paused: viewing.is_paused, is_urgent }
    }

    /// Both wishes, where `newer` came before the first was heard.
    fn and(self, newer: Self) -> Self {
        Self { is_urgent: self.is_urgent || newer.is_urgent, ..newer }
    }
}

enum Happened {
    Looked(Looked),
    Key(KeyEvent),
    Resized,
}

/// Shows until it is left.
///
/// # Errors
/// The terminal cannot be used; SIGINT or SIGTERM.
pub fn run(collector: Collector, viewing: Viewing, status: Status) -> Result<(), ToolError> {
    let interval = Duration::from_secs_f64(status.interval_s);
    let (wish, wishes) = channel();
    let (hand_over, looked) = sync_channel(1);
    let (signal, signals) = sync_channel(1);
    let first = Wish::of(&viewing, true);
    let asking = std::thread::Builder::new().name("top".to_owned());
    asking.spawn(move || ask(collector, first, interval, &wishes, &hand_over)).map_err(ToolError::Runtime)?;
    let listening = std::thread::Builder::new().name("signals".to_owned());
    // The screen may have ended when the signal comes.
    listening.spawn(move || drop(signal.send(block_on(stopped())))).map_err(ToolError::Runtime)?;
    let mut terminal = ratatui::try_init().map_err(ToolError::Output)?;
    let shown = show(&mut terminal, viewing, status, &wish, &looked, &signals);
    let restored = ratatui::try_restore().map_err(ToolError::Output);
    shown.and(restored)
}

/// Looks once in an interval, and at once when there is a wish.
fn ask(
    mut collector: Collector,
    mut wish: Wish,
    interval: Duration,
    wishes: &Receiver<Wish>,
    hand_over: &SyncSender<Looked>,
) {
    let mut before = Before::default();
    let asked: Result<(), ToolError> = block_on(async {
        loop {
            if wish.is_urgent || !wish.is_paused {
                wish.is_urgent = false;
                let looked = collector.look(&[wish.view]).await.map(|facts| {
                    let (shown, now) = snapshot(facts, &before, &[wish.view]);
                    before = now;
                    shown
                });
                if hand_over.send(looked.map_err(|error| error.to_string())).is_err() {
                    return Ok(());
                }
            }
            match wishes.recv_timeout(interval) {
                Ok(newer) => wish = wishes.try_iter().fold(newer, Wish::and),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    });
    if let Err(error) = asked {
        // The screen may have ended.
        drop(hand_over.send(Err(error.to_string())));
    }
}

fn show(
    terminal: &mut DefaultTerminal,
    mut viewing: Viewing,
    mut status: Status,
    wish: &Sender<Wish>,
    looked: &Receiver<Looked>,
    signals: &Receiver<Result<u8, ToolError>>,
) -> Result<(), ToolError> {
    let mut latest: Option<Snapshot> = None;
    loop {
        terminal
            .draw(|frame| draw(latest.as_ref(), &viewing, &status, frame.area(), frame.buffer_mut()))
            .map_err(ToolError::Output)?;
        match next(looked, signals)? {
            Happened::Looked(Ok(snapshot)) => (latest, status.trouble) = (Some(snapshot), None),
            Happened::Looked(Err(trouble)) => status.trouble = Some(trouble),
            Happened::Key(key) => {
                let was_paused = viewing.is_paused;
                let next = viewing.press(key, rows(latest.as_ref(), &viewing));
                if next == Next::Leave {
                    return Ok(());
                }
                if next == Next::Look || was_paused != viewing.is_paused {
                    // A thread that has ended has said why.
                    let _ = wish.send(Wish::of(&viewing, next == Next::Look));
                }
            }
            Happened::Resized => {}
        }
    }
}

/// Waits for something to draw.
fn next(looked: &Receiver<Looked>, signals: &Receiver<Result<u8, ToolError>>) -> Result<Happened, ToolError> {
    loop {
        if let Ok(signal) = signals.try_recv() {
            return Err(ToolError::Stopped(signal?));
        }
        if let Ok(looked) = looked.try_recv() {
            return Ok(Happened::Looked(looked));
        }
        if event::poll(BEAT).map_err(ToolError::Input)? {
            match event::read().map_err(ToolError::Input)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => return Ok(Happened::Key(key)),
                Event::Resize(..) => return Ok(Happened::Resized),
                _ => {}
            }
        }
    }
}

fn rows(latest: Option<&Snapshot>, viewing: &Viewing) -> usize {
    let sheet = latest.and_then(|snapshot| snapshot.sheets.get(&viewing.view));
    sheet.map_or(0, |sheet| sheet.order(viewing.sorting(), &viewing.filter).len())
}
