//! What is wrong with the store, in words for the operator.

use super::call::Limits;
use super::limit::KEY_SHOWN;
use super::Client;
use crate::lease::node::Node;
use crate::lease::stats::Circuit;
use crate::redis::{Fault, LinkError, NameFault, Operation, Text};
use core::ops::Deref;

/// The most bytes of a text.
pub(super) const TROUBLE_MOST: usize = 400;

impl<N: Deref<Target = Node>> Client<N> {
    /// Why the store does not serve a limit, or what is wrong although it does; empty if nothing
    /// is. The text names the command that failed and the key that it was about, and ends with the
    /// server's own words. With several limits it begins with the limit's name:
    ///
    /// ```text
    /// the server is out of memory (EVALSHA, key "192.0.2.1"): OOM command not allowed when ...
    /// ```
    pub fn trouble(&self) -> Text<TROUBLE_MOST> {
        let mut text = Text::new();
        if let Some(fault) = self.fault {
            let command = self.session.failed_command();
            append(&mut text, fault, command, &Text::new(), self.words.as_bytes());
        } else if !self.limits.append_trouble(&mut text) && self.circuit() == Circuit::Open {
            text.append(self.silence());
            if let Some(LinkError::Tls(why)) = self.broken {
                text.append(": ");
                text.append(why.as_str());
            }
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
                false if self.link.is_tls() => {
                    "the server closed the connection before it answered"
                }
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

impl<N: Deref<Target = Node>> Limits<N> {
    /// Why the store refuses a limit's questions, or what is wrong although it does not. Returns
    /// whether there is anything.
    pub(super) fn append_trouble(&self, text: &mut Text<TROUBLE_MOST>) -> bool {
        let faulty = self.iter().find_map(|limit| Some((limit, limit.fault.as_ref()?)));
        if let Some((limit, refused)) = faulty {
            self.append_name(text, &limit.node);
            append(text, refused.fault, "EVALSHA", &refused.key, refused.words.as_bytes());
        } else if let Some((node, notice)) = self.notice() {
            self.append_name(text, node);
            text.append(notice);
        }
        !text.is_empty()
    }

    /// [`Client::notice`].
    pub(super) fn notice(&self) -> Option<(&N, &'static str)> {
        self.iter().find_map(|limit| Some((&limit.node, limit.driver.notice(&limit.node)?)))
    }

    fn append_name(&self, text: &mut Text<TROUBLE_MOST>, node: &Node) {
        if self.iter().nth(1).is_some() {
            text.append("limit ");
            text.add(node.name());
            text.append(": ");
        }
    }
}

fn append(
    text: &mut Text<TROUBLE_MOST>,
    fault: Fault,
    command: &str,
    key: &Text<KEY_SHOWN>,
    words: &[u8],
) {
    text.append(fault.words(words));
    if !command.is_empty() {
        text.append(" (");
        text.append(command);
        append_key(text, key);
        text.append(")");
    }
    if !words.is_empty() {
        text.append(": ");
        text.add(words);
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
