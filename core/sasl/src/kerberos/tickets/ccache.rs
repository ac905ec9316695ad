//! A ticket cache (credential cache) in a file, as MIT's `kinit` writes it: the tickets of one principal.
//!
//! ```text
//! 05 04 · length u16 · header, or 05 03 without a header; then the principal, then tickets:
//! client · service · key · times 4 × u32: authenticated, starts, ends, renewable until · u8 · flags u32
//!        · addresses · authorization data · ticket · second ticket
//! principal: name type u32 · components u32 · realm · component …
//! key: type u16, twice in version 3 · bytes. Lists: count u32, each with a type u16
//! ```
//! Texts and bytes have a length of 32 bits. Only the ticket for tickets of the principal's realm is looked for:
//! tickets of services are asked for with it. What MIT keeps beside them (`X-CACHECONF:`) is skipped.
//!
//! # Source
//! MIT krb5, "Credential cache file format"; Java's `sun.security.krb5.internal.ccache.CCacheInputStream`.

use crate::kerberos::{Enctype, Key, Principal, Ticket};
use barnabas_base::TimestampMs;
use std::path::PathBuf;

/// A file of more bytes is not read.
pub const TICKET_CACHE_BYTES_MAX: usize = 4 << 20;
const RENEWABLE: u32 = 1 << 23;

/// The tickets of a cache that are of use here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketCache {
    pub client: Principal,
    /// The ticket for tickets of the client's realm: of several the last one.
    pub first: Option<Ticket>,
    /// Until when the first ticket can be renewed.
    pub renewable_until: Option<TimestampMs>,
    /// Whether there is such a ticket whose key has an encryption type that is not spoken here.
    pub has_foreign_key: bool,
}

/// Why a file is no ticket cache.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TicketCacheFault {
    #[error("is no ticket cache: its first bytes are neither 05 04 nor 05 03")]
    Version,
    #[error("is damaged at byte {at}")]
    Damaged { at: usize },
}

impl TicketCache {
    /// # Errors
    /// The bytes are not those of a ticket cache.
    pub fn parse(bytes: &[u8]) -> Result<Self, TicketCacheFault> {
        let (is_old, rest) = match bytes {
            [5, 4, rest @ ..] => (false, rest),
            [5, 3, rest @ ..] => (true, rest),
            _ => return Err(TicketCacheFault::Version),
        };
        let mut bytes_left = Bytes { rest, is_old };
        let damaged = |rest: &[u8]| TicketCacheFault::Damaged { at: bytes.len() - rest.len() };
        if !is_old {
            let header = bytes_left.short().and_then(|length| bytes_left.take(length.into()));
            header.ok_or(damaged(rest))?;
        }
        let client = bytes_left.principal().ok_or(damaged(bytes_left.rest))?;
        let mut cache = Self { client, first: None, renewable_until: None, has_foreign_key: false };
        while !bytes_left.rest.is_empty() {
            let at = damaged(bytes_left.rest);
            bytes_left.ticket(&mut cache).ok_or(at)?;
        }
        Ok(cache)
    }
}

/// The file of a cache's name, as `ticketCache` and KRB5CCNAME give it: a path, with `FILE:` before it or without.
///
/// # Errors
/// It names a cache of another kind.
pub fn cache_file(name: &str) -> Result<PathBuf, String> {
    match name.split_once(':') {
        Some(("FILE", path)) => Ok(PathBuf::from(path)),
        Some((kind, _)) if !kind.is_empty() && kind.chars().all(|letter| letter.is_ascii_uppercase()) => {
            Err(format!(
                "the ticket cache {name} is not a file, and caches of the kind {kind} are not read here. Write one with: \
             kinit -c FILE:/tmp/krb5cc_barnabas PRINCIPAL, and set ticketCache to its path"
            ))
        }
        _ => Ok(PathBuf::from(name)),
    }
}

