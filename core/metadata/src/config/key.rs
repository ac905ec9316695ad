//! The definition of a configuration key: name, type, default, valid values, when it may change, its
//! importance.
//!
//! Rows are written with the `const` builders at the end of this file; the tables are in the sibling files, one per
//! family. Facts (names, types, defaults, ranges, importance, update modes) are those of Kafka 4.4's `ConfigDef`s;
//! the sentences are ours.

/// The type of a value, as Kafka's `ConfigDef.Type` and the wire of DescribeConfigs name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Boolean,
    String,
    Int,
    Short,
    Long,
    Double,
    List,
    Class,
    Password,
}

impl Kind {
    /// The number that DescribeConfigs carries from version 3 on (Kafka `DescribeConfigsResponse.ConfigType`).
    pub const fn wire_id(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
            Self::Class => 8,
            Self::Password => 9,
        }
    }

    /// How an error message names the type.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Boolean => "true or false",
            Self::String => "text",
            Self::Int => "a whole number of 32 bits",
            Self::Short => "a whole number of 16 bits",
            Self::Long => "a whole number of 64 bits",
            Self::Double => "a number",
            Self::List => "a list separated by commas",
            Self::Class => "the name of a Java class",
            Self::Password => "a secret",
        }
    }
}

/// Which values a key takes, beyond its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Valid {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    /// The first number, which means something of its own, or one from the second to the third.
    Or(i64, i64, i64),
    /// For doubles.
    Fraction(f64, f64),
    OneOf(&'static [&'static str]),
    OneOfIgnoringCase(&'static [&'static str]),
    /// Every entry of the list is one of these.
    ListOf(&'static [&'static str]),
    /// The same, and there is at least one.
    SomeOf(&'static [&'static str]),
    NonEmpty,
    /// `address:number` entries.
    AddressCounts,
    /// `host:port`.
    HostPort,
    /// 1 to 9, or −1 for the codec's own level.
    GzipLevel,
    /// `*`, or partition:broker pairs.
    ThrottledReplicas,
    /// `latest`, `earliest`, or `by_duration:` and an ISO 8601 duration.
    OffsetReset,
}

/// When a broker key may be changed (Kafka `DynamicBrokerConfig`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Only in the file, before the start.
    ReadOnly,
    /// While running, for one broker at a time.
    PerBroker,
    /// While running, for one broker or for all of them.
    ClusterWide,
}

/// How much a key matters to an operator, in Kafka's three steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importance {
    Low,
    Medium,
    High,
}

/// The value in force where none is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    /// There is none: Kafka does not start without the key.
    Required,
    /// Kafka's `null`.
    Null,
    Value(&'static str),
}

/// What this node does with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Does what it does in Kafka.
    Applied,
    /// Has Kafka's effect by other means; the sentence says which.
    Emulated(&'static str),
    /// Accepted and without effect; the sentence says why.
    Ignored(&'static str),
    /// The node cannot do it, so a value other than the default is answered with a warning; the sentence says why or
    /// what stands in for it.
    NotAvailable(&'static str),
    /// The node cannot do it, and without it clients may do what the operator forbids: a value other than the default
    /// refuses the start; the sentence says why.
    Refused(&'static str),
}

impl Status {
    /// The word that `config explain` prints.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Emulated(_) => "emulated",
            Self::Ignored(_) => "ignored",
            Self::NotAvailable(_) => "not available",
            Self::Refused(_) => "refused",
        }
    }

    /// The sentence that goes with it; empty for `Applied`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Applied => "",
            Self::Emulated(reason)
            | Self::Ignored(reason)
            | Self::NotAvailable(reason)
            | Self::Refused(reason) => reason,
        }
    }
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfigKey {
    pub name: &'static str,
    pub kind: Kind,
    pub default: DefaultValue,
    pub valid: Valid,
    pub scope: Scope,
    pub importance: Importance,
    /// Kafka's tools neither list nor describe it.
    pub internal: bool,
    /// What a number counts; empty where the name says it, as Kafka's names do.
    pub unit: &'static str,
    pub doc: &'static str,
}

impl ConfigKey {
    /// Whether the value must never be shown (Kafka `KafkaConfig.maybeSensitive`).
    pub const fn is_sensitive(&self) -> bool {
        matches!(self.kind, Kind::Password)
    }

    /// The default as text; `None` for Kafka's null and for keys that must be given.
    pub const fn default_value(&self) -> Option<&'static str> {
        match self.default {
            DefaultValue::Value(value) => Some(value),
            DefaultValue::Null | DefaultValue::Required => None,
        }
    }
}

const fn row(kind: Kind, name: &'static str, default: &'static str) -> ConfigKey {
    ConfigKey {
        name,
        kind,
        default: DefaultValue::Value(default),
        valid: Valid::Any,
        scope: Scope::ReadOnly,
        importance: Importance::Medium,
        internal: false,
        unit: "",
        doc: "",
    }
}

macro_rules! builders {
    ($($function:ident $kind:ident),* $(,)?) => {
        $(pub(super) const fn $function(name: &'static str, default: &'static str) -> ConfigKey {
            row(Kind::$kind, name, default)
        })*
    };
}
builders!(
    boolean Boolean,
    string String,
    int Int,
    short Short,
    long Long,
    double Double,
    list List,
    class Class,
    password Password,
);

/// What a row may add to type, name and default: read-only, of medium importance and public where it says nothing.
impl ConfigKey {
    pub(super) const fn null(mut self) -> Self {
        self.default = DefaultValue::Null;
        self
    }

    pub(super) const fn required(mut self) -> Self {
        self.default = DefaultValue::Required;
        self
    }

    pub(super) const fn valid(mut self, valid: Valid) -> Self {
        self.valid = valid;
        self
    }

    pub(super) const fn at_least(self, least: i64) -> Self {
        self.valid(Valid::AtLeast(least))
    }

    pub(super) const fn between(self, least: i64, most: i64) -> Self {
        self.valid(Valid::Between(least, most))
    }

    /// `special`, or `least` to `most`.
    pub(super) const fn or_between(self, special: i64, least: i64, most: i64) -> Self {
        self.valid(Valid::Or(special, least, most))
    }

    pub(super) const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    pub(super) const fn one_of(self, values: &'static [&'static str]) -> Self {
        self.valid(Valid::OneOf(values))
    }

    pub(super) const fn list_of(self, values: &'static [&'static str]) -> Self {
        self.valid(Valid::ListOf(values))
    }

    pub(super) const fn some_of(self, values: &'static [&'static str]) -> Self {
        self.valid(Valid::SomeOf(values))
    }

    pub(super) const fn per_broker(mut self) -> Self {
        self.scope = Scope::PerBroker;
        self
    }

    pub(super) const fn cluster_wide(mut self) -> Self {
        self.scope = Scope::ClusterWide;
        self
    }

    pub(super) const fn low(mut self) -> Self {
        self.importance = Importance::Low;
        self
    }

    pub(super) const fn high(mut self) -> Self {
        self.importance = Importance::High;
        self
    }

    pub(super) const fn internal(mut self) -> Self {
        self.internal = true;
        self
    }

    pub(super) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }
}
