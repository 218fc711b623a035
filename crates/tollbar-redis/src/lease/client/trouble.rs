//! What is wrong with the store, in words for the operator.

use super::refusal::{append, append_trouble, TROUBLE_MOST};
use super::Client;
use crate::lease::node::Node;
use crate::lease::stats::Circuit;
use crate::redis::{LinkError, NameFault, Operation, Text};
use core::ops::Deref;

impl<N: Deref<Target = Node>> Client<N> {
    /// Why the store does not serve a limit, or what is wrong although it does; empty if nothing
    /// is. The text names the command that failed and the key that it was about, and ends with the
    /// server's own words. With several limits it begins with the limit's name:
    ///
    /// ```text
    /// the server is out of memory (EVALSHA, key "192.0.2.1"): OOM command not allowed when ...
    /// ```
    pub fn trouble(&self) -> Text<TROUBLE_MOST> {
        self.trouble_of(None)
    }

    /// [`Client::trouble`], only as far as it is about the limit of a node.
    pub fn trouble_with(&self, node: &Node) -> Text<TROUBLE_MOST> {
        self.trouble_of(Some(node))
    }

    fn trouble_of(&self, only: Option<&Node>) -> Text<TROUBLE_MOST> {
        let mut text = Text::new();
        if let Some(fault) = self.fault {
            let command = self.session.failed_command();
            append(&mut text, fault, command, &Text::new(), self.words.as_bytes());
        } else if !append_trouble(&self.limits, only, &mut text) && self.is_open(only) {
            text.append(self.silence());
            if let Some(LinkError::Tls(why)) = self.broken {
                text.append(": ");
                text.append(why.as_str());
            }
        }
        text
    }

    /// Whether a limit's circuit is open.
    fn is_open(&self, only: Option<&Node>) -> bool {
        self.limits.of(only).any(|limit| limit.node.circuit(limit.node.now()) == Circuit::Open)
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
