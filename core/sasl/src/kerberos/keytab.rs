//! A keytab: the long-term keys of services, as MIT's tools, Java's `ktab` and Active Directory's `ktpass` write them.
//!
//! ```text
//! 05 02, then entries: length i32 · components u16 · realm · component … · name type u32 · time u32 · version u8
//!                      · key type u16 · key · [version u32]
//! ```
//! Realm, components and key have a length of 16 bits each. A negative length is a hole. Keys of other encryption types
//! than [`Enctype`]'s are left out.
//!
//! # Source
//! MIT krb5, "Keytab file format"; Java's `sun.security.krb5.internal.ktab.KeyTab`.

use super::{Enctype, Key, Principal};

/// A file of more bytes is not read.
pub const KEYTAB_BYTES_MAX: usize = 4 << 20;

/// One key of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub principal: Principal,
    /// The key version number. The KDC counts it up with each new key.
    pub version: u32,
    pub key: Key,
}

/// The keys of a file, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keytab {
    pub entries: Vec<Entry>,
    /// The numbers of encryption types that were left out.
    pub left_out: Vec<u16>,
}

/// Why a file is no keytab.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeytabFault {
    #[error("is no keytab: its first bytes are not 05 02")]
    Version,
    #[error("is damaged at byte {at}")]
    Damaged { at: usize },
}

impl Keytab {
    /// # Errors
    /// The bytes are not those of a keytab.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeytabFault> {
        let mut rest = bytes.strip_prefix(&[5, 2]).ok_or(KeytabFault::Version)?;
        let mut keytab = Self::default();
        while !rest.is_empty() {
            let damaged = KeytabFault::Damaged { at: bytes.len() - rest.len() };
            let (length, after) = rest.split_first_chunk::<4>().ok_or(damaged.clone())?;
            let length = i32::from_be_bytes(*length);
            if length == 0 {
                // MIT ends here too.
                break;
            }
            let size = usize::try_from(length.unsigned_abs()).map_err(|_| damaged.clone())?;
            let (entry, after) = after.split_at_checked(size).ok_or(damaged.clone())?;
            if length > 0 {
                let (principal, version, number, key) = entry_of(entry).ok_or(damaged)?;
                match Enctype::from_number(number.into()).and_then(|enctype| Key::new(enctype, key)) {
                    Some(key) => keytab.entries.push(Entry { principal, version, key }),
                    None if keytab.left_out.contains(&number) => {}
                    None => keytab.left_out.push(number),
                }
            }
            rest = after;
        }
        Ok(keytab)
    }

    /// The keys of one service.
    pub fn keys_of(&self, principal: &Principal) -> Vec<Entry> {
        self.entries.iter().filter(|entry| entry.principal == *principal).cloned().collect()
    }
}

fn entry_of(mut bytes: &[u8]) -> Option<(Principal, u32, u16, &[u8])> {
    let bytes = &mut bytes;
    let components = number(bytes)?;
    let realm = text(bytes)?;
    let components = (0..components).map(|_| text(bytes)).collect::<Option<Vec<String>>>()?;
    let _type_and_time = take(bytes, 8)?;
    let short = *take(bytes, 1)?.first()?;
    let enctype = number(bytes)?;
    let length = number(bytes)?;
    let key = take(bytes, length.into())?;
    let long = take(bytes, 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    let version = long.filter(|&version| version > 0).unwrap_or(short.into());
    Some((Principal { components, realm }, version, enctype, key))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &mut &[u8]) -> Option<u16> {
    take(bytes, 2)?.try_into().ok().map(u16::from_be_bytes)
}

fn text(bytes: &mut &[u8]) -> Option<String> {
    let length = number(bytes)?;
    String::from_utf8(take(bytes, length.into())?.to_vec()).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file with these entries: principal, version, encryption type, key.
    pub fn file(entries: &[(&str, u32, u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![5, 2];
        for (name, version, enctype, key) in entries {
            let principal = Principal::parse(name).expect("a principal");
            let sized = |text: &[u8]| [&(text.len() as u16).to_be_bytes()[..], text].concat();
            let mut entry = (principal.components.len() as u16).to_be_bytes().to_vec();
            entry.extend(sized(principal.realm.as_bytes()));
            principal.components.iter().for_each(|component| entry.extend(sized(component.as_bytes())));
            entry.extend([0, 0, 0, 1, 0, 0, 0, 0, *version as u8]);
            entry.extend(enctype.to_be_bytes());
            entry.extend(sized(key));
            entry.extend(version.to_be_bytes());
            bytes.extend((entry.len() as i32).to_be_bytes());
            bytes.extend(entry);
        }
        bytes
    }

    #[test]
    fn keys_of_a_principal_are_found_by_its_whole_name() {
        let entries: [(&str, u32, u16, &[u8]); 4] = [
            ("kafka/a@R", 1, 17, &[1; 16]),
            ("kafka/a@R", 300, 18, &[2; 32]),
            ("kafka/b@R", 1, 17, &[3; 16]),
            ("kafka/a@R", 1, 23, &[4; 16]),
        ];
        let keytab = Keytab::parse(&file(&entries)).expect("a keytab");
        let found = keytab.keys_of(&Principal::parse("kafka/a@R").expect("a principal"));
        let known: Vec<_> = found.iter().map(|entry| (entry.version, entry.key.enctype())).collect();
        assert_eq!(known, [(1, Enctype::Aes128Sha1), (300, Enctype::Aes256Sha1)]);
        assert_eq!(keytab.left_out, [23]);
        assert!(!format!("{keytab:?}").contains("[1, 1"), "{keytab:?}");
    }

    #[test]
    fn holes_are_skipped_and_the_short_version_counts_alone() {
        let mut bytes = file(&[("kafka/a@R", 7, 17, &[1; 16])]);
        // Without the long version, and behind a hole.
        bytes.truncate(bytes.len() - 4);
        let length = (bytes.len() - 6) as i32;
        bytes[2..6].copy_from_slice(&length.to_be_bytes());
        let holed = [&[5, 2][..], &(-3_i32).to_be_bytes(), &[9; 3], &bytes[2..]].concat();
        let keytab = Keytab::parse(&holed).expect("a keytab");
        assert_eq!(keytab.entries.iter().map(|entry| entry.version).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn damaged_files_are_refused() {
        let whole = file(&[("kafka/a@R", 1, 17, &[1; 16])]);
        for length in 3..whole.len() {
            assert_eq!(Keytab::parse(&whole[..length]), Err(KeytabFault::Damaged { at: 2 }), "{length}");
        }
        assert_eq!(Keytab::parse(&[5, 1]), Err(KeytabFault::Version));
        assert_eq!(Keytab::parse(&[]), Err(KeytabFault::Version));
        assert_eq!(Keytab::parse(&[5, 2]), Ok(Keytab::default()));
    }
}
