//! Where other brokers listen for brokers.

use barnabas_base::BrokerId;
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_net::links::Address;

/// Where a broker listens for other brokers. `None`: it is not registered, or has no such listener.
pub fn address_of(image: &Image, broker: BrokerId, listener: &str) -> Option<Address> {
    let endpoint = image.cluster.broker(broker)?.endpoint(listener)?;
    Some(Address { host: endpoint.host.clone(), port: endpoint.port })
}

/// The name of the listener on which brokers hear other brokers; without one it is that which is called as its protocol
/// is.
pub fn listener(config: &BrokerConfig) -> &str {
    let protocol = || config.value("security.inter.broker.protocol").unwrap_or("PLAINTEXT");
    config.value("inter.broker.listener.name").unwrap_or_else(protocol)
}
