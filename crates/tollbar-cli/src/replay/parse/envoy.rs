//! Envoy's default line of text:
//! `[START_TIME] "METHOD PATH PROTOCOL" CODE FLAGS … "X-FORWARDED-FOR" "USER-AGENT" "REQUEST-ID" "AUTHORITY" "UPSTREAM"`.

use super::client;
use super::request::{method_of, path_of, quoted, Key, Request, WrongLine};
use crate::civil;
use std::borrow::Cow;

pub fn parse(line: &[u8], cut: bool) -> Result<Request<'_>, WrongLine> {
    if cut {
        return Err(Cow::Borrowed("longer than a mebibyte"));
    }
    let line = line.trim_ascii_start();
    let inside =
        line.strip_prefix(b"[").ok_or("the line does not begin with a time in brackets")?;
    let end = memchr::memchr(b']', inside).ok_or("the time does not end with a bracket")?;
    let time = civil::any(&inside[..end])?;
    let (request, rest) = quoted(&inside[end + 1..]).ok_or("no request in quotes")?;
    let (forwarded, rest) = quoted(rest).ok_or("no X-Forwarded-For in quotes after the request")?;
    let hop = client::last_hop(forwarded);
    if hop.is_empty() || hop == b"-" {
        return Err(Cow::Borrowed(
            "X-Forwarded-For is empty, and Envoy's default line has no other address",
        ));
    }
    let address = client::address(hop, "the last hop of X-Forwarded-For")?;
    let agent = quoted(rest).map_or(&b""[..], |(agent, _)| agent);
    Ok(Request {
        time,
        key: Key::Address(address),
        cost: 1,
        class: Cow::Borrowed(b""),
        path: Cow::Borrowed(path_of(request)),
        agent: Cow::Borrowed(agent),
        method: Cow::Borrowed(method_of(request)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_line() {
        let line = br#"[2015-05-17T10:05:03.250Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28, 192.0.2.7" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80""#;
        let request = parse(line, false).expect("a request");
        assert_eq!(request.time, 1_431_857_103_250_000_000);
        assert_eq!(request.key, Key::Address([192, 0, 2, 7].into()));
        assert_eq!(
            (&*request.path, &*request.agent),
            (&b"/api/v1/locations"[..], &b"nsq2http"[..])
        );
        for (line, why) in [
            (&b"x"[..], "begin"),
            (b"[2015", "end"),
            (b"[2015-05-17T10:05:03Z] 200", "request"),
            (b"[2015-05-17T10:05:03Z] \"GET / HTTP/1.1\" 200 - \"-\" \"agent\"", "empty"),
        ] {
            assert!(parse(line, false).expect_err("not a request").contains(why));
        }
    }
}
