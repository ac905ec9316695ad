//! Kafka's numbers and names of what an ACL is made of, and what an operation implies.
//!
//! Records and requests carry bare numbers, and a newer Kafka may use numbers that are unknown here; so
//! [`barnabas_metadata::access::Acl`] keeps the number, and these types are what the number means.
//!
//! Source: Kafka 4.4 `ResourceType`, `PatternType`, `AclOperation`, `AclPermissionType`, `AclEntry`.

use barnabas_base::ErrorCode;

/// As a resource name in a LITERAL pattern: every name. As a host: every host.
pub const WILDCARD: &str = "*";
/// The principal that matches every principal of any type.
pub const WILDCARD_PRINCIPAL: &str = "User:*";
/// The only resource of type [`ResourceType::Cluster`].
pub const CLUSTER_NAME: &str = "kafka-cluster";

/// "Unknown" in every one of these numbers.
pub const UNKNOWN: i8 = 0;
/// "Any" in filters, in every one of these numbers.
pub const ANY: i8 = 1;
/// A pattern type of filters: every pattern that matches the name.
pub const MATCH: i8 = 2;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$one:meta])* $variant:ident = $code:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i8)]
        pub enum $name {
            $($(#[$one])* $variant = $code,)*
        }

        impl $name {
            pub const ALL_OF_THEM: &[Self] = &[$(Self::$variant),*];

            pub const fn code(self) -> i8 {
                self as i8
            }

            pub const fn from_code(code: i8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// As Kafka prints it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

codes! {
    /// What an ACL protects.
    ResourceType {
        Topic = 2 "TOPIC",
        Group = 3 "GROUP",
        Cluster = 4 "CLUSTER",
        TransactionalId = 5 "TRANSACTIONAL_ID",
        DelegationToken = 6 "DELEGATION_TOKEN",
        User = 7 "USER",
    }
}

codes! {
    /// How an ACL names its resources (KIP-290).
    PatternType {
        Literal = 3 "LITERAL",
        Prefixed = 4 "PREFIXED",
    }
}

codes! {
    /// What a request does to a resource. [`Operation::All`] stands in ACLs only.
    Operation {
        All = 2 "ALL",
        Read = 3 "READ",
        Write = 4 "WRITE",
        Create = 5 "CREATE",
        Delete = 6 "DELETE",
        Alter = 7 "ALTER",
        Describe = 8 "DESCRIBE",
        ClusterAction = 9 "CLUSTER_ACTION",
        DescribeConfigs = 10 "DESCRIBE_CONFIGS",
        AlterConfigs = 11 "ALTER_CONFIGS",
        IdempotentWrite = 12 "IDEMPOTENT_WRITE",
        CreateTokens = 13 "CREATE_TOKENS",
        DescribeTokens = 14 "DESCRIBE_TOKENS",
        TwoPhaseCommit = 15 "TWO_PHASE_COMMIT",
    }
}

codes! {
    Permission {
        Deny = 2 "DENY",
        Allow = 3 "ALLOW",
    }
}

/// The name that Kafka prints for a number that need not be known.
pub fn name_of(known: Option<&'static str>, code: i8) -> &'static str {
    match (known, code) {
        (Some(name), _) => name,
        (None, ANY) => "ANY",
        (None, _) => "UNKNOWN",
    }
}

impl ResourceType {
    pub(crate) const COUNT: usize = Self::ALL_OF_THEM.len();

    /// Its place among all of them.
    pub(crate) const fn place(self) -> usize {
        self as usize - Self::Topic as usize
    }

    /// The operations that there are on such a resource. Source: Kafka `AclEntry.supportedOperations`.
    pub const fn operations(self) -> &'static [Operation] {
        use Operation::*;
        match self {
            Self::Topic => &[Read, Write, Create, Describe, Delete, Alter, DescribeConfigs, AlterConfigs],
            Self::Group => &[Read, Describe, Delete, DescribeConfigs, AlterConfigs],
            Self::Cluster => {
                &[Create, ClusterAction, DescribeConfigs, AlterConfigs, IdempotentWrite, Alter, Describe]
            }
            Self::TransactionalId => &[Describe, Write, TwoPhaseCommit],
            Self::DelegationToken => &[Describe],
            Self::User => &[CreateTokens, DescribeTokens],
        }
    }

    /// The code that refuses a request for want of an ACL. Kafka has none for users: no API refuses with one.
    pub const fn refusal(self) -> ErrorCode {
        match self {
            Self::Topic => ErrorCode::TopicAuthorizationFailed,
            Self::Group => ErrorCode::GroupAuthorizationFailed,
            Self::Cluster => ErrorCode::ClusterAuthorizationFailed,
            Self::TransactionalId => ErrorCode::TransactionalIdAuthorizationFailed,
            Self::DelegationToken | Self::User => ErrorCode::DelegationTokenAuthorizationFailed,
        }
    }
}

/// A set of operations: bit n is the operation with Kafka's number n.
pub(crate) type Operations = u16;

const EVERY: Operations = u16::MAX;

impl Operation {
    pub(crate) const fn bit(self) -> Operations {
        1 << self as u16
    }

    /// The operations of ALLOW entries that allow this one, besides ALL: READ, WRITE, DELETE and ALTER imply DESCRIBE,
    /// and ALTER_CONFIGS implies DESCRIBE_CONFIGS. A DENY implies nothing.
    pub(crate) const fn allowed_by(self) -> Operations {
        match self {
            Self::Describe => {
                self.bit() | Self::Read.bit() | Self::Write.bit() | Self::Delete.bit() | Self::Alter.bit()
            }
            Self::DescribeConfigs => self.bit() | Self::AlterConfigs.bit(),
            _ => self.bit(),
        }
    }
}

/// The operation of an entry as a set that [`Operation::allowed_by`] and [`Operation::bit`] can be looked up in.
/// Empty for a number that is unknown here: such an entry matches no request.
pub(crate) const fn entry_operations(code: i8) -> Operations {
    match Operation::from_code(code) {
        Some(Operation::All) => EVERY,
        Some(operation) => operation.bit(),
        None => 0,
    }
}

/// The requests that an entry decides, implied ones included.
pub(crate) fn decided_operations(code: i8, allows: bool) -> Operations {
    let of_entry = entry_operations(code);
    if !allows {
        return of_entry;
    }
    let allowed = Operation::ALL_OF_THEM
        .iter()
        .filter(|operation| operation.allowed_by() & of_entry != 0)
        .fold(0, |set, operation| set | operation.bit());
    if of_entry == EVERY { EVERY } else { allowed }
}

/// Whether an entry with this number allows. As in Kafka every other number denies.
pub(crate) const fn allows(permission: i8) -> bool {
    permission == Permission::Allow as i8
}

/// Whether a pattern with this number stands for one name. As in Kafka every other number is read as PREFIXED.
pub(crate) const fn is_literal(pattern_type: i8) -> bool {
    pattern_type == PatternType::Literal as i8
}
