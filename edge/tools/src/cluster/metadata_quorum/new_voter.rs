//! The controller that a `server.properties` describes: its id, its metadata directory's id, and where it listens.
//!
//! Source: Kafka `MetadataQuorumCommand.getControllerId`, `getMetadataDirectory`, `getControllerAdvertisedListeners`.

use crate::ToolError;
use crate::command_line::properties::Properties;
use barnabas_base::Uuid;
use std::path::Path;

#[derive(Debug, PartialEq, Eq)]
pub struct NewVoter {
    pub id: i32,
    pub directory: Uuid,
    /// Name, host, port.
    pub listeners: Vec<(String, String, u16)>,
}

impl NewVoter {
    /// # Errors
    /// The file is no controller's, or its metadata directory is not formatted.
    pub fn read(file: &str) -> Result<Self, ToolError> {
        let properties = Properties::load(file)?;
        let wrong =
            |what: &str| ToolError::Usage(format!("{file}: {what}. Is it a controller's server.properties?"));
        let id =
            properties.number("node.id")?.filter(|id| *id >= 0).ok_or_else(|| wrong("node.id is missing"))?;
        let roles = properties.get("process.roles").unwrap_or_default();
        if !roles.split(',').any(|role| role.trim() == "controller") {
            return Err(wrong("process.roles has no controller"));
        }
        let listeners = listeners(&properties).map_err(|what| wrong(&what))?;
        let directories = properties.get("metadata.log.dir").or(properties.get("log.dirs"));
        let first = directories.and_then(|list| list.split(',').next()).map(str::trim);
        let directory = first.filter(|path| !path.is_empty());
        let directory = directory.ok_or_else(|| wrong("neither metadata.log.dir nor log.dirs is set"))?;
        let meta = Path::new(directory).join("meta.properties");
        let meta = meta.to_string_lossy();
        let known = Properties::load(&meta)?;
        let id_of_directory = known.get("directory.id").and_then(Uuid::parse);
        let missing = || ToolError::Usage(format!("{meta} has no directory.id: format the controller first"));
        Ok(Self { id, directory: id_of_directory.ok_or_else(missing)?, listeners })
    }
}

/// Those of `controller.listener.names`, as they are advertised, else as they listen.
fn listeners(properties: &Properties) -> Result<Vec<(String, String, u16)>, String> {
    let list =
        |key: &str| properties.get(key).unwrap_or_default().split(',').map(str::trim).collect::<Vec<_>>();
    let names: Vec<&str> =
        list("controller.listener.names").into_iter().filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Err("controller.listener.names is missing".to_owned());
    }
    let endpoints = [list("advertised.listeners"), list("listeners")].concat();
    let found = names.into_iter().map(|name| {
        let named = endpoints.iter().filter_map(|endpoint| endpoint.split_once("://"));
        let mut named = named.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let (_, address) = named.next().ok_or_else(|| format!("no listener is called {name}"))?;
        let (host, port) = address.rsplit_once(':').ok_or_else(|| format!("listener {name} has no port"))?;
        let port = port.parse().map_err(|_| format!("listener {name} has port '{port}'"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = if host.is_empty() { "localhost" } else { host };
        Ok((name.to_ascii_uppercase(), host.to_owned(), port))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(text: &str) -> Result<Vec<(String, String, u16)>, String> {
        listeners(&Properties::parse(text).expect("sound"))
    }

    #[test]
    fn listeners_are_those_of_the_controller_as_advertised() {
        let text = "listeners=PLAINTEXT://:9092,CONTROLLER://:9093,OTHER://[::1]:9094\n\
                    advertised.listeners=PLAINTEXT://a:1,CONTROLLER://b:2\ncontroller.listener.names=CONTROLLER,other";
        let found = listening(text).expect("both");
        let expected = [("CONTROLLER", "b", 2), ("OTHER", "::1", 9094)];
        assert_eq!(found, expected.map(|(name, host, port)| (name.to_owned(), host.to_owned(), port)));
        let bare = listening("listeners=C://:9\ncontroller.listener.names=C").expect("one");
        assert_eq!(bare[0].1, "localhost");
    }

    #[test]
    fn listeners_that_are_missing_are_named() {
        assert_eq!(listening("listeners=A://b:1"), Err("controller.listener.names is missing".to_owned()));
        let text = "listeners=A://b:1\ncontroller.listener.names=C";
        assert_eq!(listening(text), Err("no listener is called C".to_owned()));
    }
}
