//! A request of a log, and the parts of its first line.

use std::borrow::Cow;
use std::net::IpAddr;

/// One request.
#[derive(Debug, Default)]
pub struct Request<'a> {
    /// Nanoseconds of Unix time (of a trace: of its own clock).
    pub time: u64,
    /// The client, or a trace's key.
    pub key: Key<'a>,
    /// Permits.
    pub cost: u64,
    /// The name or number of its class in the policy; empty for a request without a class.
    pub class: Cow<'a, [u8]>,
    /// The requested path; empty if the line has none, or the caller needs none.
    pub path: Cow<'a, [u8]>,
    /// The user agent; empty in the same cases as the path.
    pub agent: Cow<'a, [u8]>,
    /// The method; empty in the same cases as the path.
    pub method: Cow<'a, [u8]>,
}

/// What the requests of one client have in common.
#[derive(Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// An address, by whatever text the log has it.
    Address(IpAddr),
    /// A text: a key of a trace, or of a field that the caller has named.
    Text(Cow<'a, [u8]>),
}

impl Default for Key<'_> {
    fn default() -> Self {
        Key::Text(Cow::Borrowed(b""))
    }
}

/// Why a line is no request.
pub type WrongLine = Cow<'static, str>;

/// `GET /path HTTP/1.1` as its method; empty if the line has one word.
pub(super) fn method_of(request: &[u8]) -> &[u8] {
    request.iter().position(|&byte| byte == b' ').map_or(b"", |end| &request[..end])
}

/// `GET /path HTTP/1.1` as its path.
pub(super) fn path_of(request: &[u8]) -> &[u8] {
    let mut words = request.split(|&byte| byte == b' ');
    match (words.next(), words.next()) {
        (Some(_), Some(path)) => origin_form(path),
        (Some(only), None) => origin_form(only),
        _ => b"",
    }
}

/// The path and query of `https://host:443/path?query`; another text as it is.
pub(super) fn origin_form(target: &[u8]) -> &[u8] {
    let Some(at) = memchr::memmem::find(target, b"://") else { return target };
    if !target[..at].iter().all(u8::is_ascii_alphabetic) {
        return target;
    }
    let authority = &target[at + 3..];
    authority
        .iter()
        .position(|&byte| byte == b'/' || byte == b'?')
        .map_or(b"/", |path| &authority[path..])
}

/// The next text in quotes, and what follows it.
pub(super) fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let begin = memchr::memchr(b'"', text)? + 1;
    let end = begin + memchr::memchr(b'"', &text[begin..])?;
    Some((&text[begin..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_with_a_scheme_and_a_host_are_their_paths() {
        for (target, path) in [
            ("/p", "/p"),
            ("https://www.example.com:443/p?q", "/p?q"),
            ("http://www.example.com", "/"),
            ("http://www.example.com?q", "?q"),
            ("/go?to=http://a/b", "/go?to=http://a/b"),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(origin_form(target.as_bytes())), path, "{target}");
        }
    }
}
