//! Load on the group coordinator, of whichever broker: where a thousand clients of Java would be what is measured.
//!
//! - `commits BOOTSTRAP TOPIC GROUPS UNDER_WAY SECONDS WARM_UP_SECONDS`: each group has one connection and commits one
//!   offset after the other, so many of them before it waits for an answer.
//! - `fill BOOTSTRAP TOPIC GROUPS PARTITIONS`: each group commits an offset for each partition of the topic, in one
//!   request.
//! - `loaded BOOTSTRAP TOPIC GROUPS PARTITIONS`: asks until every group's coordinator answers, then compares every
//!   offset.
//! - `members BOOTSTRAP TOPIC GROUP MEMBERS STAYERS`: members of a KIP-848 group come and go (members.rs).
//!
//! Each prints one line of JSON. Groups are called `g-0`, `g-1` …; the offset committed for partition p of group g is
//! `g * PARTITIONS + p`. Left out on purpose: fetching of records, retries after errors that a quiet broker does not
//! answer with.

mod ask;
mod commits;
mod members;
mod offsets;

use ask::Wrong;

fn main() -> Result<(), Wrong> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |place: usize| {
        words.get(place).map(String::as_str).ok_or("too few words; the file's head names them")
    };
    let number = |place: usize| -> Result<usize, Wrong> { Ok(word(place)?.parse()?) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let told = match word(0)? {
        "commits" => {
            let spans = (word(6)?.parse()?, word(5)?.parse()?);
            commits::run(word(1)?, word(2)?, number(3)?, number(4)?.max(1), spans)?
        }
        "fill" => runtime.block_on(offsets::fill(word(1)?, word(2)?, number(3)?, number(4)?))?,
        "loaded" => runtime.block_on(offsets::loaded(word(1)?, word(2)?, number(3)?, number(4)?))?,
        "members" => runtime.block_on(members::run(word(1)?, word(2)?, word(3)?, number(4)?, number(5)?))?,
        other => return Err(format!("no load {other}").into()),
    };
    println!("{told}");
    Ok(())
}
