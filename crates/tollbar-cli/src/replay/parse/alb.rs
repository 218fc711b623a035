//! AWS Application Load Balancer:
//! `TYPE TIME BALANCER CLIENT:PORT TARGET:PORT … "REQUEST" "AGENT" …`.

use super::client;
use super::prefixes::word;
use super::request::{method_of, path_of, quoted, Key, Request, WrongLine};
use crate::civil;
use std::borrow::Cow;

const TYPES: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];

pub fn parse(line: &[u8], cut: bool) -> Result<Request<'_>, WrongLine> {
    if cut {
        return Err(Cow::Borrowed("longer than a mebibyte"));
    }
    let short = || {
        Cow::Borrowed(
            "not the type, time, load balancer and client of an Application Load Balancer",
        )
    };
    let (kind, rest) = word(line).ok_or_else(short)?;
    let (time, rest) = word(rest).ok_or_else(short)?;
    let (_, rest) = word(rest).ok_or_else(short)?;
    let (client, rest) = word(rest).ok_or_else(short)?;
    if !TYPES.contains(&kind) {
        return Err(short());
    }
    let time = civil::rfc3339(time).map_err(Cow::Borrowed)?;
    let address = client::address(client, "the client")?;
    let (request, rest) = quoted(rest).ok_or(Cow::Borrowed("no request in quotes"))?;
    let agent = quoted(rest).map_or(&b""[..], |(agent, _)| agent);
    let [method, path, agent] = [method_of(request), path_of(request), agent].map(Cow::Borrowed);
    Ok(Request {
        time,
        key: Key::Address(address),
        cost: 1,
        path,
        agent,
        method,
        ..Request::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line() {
        let line = br#"https 2024-10-10T13:55:00.945958Z app/my-lb/50dc6c495c0c9188 192.0.2.1:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/p/0?q=1 HTTP/1.1" "curl/7.46.0" - - arn:x "Root=1""#;
        let request = parse(line, false).expect("a request");
        assert_eq!((request.time, &*request.path), (1_728_568_500_945_958_000, &b"/p/0?q=1"[..]));
        assert_eq!((&*request.method, &*request.agent), (&b"GET"[..], &b"curl/7.46.0"[..]));
        assert_eq!(request.key, Key::Address([192, 0, 2, 1].into()));
        for (line, why) in [
            ("https 2024", "not the type"),
            ("tcp 2024-10-10T13:55:00Z a 192.0.2.1:1 - ", "not the type"),
            ("https 2024-10-10T13:55 a 192.0.2.1:1 - ", "the minute"),
            ("https 2024-10-10T13:55:00Z a - - ", "no client: the client is"),
            ("https 2024-10-10T13:55:00Z a 192.0.2.1:1 - ", "no request"),
        ] {
            let wrong = parse(line.as_bytes(), false).expect_err(line);
            assert!(wrong.contains(why), "{line}: {wrong}");
        }
    }
}
