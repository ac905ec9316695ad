//! The binary: says which command runs, and nothing about how.
mod args;
mod node_config;
mod properties;
mod settings;
fn main() {}
