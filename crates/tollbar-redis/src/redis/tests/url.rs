use crate::redis::{Address, Url, UrlFault};
use std::format;
use std::prelude::v1::*;

/// A URL as `address user password db`.
fn read(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) => {
            let address = match &url.address {
                Address::Tcp(hosts) => (0..hosts.len())
                    .map(|n| hosts.get(n).expect("a host"))
                    .map(|(host, port)| format!("{host} {port}"))
                    .collect::<Vec<_>>()
                    .join(", "),
                Address::Unix(path) => format!("{path}"),
            };
            let mut text = format!("{address} [{}] [{}] {}", url.user, url.password, url.db);
            if url.is_tls {
                text.push_str(" tls");
            }
            if url.is_password_file {
                text.push_str(" file");
            }
            if url.timeout != 0 {
                text.push_str(&format!(" timeout {}", url.timeout));
            }
            text
        }
        Err(why) => format!("{} {:?}", why.column, why.fault),
    }
}

#[test]
fn urls_are_read() {
    for (text, expected) in [
        ("redis://localhost", "localhost 6379 [] [] 0"),
        ("redis://localhost/", "localhost 6379 [] [] 0"),
        ("valkey://cache-1.example.com:7000/3", "cache-1.example.com 7000 [] [] 3"),
        ("redis://127.0.0.1:1", "127.0.0.1 1 [] [] 0"),
        ("redis://[::1]", "::1 6379 [] [] 0"),
        ("redis://[2001:db8::1]:6380/15", "2001:db8::1 6380 [] [] 15"),
        ("redis://:secret@h", "h 6379 [] [secret] 0"),
        ("redis://me@h", "h 6379 [me] [] 0"),
        ("redis://me:p%40ss%3a%2F%25@h:65535/0", "h 65535 [me] [p@ss:/%] 0"),
        ("redis://me:a:b@h", "h 6379 [me] [a:b] 0"),
        ("redis://%C3%A9:x@h", "h 6379 [é] [x] 0"),
        ("redis://a,b:7000,[::1]:7001,[::2]/3", "a 6379, b 7000, ::1 7001, ::2 6379 [] [] 3"),
        ("rediss://me:x@a,b", "a 6379, b 6379 [me] [x] 0 tls"),
        ("valkeys://h", "h 6379 [] [] 0 tls"),
        ("redis://h?db=3", "h 6379 [] [] 3"),
        ("redis://h/?user=a@b&password=c/d", "h 6379 [a@b] [c/d] 0"),
        ("redis://me@h/2?password_file=/run/secrets/p", "h 6379 [me] [/run/secrets/p] 2 file"),
        ("redis://h?timeout=250ms", "h 6379 [] [] 0 timeout 250000000"),
        ("unix:/s?timeout=3600s&db=1", "/s [] [] 1 timeout 3600000000000"),
        ("unix:/run/redis.sock", "/run/redis.sock [] [] 0"),
        ("unix:///run/redis.sock", "/run/redis.sock [] [] 0"),
        ("unix:/a%3Fb?db=2&user=me&password=a%26b", "/a?b [me] [a&b] 2"),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_column() {
    let long = |n: usize| "a".repeat(n);
    for (text, expected) in [
        ("", "1 Scheme"),
        ("http://h", "1 Scheme"),
        ("redis:/h", "1 Scheme"),
        ("rediss:h", "1 Scheme"),
        ("redis-sentinel://h/mymaster", "1 Sentinel"),
        ("redis-cluster://h", "1 Cluster"),
        ("redis://", "9 Host"),
        ("redis://:6379", "9 Host"),
        ("redis:///1", "9 Host"),
        ("redis://me@", "12 Host"),
        ("redis://a b", "10 HostByte"),
        ("redis://[::1", "13 HostByte"),
        ("redis://[]", "9 Host"),
        ("redis://[::1]x", "14 HostByte"),
        ("redis://h:", "11 Port"),
        ("redis://h:0", "11 Port"),
        ("redis://h:65536", "11 Port"),
        ("redis://h:99999999999", "11 Port"),
        ("redis://h:12x", "13 End"),
        ("redis://h/x", "11 Db"),
        ("redis://h/4294967296", "11 Db"),
        ("redis://h/1?tls=1", "13 Option"),
        ("redis://h/1?db=1", "13 Option"),
        ("redis://me@h?user=me", "14 Option"),
        ("redis://h?password=a&password_file=/b", "22 Option"),
        ("redis://a,", "11 Host"),
        ("redis://a,,b", "11 Host"),
        ("redis://a:1,b:0", "15 Port"),
        ("redis://a, b", "11 HostByte"),
        ("redis://h?timeout=1", "19 Timeout"),
        ("redis://h?timeout=0ms", "19 Timeout"),
        ("redis://h?timeout=3601s", "19 Timeout"),
        ("redis://h?timeout=1sx", "21 End"),
        ("redis://:%4@h", "10 Escape"),
        ("redis://:%00@h", "10 Escape"),
        ("redis://:ab%ff@h", "10 Escape"),
        ("unix:relative", "6 Path"),
        ("unix://host/path", "6 Path"),
        ("unix:", "6 Path"),
        ("unix:/s?", "9 Option"),
        ("unix:/s?timeout=1", "17 Timeout"),
        ("unix:/s?db=1&db=2", "14 Option"),
        ("unix:/s?db=", "12 Db"),
        ("unix:/s?db=1x", "13 End"),
        (&format!("unix:/{}", long(107)), "113 TooLong"),
        (&format!("redis://{}", long(256)), "264 TooLong"),
        (&format!("redis://{}:x@h", long(129)), "137 TooLong"),
        (&format!("redis://{}", [long(200), long(200), long(200)].join(",")), "409 TooLong"),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
    assert_eq!(read(&format!("unix:/{}", long(106))), format!("/{} [] [] 0", long(106)));
    let why = Url::parse("redis-cluster://h").unwrap_err();
    assert!(format!("{why}").contains("Cluster"), "{why}");
    assert_eq!(why.fault, UrlFault::Cluster);
}

#[test]
fn a_password_is_not_printed() {
    let shown = format!("{:?}", Url::parse("redis://me:hunter2@h/1").unwrap());
    assert!(shown.contains("me") && shown.contains("***") && !shown.contains("hunter2"), "{shown}");
}
