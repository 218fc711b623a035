//! What is wrong with the store, in words for the operator.

use super::{Client, KEY_SHOWN};
use crate::lease::node::Node;
use crate::lease::stats::Circuit;
use crate::redis::{LinkError, NameFault, Operation, Text};

/// The most bytes of a text.
const TROUBLE_MOST: usize = 400;

impl Client {
    /// Why the store does not serve this node, or what is wrong although it does; empty if nothing
    /// is. The text names the command that failed and the key that it was about, and ends with the
    /// server's own words:
    ///
    /// ```text
    /// the server is out of memory (EVALSHA, key "192.0.2.1"): OOM command not allowed when ...
    /// ```
    pub fn trouble(&self, node: &Node) -> Text<TROUBLE_MOST> {
        let mut text = Text::new();
        let server = self.session.error_text();
        match self.fault {
            Some(fault) => {
                text.append(fault.words(server.as_bytes()));
                let command = self.session.failed_command();
                if !command.is_empty() {
                    text.append(" (");
                    text.append(command);
                    if command == "EVALSHA" {
                        append_key(&mut text, &self.fault_key);
                    }
                    text.append(")");
                }
                if !server.is_empty() {
                    text.append(": ");
                    text.append(server);
                }
            }
            None => match self.notice(node) {
                Some(notice) => text.append(notice),
                None if node.circuit(node.now()) == Circuit::Open => {
                    text.append(self.silence());
                    if let Some(LinkError::Tls(why)) = self.broken {
                        text.append(": ");
                        text.append(why.as_str());
                    }
                }
                None => {}
            },
        }
        text
    }

    /// Why a store has no answer.
    fn silence(&self) -> &'static str {
        match self.broken {
            None => "the server does not answer in time",
            Some(LinkError::Name(NameFault::Absent)) => {
                "the server's name is unknown to the system's resolver"
            }
            Some(LinkError::Name(NameFault::NoAnswer)) => {
                "no name server answers for the server's name"
            }
            Some(LinkError::Name(NameFault::TooMany)) => {
                "too many lookups of names wait for the system's resolver"
            }
            Some(LinkError::Ended | LinkError::System(Operation::Read, _)) => match self.was_ready {
                true => "the server closed the connection",
                false => {
                    "the server closed the connection before it answered, as a port for TLS does"
                }
            },
            Some(LinkError::NoTls) => "the URL asks for TLS (rediss://), which this program lacks",
            Some(LinkError::Tls(_)) => "TLS with the server failed",
            Some(LinkError::System(_, libc::ECONNREFUSED)) => "the server refuses connections",
            Some(LinkError::System(_, libc::ENOENT)) => "the server's socket does not exist",
            Some(_) => "the server cannot be reached",
        }
    }
}

/// The key about which the question was, with `\xNN` for bytes that are not printable ASCII.
fn append_key(text: &mut Text<TROUBLE_MOST>, key: &Text<KEY_SHOWN>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    if key.is_empty() {
        return;
    }
    text.append(", key \"");
    for &byte in key.as_bytes() {
        if matches!(byte, b' '..=b'~') {
            let _ = text.push(byte);
        } else {
            text.append("\\x");
            for nibble in [byte >> 4, byte & 15] {
                let _ = text.push(DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'?'));
            }
        }
    }
    text.append("\"");
}
