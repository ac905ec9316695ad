//! A page of `tests/golden/`: records that were written, a line each (key, value, both in hex; `-` for a tombstone).
//! `UPDATE_TALKS=1` rewrites it; Apache's serdes read what stands there (lab/compat/golden/records).

use barnabas_coordinator::Record;
use bytes::Bytes;

fn hex(bytes: &Bytes) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// These records are what the page says, to the byte.
pub fn check<'a>(name: &str, records: impl Iterator<Item = &'a Record>) {
    let lines = records.map(|record| {
        let value = record.value.as_ref().map_or("-".to_owned(), hex);
        format!("{} {value}\n", hex(&record.key))
    });
    let lines: String = lines.collect();
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_TALKS").is_some() {
        std::fs::write(&path, &lines).expect("the page can be written");
    }
    assert_eq!(lines, std::fs::read_to_string(path).expect("the page"));
}
