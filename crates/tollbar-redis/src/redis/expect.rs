//! The kinds of replies that a session expects, each as one byte of its queue.

/// The command that a reply belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// A command whose reply does not matter, not even an error.
    Anything,
    /// AUTH. An error ends the conversation.
    Auth,
    /// SELECT. An error ends the conversation.
    Select,
    /// SCRIPT LOAD of the script with this index, below 64.
    Load(u8),
    /// A call of the script with this index, below 128.
    Call(u8),
}

impl Expect {
    pub(super) fn byte(self) -> u8 {
        match self {
            Expect::Anything => 0,
            Expect::Auth => 1,
            Expect::Select => 2,
            Expect::Load(number) => 64 | number,
            Expect::Call(number) => 128 | number,
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Expect> {
        Some(match byte {
            0 => Expect::Anything,
            1 => Expect::Auth,
            2 => Expect::Select,
            64..=127 => Expect::Load(byte & 63),
            128..=255 => Expect::Call(byte & 127),
            _ => return None,
        })
    }

    /// The command's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Expect::Anything => "CLIENT SETNAME",
            Expect::Auth => "AUTH",
            Expect::Select => "SELECT",
            Expect::Load(_) => "SCRIPT LOAD",
            Expect::Call(_) => "EVALSHA",
        }
    }
}
