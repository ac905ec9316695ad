//! `barnabas security init`: an authority, certificates, an administrator and settings for one node or three, and the
//! commands that come next. What they are is decided by core/config/src/security_init.rs.
//!
//! Always true: nothing is written over; a directory that holds something is refused.

mod files;

use crate::log_dirs::directories::random_uuid;
use barnabas_clock::Clock;
use barnabas_config::security_init::{ADMIN, BROKER, User, client, joined, next, nodes, server};
use barnabas_net::links;
use barnabas_sasl::Secret;
use barnabas_tls::{Authority, Validity};
use clap::ArgMatches;
use files::Folder;
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

type Failure = Box<dyn Error>;

const AUTHORITY_DAYS: u64 = 3650;
const NODE_DAYS: u64 = 825;

/// # Errors
/// What the operator has to put right. Nothing was written over.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("init", matches)) => init(matches),
        _ => Ok(ExitCode::FAILURE),
    }
}

fn init(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let port = *matches.get_one::<u16>("port").unwrap_or(&9092);
    let nodes = nodes(text("nodes"), text("host"), port)?;
    let root = std::path::absolute(text("dir"))?;
    let folder = Folder::make(&root)?;
    let now_s = u64::try_from(Clock::start().wall().0 / 1000)?;
    let (cluster_id, users) = (random_uuid().to_string(), [random(ADMIN), random(BROKER)]);
    let authority = Authority::new("Barnabas cluster", Validity { now_s, days: AUTHORITY_DAYS })?;
    folder.write("ca/ca.pem", &authority.certificate())?;
    folder.write_secret("ca/ca.key", authority.key().text().unwrap_or_default())?;
    for node in &nodes {
        let name = format!("node-{}", node.id);
        let issued =
            authority.issue(&name, std::slice::from_ref(&node.host), Validity { now_s, days: NODE_DAYS })?;
        folder.write(&format!("{name}/ca.pem"), &authority.certificate())?;
        let store = joined(&issued.key, &issued.chain);
        folder.write_secret(&format!("{name}/node.pem"), store.text().unwrap_or_default())?;
        for user in &users {
            folder.write_secret(
                &format!("{name}/{}.scram", user.name),
                user.credential.text().unwrap_or_default(),
            )?;
        }
        let settings = server(node, &nodes, &root.join(&name), &users[1].password);
        folder.write_secret(&format!("{name}/server.properties"), &settings)?;
    }
    folder.write("client/ca.pem", &authority.certificate())?;
    let client = client(&root.join("client"), &users[0].password);
    folder.write_secret("client/client.properties", &client)?;
    write!(std::io::stdout(), "{}", next(&root, &nodes, &cluster_id))?;
    Ok(ExitCode::SUCCESS)
}

fn random(name: &'static str) -> User {
    User::new(name, Secret::from(links::nonce()), &links::salt())
}
