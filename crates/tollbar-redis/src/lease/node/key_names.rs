//! The names of a key: in the store, and in the table that decides while the store does not answer.

use crate::lease::ring::KEY_MOST;
use rapidhash::v3::{rapidhash_v3_inline, RapidSecrets};
use tollbar::table::PolicyId;

/// Writes the key's name in the store and returns its length. A key of at most [`KEY_MOST`] bytes
/// is its own name. The name of a longer key is `#` and two 64-bit hashes in hexadecimal, with
/// fixed seeds, so that all machines use the same name.
pub(super) fn store_key(key: &[u8], bytes: &mut [u8; KEY_MOST]) -> usize {
    const SECRETS: [RapidSecrets; 2] =
        [RapidSecrets::seed(0x746f_6c6c), RapidSecrets::seed(0x6261_7231)];
    if key.len() <= KEY_MOST {
        for (to, byte) in bytes.iter_mut().zip(key) {
            *to = *byte;
        }
        return key.len();
    }
    let hashes = SECRETS
        .iter()
        .flat_map(|secrets| rapidhash_v3_inline::<true, false, false>(key, secrets).to_be_bytes());
    let digits = hashes.flat_map(|byte| [byte >> 4, byte & 15]);
    let text = core::iter::once(b'#').chain(digits.map(|digit| {
        if digit < 10 {
            b'0' + digit
        } else {
            b'a' - 10 + digit
        }
    }));
    for (to, byte) in bytes.iter_mut().zip(text) {
        *to = byte;
    }
    33
}

/// The reserve's policy of a non-empty key.
pub(super) const KEYED: PolicyId = PolicyId::new(0);
/// The reserve's policy of the empty key, under which all requests share one limit.
pub(super) const SINGLE: PolicyId = PolicyId::new(1);

/// The reserve's policy and key. The table refuses empty keys, so the empty key is `*` under a
/// policy of its own.
pub(super) fn reserve_key(key: &[u8]) -> (PolicyId, &[u8]) {
    if key.is_empty() {
        (SINGLE, b"*")
    } else {
        (KEYED, key)
    }
}
