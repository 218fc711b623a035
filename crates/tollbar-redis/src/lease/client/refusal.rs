//! Why the store refuses a limit's questions, in words for the operator.

use super::call::Limits;
use super::limit::{Limit, KEY_SHOWN};
use crate::lease::node::Node;
use crate::redis::{Fault, Text};
use core::ops::Deref;

/// The most bytes of a text.
pub(super) const TROUBLE_MOST: usize = 400;

/// Appends why the store refuses the questions of a limit, or of that of `only`, or what is wrong
/// although it does not. Returns whether there is anything.
pub(super) fn append_trouble<N: Deref<Target = Node>>(
    limits: &Limits<N>,
    only: Option<&Node>,
    text: &mut Text<TROUBLE_MOST>,
) -> bool {
    let faulty = limits.of(only).find_map(|limit| Some((limit, limit.fault.as_ref()?)));
    if let Some((limit, refused)) = faulty {
        append_name(limits.of(only), text, &limit.node);
        append(text, refused.fault, "EVALSHA", &refused.key, refused.words.as_bytes());
    } else if let Some((node, notice)) = limits.notice(only) {
        append_name(limits.of(only), text, node);
        text.append(notice);
    }
    !text.is_empty()
}

/// Appends the name of the limit if the text is about one of several.
fn append_name<'a, N: 'a>(
    mut limits: impl Iterator<Item = &'a Limit<N>>,
    text: &mut Text<TROUBLE_MOST>,
    node: &Node,
) {
    if limits.nth(1).is_some() {
        text.append("limit ");
        text.add(node.name());
        text.append(": ");
    }
}

/// Appends what a refusal means, then its command and key in brackets, then the store's own text.
pub(super) fn append(
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
