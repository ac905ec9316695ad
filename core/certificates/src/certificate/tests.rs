//! What the JVM and Apache's `SslPrincipalMapper` say (lab/compat/golden/tls/run), and what this crate says.

use super::{MappingRules, rfc2253};

const VECTORS: &str = include_str!("../../testdata/names.txt");

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.trim_matches('-').as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).expect("text"), 16).expect("hex")).collect()
}

fn text(hex: &str) -> String {
    String::from_utf8(bytes(hex)).expect("UTF-8")
}

#[test]
fn names_are_as_the_jvm_prints_them() {
    let mut count = 0;
    for line in VECTORS.lines().filter_map(|line| line.strip_prefix("name ")) {
        let (name, expected) = line.split_once(' ').expect("two words");
        assert_eq!(rfc2253(&bytes(name)), Some(text(expected)), "{name}");
        count += 1;
    }
    assert!(count > 500, "{count}");
}

#[test]
fn rules_map_as_apaches_do() {
    let (mut rules, mut count, mut shown) = (None, 0, String::new());
    for line in VECTORS.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["name", ..] => {}
            ["refused", refused] => {
                assert!(MappingRules::parse(&text(refused)).is_err(), "{}", text(refused));
            }
            ["rules", of] => {
                shown = text(of);
                rules = Some(MappingRules::parse(&shown).expect("sound"));
            }
            [name, "none"] => {
                let rules = rules.as_ref().expect("before");
                assert_eq!(rules.apply(&text(name)), None, "{shown} on {}", text(name));
                count += 1;
            }
            [name, "=", expected] => {
                let rules = rules.as_ref().expect("before");
                assert_eq!(rules.apply(&text(name)), Some(text(expected)), "{shown} on {:?}", text(name));
                count += 1;
            }
            _ => panic!("{line}"),
        }
    }
    assert!(count > 2_000, "{count}");
}
