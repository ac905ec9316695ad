//! Kerberos tickets that this node, or a tool, logs in with: asked of a KDC over TCP with a key of a keytab, or with
//! the first ticket of a ticket cache, which another program writes (`kinit`).
//!
//! core/sasl/src/kerberos/kdc.rs says what is asked, core/sasl/src/kerberos/tickets.rs with what. Blocking: for threads
//! that may wait.
//!
//! Always true:
//! 1. a KDC is waited for at most [`PATIENCE`], and an answer has at most `REPLY_BYTES_MAX`
//! 2. tickets of at most [`SERVICES_MAX`] services are held
//! 3. a ticket cache is read and not written

use barnabas_base::{Map, TimestampMs};
use barnabas_clock::Clock;
use barnabas_sasl::Secret;
use barnabas_sasl::client::{ClientLogin, TicketLogin};
use barnabas_sasl::kerberos::{
    self, CacheSettings, Entry, KEYTAB_BYTES_MAX, KdcFault, Keytab, Principal, Proof, REPLY_BYTES_MAX,
    Secrets, TICKET_CACHE_BYTES_MAX, Ticket, TicketCache, TicketSettings,
};
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// For a connection to a KDC, and for each read and write.
const PATIENCE: Duration = Duration::from_secs(5);
const SERVICES_MAX: usize = 1000;
/// A service's ticket is asked for again after so long: a service whose keytab was replaced reads no older one.
const SERVICE_MS: i64 = 600_000;

/// See the file's header.
#[derive(Debug)]
pub struct TicketSource {
    settings: TicketSettings,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    first: Option<Ticket>,
    /// By the services' hosts; with the time at which they were asked for.
    services: Map<String, (Ticket, TimestampMs)>,
}

/// Random bytes for one login.
pub fn secrets() -> Secrets {
    let mut secrets = Secrets([0; Secrets::BYTES]);
    getrandom::fill(&mut secrets.0).expect("invariant: Linux always has random bytes for a running process");
    secrets
}

/// A keytab's bytes.
///
/// # Errors
/// It cannot be read, or has more bytes than a keytab may.
pub fn read_keytab(path: &Path) -> Result<Secret, String> {
    read("keytab", path, KEYTAB_BYTES_MAX)
}

fn read(what: &str, path: &Path, bytes_max: usize) -> Result<Secret, String> {
    let mut bytes = Vec::new();
    // One byte more, by which a file that is too long is known.
    let whole = File::open(path).and_then(|file| file.take(bytes_max as u64 + 1).read_to_end(&mut bytes));
    let bytes = Secret::from(bytes);
    whole.map_err(|error| format!("the {what} {} cannot be read: {error}", path.display()))?;
    match bytes.bytes().len() > bytes_max {
        true => Err(format!("the {what} {} has more than {bytes_max} bytes", path.display())),
        false => Ok(bytes),
    }
}

/// The ticket cache that a module without `ticketCache` means, as Java and MIT find it.
fn usual_cache() -> Result<PathBuf, String> {
    if let Some(name) = std::env::var_os("KRB5CCNAME").filter(|name| !name.is_empty()) {
        return kerberos::cache_file(&name.to_string_lossy());
    }
    let user = std::fs::metadata("/proc/self").map_err(|error| format!("/proc/self: {error}"))?.uid();
    Ok(format!("/tmp/krb5cc_{user}").into())
}

/// krb5.conf: the named one, else that of `KRB5_CONFIG`, else the system's, which need not be there.
///
/// # Errors
/// The path that cannot be read.
pub fn read_krb5_conf(named: Option<PathBuf>) -> Result<Option<String>, (PathBuf, io::Error)> {
    let is_named = named.is_some();
    let path = named.unwrap_or_else(|| {
        // MIT takes several, parted by colons; the first one decides.
        let paths = std::env::var_os("KRB5_CONFIG").filter(|paths| !paths.is_empty());
        let first = paths.and_then(|paths| std::env::split_paths(&paths).next());
        first.unwrap_or_else(|| "/etc/krb5.conf".into())
    });
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if !is_named && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err((path, error)),
    }
}

impl TicketSource {
    pub fn new(settings: TicketSettings) -> Self {
        Self { settings, held: Mutex::default() }
    }

    pub fn settings(&self) -> &TicketSettings {
        &self.settings
    }

