//! Load on what protects a broker, of whichever make: TLS handshakes, TLS connections that stay, ACLs.
//!
//! - `handshakes ADDRESS CA full|resumed THREADS SECONDS`: one handshake after the other on each thread. Each
//!   connection sends one ApiVersions request, reads its answer and closes.
//! - `storm ADDRESS CA THREADS COUNT`: so many full handshakes, as fast as they go. The connections stay until the last
//!   one is made.
//! - `hold ADDRESS CA COUNT`: makes so many connections one after the other, prints a line, and keeps them until its
//!   standard input ends.
//! - `set COUNT ACLS TOPICS`: writes the set of ACLs and the names of topics that decisions are asked for (acls.rs).
//! - `create BOOTSTRAP ACLS PRINCIPAL PREFIX`: creates the set, and an ALLOW of WRITE on topics of that prefix.
//! - `decisions ACLS TOPICS SECONDS`: ns that core/security takes for a decision (decisions.rs).
//!
//! Each prints one line of JSON (`hold`: when all connections are there).

mod acls;
mod decisions;
mod handshakes;

use std::time::Duration;

type Wrong = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Wrong> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |place: usize| {
        words.get(place).map(String::as_str).ok_or("too few words; the file's head names them")
    };
    let number = |place: usize| -> Result<usize, Wrong> { Ok(word(place)?.parse()?) };
    let seconds =
        |place: usize| -> Result<Duration, Wrong> { Ok(Duration::from_secs_f64(word(place)?.parse()?)) };
    let told = match word(0)? {
        "handshakes" => {
            let is_resumed = match word(3)? {
                "full" => false,
                "resumed" => true,
                other => return Err(format!("{other}: full or resumed").into()),
            };
            handshakes::repeated(word(1)?, word(2)?, is_resumed, number(4)?, seconds(5)?)?
        }
        "storm" => handshakes::storm(word(1)?, word(2)?, number(3)?, number(4)?)?,
        "hold" => return handshakes::hold(word(1)?, word(2)?, number(3)?),
        "set" => acls::write_set(number(1)?, word(2)?, word(3)?)?,
        "create" => acls::create(word(1)?, word(2)?, word(3)?, word(4)?)?,
        "decisions" => decisions::run(word(1)?, word(2)?, seconds(3)?)?,
        other => return Err(format!("no load {other}").into()),
    };
    println!("{told}");
    Ok(())
}