struct Bytes<'a> {
    rest: &'a [u8],
    is_old: bool,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    fn sized(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.sized()?.to_vec()).ok()
    }

    fn time(&mut self) -> Option<TimestampMs> {
        self.number().map(|seconds| TimestampMs(i64::from(seconds) * 1000))
    }

    fn principal(&mut self) -> Option<Principal> {
        let _name_type = self.number()?;
        let count = self.number()?;
        let realm = self.text()?;
        // No capacity for a count that the file may not have.
        let components = (0..count).map(|_| self.text()).collect::<Option<Vec<String>>>()?;
        Some(Principal { components, realm })
    }

    /// Skips a list whose entries have a type and bytes.
    fn list(&mut self) -> Option<()> {
        let count = self.number()?;
        for _ in 0..count {
            self.short()?;
            self.sized()?;
        }
        Some(())
    }

    /// Reads a ticket, and keeps it if it is the one for tickets.
    fn ticket(&mut self, cache: &mut TicketCache) -> Option<()> {
        let client = self.principal()?;
        let service = self.principal()?;
        let enctype = self.short()?;
        if self.is_old {
            self.short()?;
        }
        let key = self.sized()?;
        let [authenticated, starts, ends, until] = [self.time()?, self.time()?, self.time()?, self.time()?];
        let _is_of_another_key = self.take(1)?;
        let flags = self.number()?;
        self.list()?;
        self.list()?;
        let bytes = self.sized()?.to_vec();
        let _second = self.sized()?;
        let is_first = service.components.as_slice() == ["krbtgt", cache.client.realm.as_str()]
            && service.realm == cache.client.realm
            && client == cache.client;
        if !is_first {
            return Some(());
        }
        let known = Enctype::from_number(enctype.into()).and_then(|enctype| Key::new(enctype, key));
        cache.has_foreign_key |= known.is_none();
        if let Some(key) = known {
            let starts = if starts.0 == 0 { authenticated } else { starts };
            cache.first = Some(Ticket { client, service, key, bytes, starts, ends });
            cache.renewable_until = (flags & RENEWABLE != 0).then_some(until);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
    }

    fn principal(name: &str) -> Vec<u8> {
        let name = Principal::parse(name).expect("a principal");
        let mut bytes = [1, name.components.len() as u32].map(u32::to_be_bytes).concat();
        bytes.extend(sized(name.realm.as_bytes()));
        name.components.iter().for_each(|component| bytes.extend(sized(component.as_bytes())));
        bytes
    }

    /// A file of `client` with tickets: service, encryption type, when it ends in seconds, flags.
    fn file(version: u8, client: &str, tickets: &[(&str, u16, u32, u32)]) -> Vec<u8> {
        let mut bytes = vec![5, version];
        if version == 4 {
            bytes.extend([0, 12, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
        bytes.extend(principal(client));
        for (service, enctype, ends, flags) in tickets {
            bytes.extend(principal(client));
            bytes.extend(principal(service));
            bytes.extend(enctype.to_be_bytes().repeat(if version == 3 { 2 } else { 1 }));
            bytes.extend(sized(&[7; 16]));
            bytes.extend([1000, 0, *ends, 9000].map(u32::to_be_bytes).concat());
            bytes.push(0);
            bytes.extend(flags.to_be_bytes());
            // One address, no authorization data.
            bytes.extend([0, 0, 0, 1, 0, 2, 0, 0, 0, 4, 127, 0, 0, 1, 0, 0, 0, 0]);
            bytes.extend(sized(b"ticket"));
            bytes.extend(sized(b""));
        }
        bytes
    }

    const FIRST: &str = "krbtgt/R@R";

    #[test]
    fn first_ticket_of_a_cache_is_found_beside_others() {
        let tickets = [
            ("krb5_ccache_conf_data/pa_type@X-CACHECONF:", 0, 0, 0),
            (FIRST, 17, 2000, 0),
            ("kafka/localhost@R", 17, 2000, 0),
            ("krbtgt/OTHER@R", 17, 9999, 0),
            (FIRST, 17, 5000, RENEWABLE),
        ];
        for version in [3, 4] {
            let cache = TicketCache::parse(&file(version, "alice@R", &tickets)).expect("sound");
            let first = cache.first.expect("a ticket");
            assert_eq!(
                (cache.client.to_string().as_str(), first.bytes.as_slice()),
                ("alice@R", &b"ticket"[..])
            );
            // A ticket without a start begins when the client proved itself.
            assert_eq!((first.starts, first.ends), (TimestampMs(1_000_000), TimestampMs(5_000_000)));
            assert_eq!(cache.renewable_until, Some(TimestampMs(9_000_000)));
        }
    }

    #[test]
    fn cache_without_a_first_ticket_says_what_it_has() {
        let parse = |tickets: &[_]| TicketCache::parse(&file(4, "alice@R", tickets)).expect("sound");
        let none = parse(&[("kafka/localhost@R", 17, 2000, 0)]);
        assert!(none.first.is_none() && !none.has_foreign_key);
        let rc4 = parse(&[(FIRST, 23, 2000, 0)]);
        assert!(rc4.first.is_none() && rc4.has_foreign_key);
    }

    #[test]
    fn cache_that_is_cut_is_refused_wherever_it_ends() {
        let whole = file(4, "alice@R", &[(FIRST, 17, 2000, 0)]);
        let client_ends = file(4, "alice@R", &[]).len();
        for end in 2..whole.len() {
            let parsed = TicketCache::parse(&whole[..end]);
            assert_eq!(parsed.is_ok(), end == client_ends, "{end}: {parsed:?}");
        }
        for other in [&b""[..], b"\x05", b"\x05\x01", b"\x05\x02", b"text"] {
            assert_eq!(TicketCache::parse(other), Err(TicketCacheFault::Version));
        }
        // A count that the file has no bytes for.
        let endless = [&[5, 3][..], &[0, 0, 0, 1], &[255; 4], &[0; 4], &[0, 0, 0, 9]].concat();
        assert!(matches!(TicketCache::parse(&endless), Err(TicketCacheFault::Damaged { .. })));
    }

    #[test]
    fn caches_are_files_or_refused_with_a_command() {
        for (name, path) in [("FILE:/tmp/x", "/tmp/x"), ("/tmp/x:y", "/tmp/x:y"), ("/tmp/x", "/tmp/x")] {
            assert_eq!(cache_file(name), Ok(PathBuf::from(path)));
        }
        for name in ["KEYRING:persistent:0", "KCM:", "DIR:/tmp/d", "MEMORY:x"] {
            let said = cache_file(name).expect_err("refused");
            assert!(said.contains(name) && said.contains("kinit -c FILE:"), "{said}");
        }
    }
}
