//! Where a request comes from, as ACLs name it: an address in Java's spelling, `*`, or a range of addresses (KIP-1276).
//!
//! Source: Java `InetAddress.getHostAddress`; Kafka 4.4 `CidrUtils`, which uses commons-net `SubnetUtils`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use barnabas_base::Text;

/// A client's address.
///
/// ACLs are compared with its text, as Java prints it: IPv6 in full (`0:0:0:0:0:0:0:1`), IPv4 inside IPv6 as IPv4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    text: Text,
    /// `None` if the host is not an IP address: no range contains it.
    address: Option<IpAddr>,
}

impl Host {
    /// Reads an address in any usual spelling, or as Kafka prints clients (`/127.0.0.1`).
    pub fn parse(text: &str) -> Self {
        let text = text.strip_prefix('/').unwrap_or(text);
        match text.parse::<IpAddr>() {
            Ok(address) => Self::from(address),
            Err(_) => Self { text: Text::from(text), address: None },
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.address
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        let text = match address {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => v6.segments().map(|part| format!("{part:x}")).join(":"),
        };
        Self { text: Text::from(text), address: Some(address) }
    }
}

/// A range of addresses, such as `10.0.0.0/8` or `2001:db8::/32`. Bits after the prefix do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    is_v6: bool,
    prefix_length: u8,
    /// The address with all bits after the prefix cleared; IPv4 in the low 32 bits.
    network: u128,
}

impl Cidr {
    /// `None` for what Kafka refuses: no slash, no address, a prefix that is too long, IPv4 inside IPv6.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix_length) = text.split_once('/')?;
        let is_number = !prefix_length.is_empty() && prefix_length.bytes().all(|byte| byte.is_ascii_digit());
        let prefix_length: u8 = is_number.then(|| prefix_length.parse().ok())??;
        if let Some(v4) = ipv4(address) {
            return (prefix_length <= 32).then(|| Self::around(IpAddr::V4(v4), prefix_length));
        }
        let v6: Ipv6Addr = address.parse().ok()?;
        (prefix_length <= 128 && v6.to_ipv4_mapped().is_none())
            .then(|| Self::around(IpAddr::V6(v6), prefix_length))
    }

    /// The range with a prefix of that length around an address.
    pub(crate) fn around(address: IpAddr, prefix_length: u8) -> Self {
        let (is_v6, bits, width) = match address {
            IpAddr::V4(v4) => (false, u128::from(v4.to_bits()), 32),
            IpAddr::V6(v6) => (true, v6.to_bits(), 128),
        };
        let after = width - u32::from(prefix_length);
        let network = bits.checked_shr(after).map_or(0, |kept| kept << after);
        Self { is_v6, prefix_length, network }
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv6() == self.is_v6 && Self::around(address, self.prefix_length) == *self
    }

    /// Whether every address of the other range is in this one.
    pub fn covers(&self, other: &Self) -> bool {
        self.is_v6 == other.is_v6
            && self.prefix_length <= other.prefix_length
            && self.contains(other.first_address())
    }

    fn first_address(&self) -> IpAddr {
        if self.is_v6 {
            IpAddr::V6(Ipv6Addr::from_bits(self.network))
        } else {
            // An IPv4 network has 32 bits.
            IpAddr::V4(Ipv4Addr::from_bits(self.network as u32))
        }
    }

    pub(crate) fn is_v6(&self) -> bool {
        self.is_v6
    }

    pub(crate) fn prefix_length(&self) -> u8 {
        self.prefix_length
    }
}

/// Four numbers of one to three digits. Leading zeros are decimal, as in commons-net; Rust's own parser refuses them.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        let is_number = (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        *octet = is_number.then(|| part.parse().ok())??;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_text_is_as_java_prints_it() {
        for (given, printed) in [
            ("127.0.0.1", "127.0.0.1"),
            ("/127.0.0.1", "127.0.0.1"),
            ("::1", "0:0:0:0:0:0:0:1"),
            ("2001:DB8::a0", "2001:db8:0:0:0:0:0:a0"),
            ("::ffff:10.1.2.3", "10.1.2.3"),
            ("unix", "unix"),
        ] {
            assert_eq!(Host::parse(given).text(), printed, "{given}");
        }
    }

    /// Facts: Kafka 4.4 `AclControlManagerTest.testValidateHostPatternValid` and `…Invalid`.
    #[test]
    fn cidr_parse_takes_what_kafka_takes() {
        for good in [
            "192.168.0.0/24",
            "10.0.0.0/8",
            "192.168.1.1/32",
            "0.0.0.0/0",
            "10.1.2.3/8",
            "010.0.0.0/8",
            "2001:db8::/32",
            "::1/128",
            "::/0",
        ] {
            assert!(Cidr::parse(good).is_some(), "{good}");
        }
        for bad in [
            "192.168.0.0/33",
            "192.168.0.0/-1",
            "192.168.0.0/+1",
            "192.168.0.256/24",
            "192.168.0/24",
            "192.168.0.0/abc",
            "192.168.0.0/",
            "192.168.0.0",
            "2001:db8::/129",
            "::ffff:192.168.1.0/24",
            "10.0.0.0/8/8",
            "/8",
            "",
        ] {
            assert_eq!(Cidr::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn cidr_contains_its_first_and_last_address_only() {
        for (range, inside, outside) in [
            ("10.1.2.3/8", ["10.0.0.0", "10.255.255.255"], ["9.255.255.255", "11.0.0.0"]),
            ("192.168.1.1/32", ["192.168.1.1", "192.168.1.1"], ["192.168.1.0", "192.168.1.2"]),
            ("2001:db8::/32", ["2001:db8::", "2001:db8:ffff::1"], ["2001:db7:ffff::", "2001:db9::"]),
            ("0.0.0.0/0", ["1.2.3.4", "255.255.255.255"], ["::1", "2001:db8::"]),
            ("::/0", ["::1", "ffff::"], ["1.2.3.4", "255.255.255.255"]),
        ] {
            let cidr = Cidr::parse(range).unwrap();
            let contains = |text: &str| cidr.contains(Host::parse(text).address().unwrap());
            assert!(inside.into_iter().all(contains), "{range}");
            assert!(!outside.into_iter().any(contains), "{range}");
        }
    }

    #[test]
    fn cidr_covers_narrower_ranges_only() {
        let covers =
            |wide: &str, narrow: &str| Cidr::parse(wide).unwrap().covers(&Cidr::parse(narrow).unwrap());
        assert!(covers("10.0.0.0/8", "10.1.0.0/16"));
        assert!(covers("10.0.0.0/8", "10.9.9.9/8"));
        assert!(!covers("10.1.0.0/16", "10.0.0.0/8"));
        assert!(!covers("10.0.0.0/8", "11.0.0.0/16"));
        assert!(!covers("0.0.0.0/0", "::/0"));
    }
}
