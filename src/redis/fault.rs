//! What an error reply means for the caller.

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The server has forgotten the script. It is being loaded again: make the same call once more.
    NoScript,
    /// The server cannot do it now. Later it may.
    Unavailable(Why),
    /// The server does not let this user in, or do this. It will not by itself.
    Refused,
    /// A cluster, in which the key is at another node; the error text names it. Clusters are not supported.
    Moved,
    /// The script failed, or the server knows no such command.
    Script,
    /// What came is not a reply, or not one to what was asked. The connection is of no more use.
    Protocol,
}

/// What a server that is there says when it cannot serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// A replica.
    ReadOnly,
    /// It is reading its data from the disk.
    Loading,
    /// The cluster has no quorum or not all slots.
    ClusterDown,
    /// `maxmemory` is reached and nothing may be evicted.
    OutOfMemory,
    /// Another script has been running for long.
    Busy,
    /// A replica without its master.
    MasterDown,
    /// Fewer replicas than it must have to accept writes.
    NoReplicas,
    /// A slot is being moved.
    TryAgain,
    /// It could not save its data and accepts no writes.
    NotSaved,
    /// It has as many clients as it may have.
    TooManyClients,
}

impl Fault {
    /// Of an error reply's text, without the `-`.
    pub fn of(text: &[u8]) -> Fault {
        match code(text) {
            // Up to version 6 an error within a script is told inside another one.
            b"ERR" => inner(text).map_or_else(|| plain(text), |inner| named(code(inner)).unwrap_or(Fault::Script)),
            name => named(name).unwrap_or(Fault::Script),
        }
    }

    /// One line for people.
    pub const fn message(self) -> &'static str {
        match self {
            Fault::NoScript => "the server had forgotten the script",
            Fault::Unavailable(why) => why.message(),
            Fault::Refused => "the server refuses this user",
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
        // DENIED is protected mode: no password, and a client from elsewhere.
        b"NOAUTH" | b"WRONGPASS" | b"NOPERM" | b"DENIED" => Fault::Refused,
        b"MOVED" | b"ASK" | b"CROSSSLOT" => Fault::Moved,
        _ => return None,
    })
}

/// `ERR` is all sorts of things; these are told apart by their texts.
fn plain(text: &[u8]) -> Fault {
    if text.starts_with(b"ERR max number of clients reached") {
        return Fault::Unavailable(Why::TooManyClients);
    }
    let refused: [&[u8]; 5] = [
        b"ERR AUTH ",
        b"ERR invalid password",
        b"ERR Client sent AUTH",
        b"ERR The user executing the script can't",
        // The same of newer servers: Valkey 8 says it so.
        b"ERR ACL failure in script",
    ];
    if refused.iter().any(|start| text.starts_with(start)) {
        return Fault::Refused;
    }
    Fault::Script
}

/// `ERR Error running script (call to f_…): @user_script:1: -READONLY …`: from `READONLY` on.
fn inner(text: &[u8]) -> Option<&[u8]> {
    if !text.starts_with(b"ERR Error running script") {
        return None;
    }
    let at = text.windows(3).position(|three| three == b": -")?;
    text.get(at.saturating_add(3)..)
}
