//! Error replies of a server, sorted by what a caller can do about them.

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The server has forgotten the script. The session loads it again, and the caller may repeat
    /// the call.
    NoScript,
    /// The server cannot serve now. The caller may try later.
    Unavailable(Why),
    /// The server refuses this user, or a command of this user. Somebody has to change the server's
    /// configuration.
    Refused,
    /// The file that has the password cannot be read.
    Credentials,
    /// The server is part of a cluster, and another node holds the key. The error text names the
    /// node. Clusters are not supported.
    Moved,
    /// The script failed, or the server does not know the command.
    Script,
    /// The server sent no reply of RESP2, or an unexpected one. The caller closes the connection.
    Protocol,
}

/// Why a server that answers cannot serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The server is a replica.
    ReadOnly,
    /// The server is reading its data from the disk.
    Loading,
    /// The cluster has no quorum, or does not serve all slots.
    ClusterDown,
    /// `maxmemory` is reached and nothing may be evicted.
    OutOfMemory,
    /// Another script has run for longer than the server's limit.
    Busy,
    /// The server is a replica that has lost its master.
    MasterDown,
    /// The server has fewer replicas than it needs to accept writes.
    NoReplicas,
    /// The cluster is moving the key's slot.
    TryAgain,
    /// The server could not save its data and accepts no writes.
    NotSaved,
    /// The server has as many clients as it may have.
    TooManyClients,
}

impl Fault {
    /// The fault of an error reply, given its text without the `-`.
    pub fn of(text: &[u8]) -> Fault {
        match code(text) {
            // A server of version 6 or older wraps a script's error in another one.
            b"ERR" => inner(text)
                .map_or_else(|| plain(text), |inner| named(code(inner)).unwrap_or(Fault::Script)),
            name => named(name).unwrap_or(Fault::Script),
        }
    }

    /// What the error reply with this text means, in words for people: more exact than
    /// [`Fault::message`].
    pub fn words(self, text: &[u8]) -> &'static str {
        match self {
            Fault::Refused => match code(inner(text).unwrap_or(text)) {
                b"NOAUTH" => "the server wants a password",
                b"DENIED" => "the server accepts only clients of its own machine",
                b"WRONGPASS" => "the server refuses this user or password",
                _ if text.starts_with(b"ERR AUTH ")
                    || text.starts_with(b"ERR invalid password")
                    || text.starts_with(b"ERR Client sent AUTH") =>
                {
                    "the server refuses this user or password"
                }
                b"NOPERM" => "the server does not let this user run a command or use a key",
                _ => "the server does not let this user run the script, which needs GET, MGET, SET and TIME",
            },
            Fault::Script
                if contains(text, b"nknown command") || contains(text, b"nknown Redis command") =>
            {
                "the server does not know a command"
            }
            Fault::Script if contains(text, b"WRONGTYPE") => "a key holds another type",
            _ => self.message(),
        }
    }

    /// One line for people.
    pub const fn message(self) -> &'static str {
        match self {
            Fault::NoScript => "the server has forgotten the script",
            Fault::Unavailable(why) => why.message(),
            Fault::Refused => "the server refuses this user",
            Fault::Credentials => "the password's file cannot be read",
            Fault::Moved => "the server is part of a cluster, which is not supported",
            Fault::Script => "the script failed",
            Fault::Protocol => "not a Redis server's reply",
        }
    }
}

impl Why {
    /// One line for people.
    pub const fn message(self) -> &'static str {
        match self {
            Why::ReadOnly => "the server is a replica",
            Why::Loading => "the server is loading its data",
            Why::ClusterDown => "the server's cluster is down",
            Why::OutOfMemory => "the server is out of memory",
            Why::Busy => "the server is busy with a script",
            Why::MasterDown => "the server has lost its master",
            Why::NoReplicas => "the server has too few replicas to accept writes",
            Why::TryAgain => "the server is moving the key",
            Why::NotSaved => "the server cannot save its data and accepts no writes",
            Why::TooManyClients => "the server has too many clients",
        }
    }
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.message())
    }
}

fn contains<const N: usize>(text: &[u8], part: &[u8; N]) -> bool {
    text.windows(N).any(|window| window == part)
}

/// The first word.
fn code(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == b' ').next().unwrap_or_default()
}

fn named(code: &[u8]) -> Option<Fault> {
    Some(match code {
        b"NOSCRIPT" => Fault::NoScript,
        b"READONLY" => Fault::Unavailable(Why::ReadOnly),
        b"LOADING" => Fault::Unavailable(Why::Loading),
        b"CLUSTERDOWN" => Fault::Unavailable(Why::ClusterDown),
        b"OOM" => Fault::Unavailable(Why::OutOfMemory),
        b"BUSY" => Fault::Unavailable(Why::Busy),
        b"MASTERDOWN" => Fault::Unavailable(Why::MasterDown),
        b"NOREPLICAS" => Fault::Unavailable(Why::NoReplicas),
        b"TRYAGAIN" => Fault::Unavailable(Why::TryAgain),
        b"MISCONF" => Fault::Unavailable(Why::NotSaved),
        // DENIED is protected mode: the server has no password, and the client is on another
        // machine.
        b"NOAUTH" | b"WRONGPASS" | b"NOPERM" | b"DENIED" => Fault::Refused,
        b"MOVED" | b"ASK" | b"CROSSSLOT" => Fault::Moved,
        _ => return None,
    })
}

/// Sorts errors with the code `ERR` by their texts.
fn plain(text: &[u8]) -> Fault {
    if text.starts_with(b"ERR max number of clients reached") {
        return Fault::Unavailable(Why::TooManyClients);
    }
    let refused: [&[u8]; 5] = [
        b"ERR AUTH ",
        b"ERR invalid password",
        b"ERR Client sent AUTH",
        b"ERR The user executing the script can't",
        // Valkey 8 and newer servers.
        b"ERR ACL failure in script",
    ];
    if refused.iter().any(|start| text.starts_with(start)) {
        return Fault::Refused;
    }
    Fault::Script
}

/// The inner error of `ERR Error running script (call to f_…): @user_script:1: -READONLY …`: the
/// text from `READONLY` on.
fn inner(text: &[u8]) -> Option<&[u8]> {
    if !text.starts_with(b"ERR Error running script") {
        return None;
    }
    let at = text.windows(3).position(|three| three == b": -")?;
    text.get(at.saturating_add(3)..)
}
