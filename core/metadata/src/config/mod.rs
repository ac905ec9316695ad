//! Every configuration key that Kafka 4.4 knows: type, default, validity, scope, and whether it is applied here.