    /// A login to the service on this host. May wait for the KDC; logins at the same time wait for one answer.
    ///
    /// # Errors
    /// There is no ticket, and why.
    pub fn login(&self, host: &str) -> Result<ClientLogin, String> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Clock::start().wall();
        let is_due = |(ticket, asked): &(Ticket, TimestampMs)| {
            kerberos::is_due(ticket.starts, ticket.ends, now) || now.0.saturating_sub(asked.0) >= SERVICE_MS
        };
        if held.services.get(host).is_none_or(is_due) {
            match self.ask_for(&mut held, host, now) {
                Ok(ticket) => {
                    if held.services.len() >= SERVICES_MAX {
                        held.services.clear();
                    }
                    held.services.insert(host.to_owned(), (ticket, now));
                }
                // One that has not ended serves while no KDC answers.
                Err(why) if held.services.get(host).is_some_and(|(ticket, _)| ticket.ends > now) => {
                    tracing::warn!(why, host, "no new Kerberos ticket; the one before serves until its end");
                }
                Err(why) => return Err(format!("there is no Kerberos ticket to log in with: {why}")),
            }
        }
        let (ticket, _) = held.services.get(host).ok_or("there is no ticket")?.clone();
        let secrets = secrets();
        // A time that no other login of this client has.
        let at_us = now.0 * 1000 + i64::from(secrets.number() % 1000);
        Ok(ClientLogin::Ticket(Box::new(TicketLogin {
            ticket,
            at_us,
            secrets: Secret::from(&secrets.0[..]),
        })))
    }

    fn ask_for(&self, held: &mut Held, host: &str, now: TimestampMs) -> Result<Ticket, String> {
        let first = match &held.first {
            Some(first) if !kerberos::is_due(first.starts, first.ends, now) => first.clone(),
            _ => {
                let first = self.first(now)?;
                held.first = Some(first.clone());
                first
            }
        };
        let service = self.settings.service(host, &first.client.realm);
        if service.realm != first.client.realm {
            return Err(format!(
                "{service} is of another realm than {}: tickets of other realms are not asked for here",
                first.client
            ));
        }
        let secrets = secrets();
        let nonce = secrets.number();
        let at_us = now.0 * 1000 + i64::from(nonce % 1000);
        let request = kerberos::tgs_request(&first, &service, nonce, at_us, secrets.confounder());
        let reply = self.ask(&first.client, &request)?;
        kerberos::tgs_reply(&reply, &first, &service, nonce).map_err(|fault| {
            // The KDC may read the first ticket no more: the next login gets another one.
            held.first = None;
            format!("{service}: {fault}")
        })
    }

    /// The ticket for tickets: the ticket cache's, else one by the keytab.
    fn first(&self, now: TimestampMs) -> Result<Ticket, String> {
        let TicketSettings { client, cache, keytab, .. } = &self.settings;
        let cached = cache.as_ref().map(|cache| self.cached(cache, now));
        match (cached, keytab, client) {
            (Some(Ok(ticket)), ..) => Ok(ticket),
            (why, Some(keytab), Some(client)) => {
                self.by_keytab(keytab, client, now).map_err(|also| match why {
                    Some(Err(why)) => format!("{why}; {also}"),
                    _ => also,
                })
            }
            (Some(Err(why)), ..) => Err(why),
            (None, ..) => Err("there is neither a ticket cache nor a keytab".to_owned()),
        }
    }

    /// The first ticket of the cache, while it has not ended. Renewed, where that is wanted and its end is near.
    fn cached(&self, settings: &CacheSettings, now: TimestampMs) -> Result<Ticket, String> {
        let path = settings.file.clone().map_or_else(usual_cache, Ok)?;
        let name = path.display();
        let again =
            |client: &dyn std::fmt::Display| format!("Get a ticket with: kinit -c FILE:{name} {client}");
        let wanted = self.settings.client.as_ref();
        let wanted_name = wanted.map_or_else(|| "PRINCIPAL".to_owned(), Principal::to_string);
        let bytes = read("ticket cache", &path, TICKET_CACHE_BYTES_MAX)
            .map_err(|why| format!("{why}. {}", again(&wanted_name)))?;
        let cache = TicketCache::parse(bytes.bytes());
        let cache = cache.map_err(|fault| format!("the ticket cache {name} {fault}"))?;
        let client = &cache.client;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != client) {
            return Err(format!(
                "the ticket cache {name} is of {client}, not of {wanted}. {}",
                again(wanted)
            ));
        }
        let Some(first) = cache.first else {
            let why = match cache.has_foreign_key {
                true => "has no ticket for tickets with a key for aes128 or aes256",
                false => "has no ticket for tickets",
            };
            return Err(format!("the ticket cache {name} of {client} {why}. {}", again(client)));
        };
        if first.ends <= now {
            return Err(format!(
                "the ticket of {client} in the ticket cache {name} has ended. {}",
                again(client)
            ));
        }
        let is_renewable = cache.renewable_until.is_some_and(|until| until > now);
        match settings.renews && is_renewable && kerberos::is_due(first.starts, first.ends, now) {
            true => Ok(self.renewed(&first, now).unwrap_or_else(|why| {
                tracing::warn!(why, client = %first.client, "the Kerberos ticket is not renewed; it serves until its end");
                first
            })),
            false => Ok(first),
        }
    }

    fn renewed(&self, first: &Ticket, now: TimestampMs) -> Result<Ticket, String> {
        let secrets = secrets();
        let nonce = secrets.number();
        let at_us = now.0 * 1000 + i64::from(nonce % 1000);
        let request = kerberos::renewal_request(first, nonce, at_us, secrets.confounder());
        let reply = self.ask(&first.client, &request)?;
        kerberos::tgs_reply(&reply, first, &first.service, nonce).map_err(|fault| fault.to_string())
    }

    fn by_keytab(&self, path: &Path, client: &Principal, now: TimestampMs) -> Result<Ticket, String> {
        let keytab = Keytab::parse(read_keytab(path)?.bytes());
        let keys = keytab.map_err(|fault| format!("the keytab {} {fault}", path.display()))?.keys_of(client);
        let newest = keys.iter().map(|entry| entry.version).max().unwrap_or_default();
        let mut keys: Vec<Entry> = keys.into_iter().filter(|entry| entry.version == newest).collect();
        keys.sort_by_key(|entry| std::cmp::Reverse(entry.key.enctype()));
        let enctypes: Vec<_> = keys.iter().map(|entry| entry.key.enctype()).collect();
        if enctypes.is_empty() {
            return Err(format!("the keytab {} has no key of {client} for aes128 or aes256", path.display()));
        }
        let secrets = secrets();
        let nonce = secrets.number();
        let asked = |proof| kerberos::as_request(client, &enctypes, nonce, now, proof);
        let offered = match kerberos::as_reply(&self.ask(client, &asked(None))?, client, &keys, nonce) {
            Err(KdcFault::Preauth(offered)) => offered,
            other => return other.map_err(|fault| format!("{client}: {fault}")),
        };
        let fits = |number: &i64| keys.iter().find(|entry| entry.key.enctype().number() == *number);
        let Some(entry) = offered.iter().find_map(fits) else {
            return Err(format!("{client}: {}", KdcFault::Preauth(offered)));
        };
        let at_us = Clock::start().wall().0 * 1000;
        let proof = Proof { key: &entry.key, at_us, confounder: secrets.confounder() };
        let reply = self.ask(client, &asked(Some(proof)))?;
        kerberos::as_reply(&reply, client, &keys, nonce).map_err(|fault| format!("{client}: {fault}"))
    }

    /// What the first KDC that can be reached answers.
    fn ask(&self, client: &Principal, request: &[u8]) -> Result<Vec<u8>, String> {
        let mut why = String::new();
        for (host, port) in self.settings.conf.kdcs(&client.realm)? {
            match exchange(host, port, request) {
                Ok(reply) => return Ok(reply),
                Err(error) => why = format!("the KDC {host}:{port} does not answer: {error}"),
            }
        }
        Err(why)
    }
}

/// RFC 4120, 7.2.2: a length before each message.
fn exchange(host: &str, port: u16, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in (host, port).to_socket_addrs()? {
        let mut stream = match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => stream,
            Err(error) => {
                failed = error;
                continue;
            }
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&[&(request.len() as u32).to_be_bytes()[..], request].concat())?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length);
        if length as usize > REPLY_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{length} bytes of answer")));
        }
        let mut reply = Vec::new();
        stream.take(length.into()).read_to_end(&mut reply)?;
        return match reply.len() == length as usize {
            true => Ok(reply),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        };
    }
    Err(failed)
}
