//! Whether a node serves.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// Whether a Metadata request (version 1, no topic) is answered with at least one broker.
pub fn metadata_answers(port: u16) -> bool {
    let mut frame = vec![0, 0, 0, 19, 0, 3, 0, 1, 0, 0, 0, 7, 0, 5];
    frame.extend(b"ready");
    frame.extend([0, 0, 0, 0]);
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.write_all(&frame)?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        // The number of brokers follows size and correlation id.
        std::io::Result::Ok(answer[8..] != [0; 4])
    };
    ask().unwrap_or(false)
}
