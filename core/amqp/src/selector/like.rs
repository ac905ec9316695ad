//! Patterns of LIKE: `_` is any character, `%` any number of them.

/// Characters that are compared at most. Only a pattern and a text that are made for it come to more.
const COMPARED_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<Part>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    One(char),
    AnyOne,
    AnyNumber,
}

impl Pattern {
    /// `None`: the escape character stands before one that needs none.
    pub fn new(text: &str, escape: Option<char>) -> Option<Self> {
        let mut parts = Vec::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let part = match character {
                _ if Some(character) == escape => {
                    let next = characters.next();
                    Part::One(next.filter(|next| matches!(next, '_' | '%') || Some(*next) == escape)?)
                }
                '_' => Part::AnyOne,
                '%' => Part::AnyNumber,
                other => Part::One(other),
            };
            if part != Part::AnyNumber || parts.last() != Some(&part) {
                parts.push(part);
            }
        }
        Some(Self(parts))
    }

    /// Whether a text fits. `None`: that takes too long to tell.
    pub fn fits(&self, text: &str) -> Option<bool> {
        let parts = &self.0[..];
        let (mut next, mut left) = (0, text.chars());
        // Where to go on after the last % if what follows it does not fit: it takes one character more.
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        for _ in 0..COMPARED_MAX {
            if parts.get(next) == Some(&Part::AnyNumber) {
                next += 1;
                if next == parts.len() {
                    return Some(true);
                }
                retry = Some((next, left.clone()));
                continue;
            }
            let character = left.next();
            match (character, parts.get(next)) {
                (None, None) => return Some(true),
                (Some(_), Some(Part::AnyOne)) => next += 1,
                (Some(found), Some(Part::One(wanted))) if found == *wanted => next += 1,
                (None, Some(_)) => return Some(false),
                _ => {
                    let Some((after, from)) = &mut retry else { return Some(false) };
                    from.next();
                    (next, left) = (*after, from.clone());
                }
            }
        }
        None
    }
}
