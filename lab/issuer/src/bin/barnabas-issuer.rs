//! Tokens for rigs in other languages: writes its keys to the file of the first argument as a JWKS, then signs. One
//! line of claims in JSON in, one token out. A line that begins with `foreign ` is signed by a key of the same id that
//! is not published; one that begins with `unsigned `, by none.

use barnabas_issuer::{SigningKey, token};
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};

fn main() -> io::Result<()> {
    let path = std::env::args().nth(1).ok_or_else(|| io::Error::other("the path of the JWKS is missing"))?;
    let (own, foreign) = (SigningKey::generate("k", "RS256"), SigningKey::generate("k", "RS256"));
    std::fs::write(path, json!({"keys": [own.jwk()]}).to_string())?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (kind, claims) =
            line.split_once(' ').filter(|(kind, _)| !kind.starts_with('{')).unwrap_or(("", &line));
        let claims: Value = serde_json::from_str(claims)?;
        let signed = match kind {
            "" => own.token(&claims),
            "foreign" => foreign.token(&claims),
            "unsigned" => token(&json!({"alg": "none"}), &claims, b""),
            other => return Err(io::Error::other(format!("'{other}': expected foreign or unsigned"))),
        };
        writeln!(io::stdout(), "{signed}")?;
    }
    Ok(())
}
