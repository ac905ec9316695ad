//! What an acceptor needs of krb5.conf: the default realm and the clock skew.
//!
//! Everything else there is for clients of a KDC. Files that `include` and `includedir` name are not read.
//!
//! # Source
//! MIT krb5, "krb5.conf"; Java's `sun.security.krb5.Config`.

/// Seconds that two clocks may differ, where krb5.conf does not say.
const CLOCK_SKEW_S: i64 = 300;

/// See the file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Krb5Conf {
    pub default_realm: Option<String>,
    pub clock_skew_ms: i64,
}

impl Default for Krb5Conf {
    fn default() -> Self {
        Self { default_realm: None, clock_skew_ms: CLOCK_SKEW_S * 1000 }
    }
}

impl Krb5Conf {
    /// Lines that say nothing of these two are skipped.
    pub fn parse(text: &str) -> Self {
        let mut conf = Self::default();
        let mut is_of_defaults = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[') {
                is_of_defaults = section.trim_end_matches(['*', ']']).trim() == "libdefaults";
            } else if is_of_defaults && let Some((key, value)) = line.split_once('=') {
                let value = value.split(['#', ';']).next().unwrap_or_default().trim().trim_matches('"');
                match key.trim() {
                    "default_realm" if !value.is_empty() => {
                        conf.default_realm.get_or_insert_with(|| value.to_owned());
                    }
                    "clockskew" => {
                        let seconds = value.trim_end_matches('s').parse::<u32>().ok();
                        conf.clock_skew_ms =
                            seconds.map_or(conf.clock_skew_ms, |seconds| i64::from(seconds) * 1000);
                    }
                    _ => {}
                }
            }
        }
        conf
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_realm_and_skew_come_from_libdefaults() {
        let text = "# made\n[realms]\n default_realm = NO\n[libdefaults]\n  default_realm = EXAMPLE.COM # ours\n clockskew = 60\n\
                    [logging]\n clockskew = 5\n";
        let conf = Krb5Conf { default_realm: Some("EXAMPLE.COM".to_owned()), clock_skew_ms: 60_000 };
        assert_eq!(Krb5Conf::parse(text), conf);
        assert_eq!(Krb5Conf::parse("[libdefaults]\nclockskew = soon\n"), Krb5Conf::default());
    }
}
