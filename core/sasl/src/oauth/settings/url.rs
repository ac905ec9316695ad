//! A URL of `sasl.oauthbearer.*`: a file, or a host with a path.

use std::path::PathBuf;

/// Bytes of a URL.
const URL_BYTES_MAX: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Url {
    File(PathBuf),
    Http(HttpUrl),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    pub has_tls: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// With its query; begins with a slash.
    pub path: String,
}

impl Url {
    /// # Errors
    /// What is expected instead.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > URL_BYTES_MAX {
            return Err("has more than 4096 bytes");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("has blanks, or characters that a URL writes with %");
        }
        let (scheme, rest) = text.split_once(':').ok_or("is no URL")?;
        match scheme.to_ascii_lowercase().as_str() {
            "file" => file(rest).map(Self::File),
            "https" => http(rest, true).map(Self::Http),
            "http" => http(rest, false).map(Self::Http),
            _ => Err("is no URL of https, http or file"),
        }
    }
}

fn file(rest: &str) -> Result<PathBuf, &'static str> {
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => rest,
    };
    if !path.starts_with('/') {
        return Err("names no absolute path of a file on this machine");
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
            let (high, low) = (digit(), digit());
            match (high, low) {
                (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
                _ => return Err("has a % without two hexadecimal digits"),
            }
        } else {
            bytes.push(byte);
        }
    }
    let path = String::from_utf8(bytes).map_err(|_| "names no path in UTF-8")?;
    if path.contains('\0') { Err("names no path") } else { Ok(PathBuf::from(path)) }
}

fn http(rest: &str, has_tls: bool) -> Result<HttpUrl, &'static str> {
    let rest = rest.strip_prefix("//").ok_or("has no host")?;
    let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.contains('@') {
        return Err("holds a user or a password");
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("has a bracket that is not closed")?;
            (host, port.strip_prefix(':'))
        }
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err("has no host");
    }
    let port = match port {
        None | Some("") => {
            if has_tls {
                443
            } else {
                80
            }
        }
        Some(port) => port.parse().ok().filter(|&port| port > 0).ok_or("has a port that is none")?,
    };
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok(HttpUrl { has_tls, host: host.to_owned(), port, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_issuers_and_files_are_read() {
        let http = |has_tls, host: &str, port, path: &str| {
            Ok(Url::Http(HttpUrl { has_tls, host: host.to_owned(), port, path: path.to_owned() }))
        };
        assert_eq!(Url::parse("https://id.example.com"), http(true, "id.example.com", 443, "/"));
        assert_eq!(Url::parse("HTTPS://h:8443/a/b?c=d#e"), http(true, "h", 8443, "/a/b?c=d"));
        assert_eq!(Url::parse("http://[::1]:80?x"), http(false, "::1", 80, "/?x"));
        for text in ["file:/etc/a%20b", "file:///etc/a%20b", "file://localhost/etc/a%20b"] {
            assert_eq!(Url::parse(text), Ok(Url::File(PathBuf::from("/etc/a b"))), "{text}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in [
            "",
            "id.example.com",
            "ftp://h/",
            "https:/h",
            "https://",
            "https://:443/",
            "https://h:0/",
            "https://h:x/",
            "https://u:p@h/",
            "https://h/a b",
            "https://h/\r\nX: y",
            "https://[::1/",
            "file:relative",
            "file://host/x",
            "file:/a%2",
            "file:/a%00",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
