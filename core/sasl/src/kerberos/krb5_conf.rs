//! What is needed of krb5.conf: the default realm, the clock skew, a realm's KDCs and a host's realm.
//!
//! Files that `include` and `includedir` name are not read, and DNS is not asked for KDCs.
//!
//! # Source
//! MIT krb5, "krb5.conf"; Java's `sun.security.krb5.Config`.

/// Seconds that two clocks may differ, where krb5.conf does not say.
const CLOCK_SKEW_S: i64 = 300;
const KDC_PORT: u16 = 88;

/// See the file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Krb5Conf {
    pub default_realm: Option<String>,
    pub clock_skew_ms: i64,
    /// Realm, host and port, in the order of the file.
    kdcs: Vec<(String, String, u16)>,
    /// A host, or a domain that begins with a dot, and its realm.
    domains: Vec<(String, String)>,
}

impl Default for Krb5Conf {
    fn default() -> Self {
        Self {
            default_realm: None,
            clock_skew_ms: CLOCK_SKEW_S * 1000,
            kdcs: Vec::new(),
            domains: Vec::new(),
        }
    }
}

impl Krb5Conf {
    /// Lines that say nothing of these are skipped.
    pub fn parse(text: &str) -> Self {
        let mut conf = Self::default();
        let (mut section, mut realm) = ("", None);
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[') {
                (section, realm) = (name.trim_end_matches(['*', ']']).trim(), None);
                continue;
            }
            if line.starts_with('}') {
                realm = None;
                continue;
            }
            let Some((key, value)) = line.split_once('=') else { continue };
            let value = value.split(['#', ';']).next().unwrap_or_default().trim().trim_matches('"');
            match (section, key.trim(), realm) {
                ("libdefaults", key, _) => conf.set_default(key, value),
                ("realms", name, None) if value.starts_with('{') => realm = Some(name),
                ("realms", "kdc", Some(realm)) => conf.kdcs.extend(kdc(realm, value)),
                ("domain_realm", domain, _) => conf.domains.push((domain.to_lowercase(), value.to_owned())),
                _ => {}
            }
        }
        conf
    }

    fn set_default(&mut self, key: &str, value: &str) {
        match key {
            "default_realm" if !value.is_empty() => {
                self.default_realm.get_or_insert_with(|| value.to_owned());
            }
            "clockskew" => {
                let seconds = value.trim_end_matches('s').parse::<u32>().ok();
                self.clock_skew_ms = seconds.map_or(self.clock_skew_ms, |seconds| i64::from(seconds) * 1000);
            }
            _ => {}
        }
    }

    /// Hosts and ports of a realm's KDCs.
    ///
    /// # Errors
    /// There is none.
    pub fn kdcs(&self, realm: &str) -> Result<Vec<(&str, u16)>, String> {
        let kdcs = self.kdcs.iter().filter(|(of, ..)| of == realm);
        let kdcs: Vec<(&str, u16)> = kdcs.map(|(_, host, port)| (host.as_str(), *port)).collect();
        match kdcs.is_empty() {
            true => Err(format!(
                "krb5.conf names no kdc of the realm {realm}. Example: [realms] {realm} = {{ kdc = kdc.example.com:88 }}"
            )),
            false => Ok(kdcs),
        }
    }

    /// The realm of a host, where `domain_realm` has it: by its name, else by the longest of its domains.
    pub fn realm_of(&self, host: &str) -> Option<&str> {
        let host = host.to_lowercase();
        let fits = |domain: &str| domain == host || domain.starts_with('.') && host.ends_with(domain);
        let fitting = self.domains.iter().filter(|(domain, _)| fits(domain));
        fitting.max_by_key(|(domain, _)| domain.len()).map(|(_, realm)| realm.as_str())
    }
}

/// `host`, `host:port`, `[address]:port`, with `tcp/` before it or without.
fn kdc(realm: &str, value: &str) -> Option<(String, String, u16)> {
    let value = value.strip_prefix("tcp/").unwrap_or(value);
    let (host, port) = match value.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse().ok()?),
        _ => (value, KDC_PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| (realm.to_owned(), host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_realm_and_skew_come_from_libdefaults() {
        let text = "# made\n[realms]\n default_realm = NO\n[libdefaults]\n  default_realm = EXAMPLE.COM # ours\n clockskew = 60\n\
                    [logging]\n clockskew = 5\n";
        let conf = Krb5Conf::parse(text);
        assert_eq!((conf.default_realm.as_deref(), conf.clock_skew_ms), (Some("EXAMPLE.COM"), 60_000));
        assert_eq!(Krb5Conf::parse("[libdefaults]\nclockskew = soon\n"), Krb5Conf::default());
    }

    #[test]
    fn kdcs_are_those_of_their_realm() {
        let text = "[realms]\n A = {\n  kdc = one\n  kdc = tcp/two:750\n  kdc = [::1]:99\n  admin_server = x\n }\n B = {\n  kdc = three\n }\n";
        let conf = Krb5Conf::parse(text);
        assert_eq!(conf.kdcs("A"), Ok(vec![("one", 88), ("two", 750), ("::1", 99)]));
        assert_eq!(conf.kdcs("B"), Ok(vec![("three", 88)]));
        assert!(conf.kdcs("C").expect_err("none").starts_with("krb5.conf names no kdc of the realm C"));
    }

    #[test]
    fn host_has_the_realm_of_its_longest_domain() {
        let text = "[domain_realm]\n .example.com = A\n .eu.example.com = B\n host.example.com = C\n";
        let conf = Krb5Conf::parse(text);
        for (host, realm) in [("x.example.com", "A"), ("x.EU.example.com", "B"), ("host.example.com", "C")] {
            assert_eq!(conf.realm_of(host), Some(realm), "{host}");
        }
        assert_eq!(conf.realm_of("example.com"), None);
    }
}
