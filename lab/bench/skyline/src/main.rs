//! The skyline: the least that a broker can do for a producer, as a floor under figures and a measure of the clients.
//!
//! `barnabas-skyline null|file|journal|segments PORT DIRECTORY`. Question: how much of a workload's figure is the
//! client's and the machine's, and how much a broker's own? Held fixed: loopback, real clients, the protocol. Left out
//! on purpose: everything else (reading, offsets, replication, limits, recovery). Two threads for each connection: one
//! reads on while answers wait, one answers in order. It serves clients of the lab on loopback and nobody else.

#![forbid(unsafe_code)]

mod protocol;
mod store;

use protocol::Topics;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use store::Store;

/// Requests of one connection whose answers wait.
const UNDER_WAY_MAX: usize = 256;
const FRAME_BYTES_MAX: usize = 128 << 20;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(([mode, port, directory], [])) = words.split_first_chunk() else {
        eprintln!("usage: barnabas-skyline null|file|journal|segments PORT DIRECTORY");
        std::process::exit(2);
    };
    if let Err(error) = serve(mode, port, Path::new(directory)) {
        eprintln!("skyline: {error}");
        std::process::exit(1);
    }
}

fn serve(mode: &str, port: &str, directory: &Path) -> io::Result<()> {
    let port = port.parse().map_err(|_| io::Error::other(format!("'{port}' is no port")))?;
    std::fs::create_dir_all(directory)?;
    let store = Arc::new(Store::open(mode, directory)?);
    let topics = Arc::new(Topics::new(port));
    for connection in TcpListener::bind(("127.0.0.1", port))?.incoming() {
        let (connection, store, topics) = (connection?, Arc::clone(&store), Arc::clone(&topics));
        std::thread::spawn(move || {
            // A client that goes away ends its connection and nothing else.
            let ended = converse(connection, &store, &topics);
            if let Err(error) = ended
                && error.kind() == io::ErrorKind::Other
            {
                eprintln!("skyline: {error}");
            }
        });
    }
    Ok(())
}

fn converse(mut connection: TcpStream, store: &Arc<Store>, topics: &Topics) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let (answers, waiting) = sync_channel(UNDER_WAY_MAX);
    let (out, kept) = (connection.try_clone()?, Arc::clone(store));
    // Without a journal nothing waits, and the reading thread answers by itself.
    let needs_thread = matches!(**store, Store::Journal(_));
    if needs_thread {
        std::thread::spawn(move || answer(out, &kept, &waiting));
    }
    loop {
        let mut length = [0; 4];
        connection.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(io::Error::other(format!("a frame of {length} bytes")));
        }
        let mut frame = Vec::with_capacity(length);
        if (&mut connection).take(length as u64).read_to_end(&mut frame)? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let asked = topics.take(&frame)?;
        let ticket = if asked.pieces.is_empty() { None } else { store.keep(frame, asked.pieces)? };
        if !asked.is_answered {
            continue;
        }
        if needs_thread {
            answers.send((asked.answer, ticket)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        } else {
            connection.write_all(&asked.answer)?;
        }
    }
}

fn answer(mut connection: TcpStream, store: &Store, waiting: &Receiver<(Vec<u8>, Option<u64>)>) {
    for (answer, ticket) in waiting {
        let is_safe = ticket.is_none_or(|ticket| store.wait(ticket).is_ok());
        if !is_safe || connection.write_all(&answer).is_err() {
            // The reader sees the end of it.
            connection.shutdown(std::net::Shutdown::Both).ok();
            return;
        }
    }
}
