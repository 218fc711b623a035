use super::*;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

fn read(text: &str) -> Option<String> {
    parse(text.as_bytes()).map(|address| address.to_string())
}

/// B3, A5: what proxies write for one address is one address.
#[test]
fn addresses_with_what_servers_add() {
    for address in
        ["192.0.2.1", "2001:db8::1", "::1", "64:ff9b::192.0.2.1", "1::", "255.255.255.255"]
    {
        let alone: IpAddr = address.parse().expect(address);
        let mut texts: Vec<String> =
            [address.to_string(), format!(" {address}\t"), format!("[{address}]")].into();
        for port in ["0", "80", "00443", "65535"] {
            texts.push(format!("[{address}]:{port}"));
            if alone.is_ipv4() {
                texts.push(format!("{address}:{port}"));
                texts.push(format!("[::ffff:{address}]:{port}"));
                texts.push(format!("::ffff:{address}"));
            } else {
                texts.push(format!("[{address}%eth0]:{port}"));
                texts.push(format!("{address}%25"));
            }
        }
        for text in texts {
            assert_eq!(parse(text.as_bytes()), Some(alone), "{text}");
        }
    }
}

#[test]
fn texts_that_are_no_address() {
    for text in [
        "",
        " ",
        "-",
        "unknown",
        "localhost:80",
        "192.0.2",
        "192.0.2.1.5",
        "192.0.2.256",
        "192.0.2.1:",
        "192.0.2.1:65536",
        "192.0.2.1:000000080",
        "192.0.2.1:+8",
        "192.0.2.1:80:80",
        "192.0.2.1%eth0",
        "192.0.2.1/32",
        ":80",
        "[",
        "[]",
        "[192.0.2.1",
        "[2001:db8::1]80",
        "[2001:db8::1]:",
        "[2001:db8::1]:80:1",
        "[2001:db8::1]]",
        "[[2001:db8::1]]",
        "2001:db8::1]",
        "fe80::1%",
        "1::2::3",
        "::ffff:192.0.2.300",
        "192.0.2.1, 192.0.2.2",
        "192.0.2.1\0",
        "caf\u{e9}",
        "2001:0db8:0000:0000:0000:0000:0000:0000:0000:0000",
    ] {
        assert_eq!(read(text), None, "{text:?}");
    }
    assert_eq!(parse(b"\xff\xfe"), None);
}

#[test]
fn addresses_of_a_translator_stand_for_ipv4() {
    let of = |text: &str| translated(text.parse().expect(text)).to_string();
    for (text, address) in [
        ("64:ff9b::192.0.2.1", "192.0.2.1"),
        ("64:ff9b::", "0.0.0.0"),
        ("64:ff9b::ffff:ffff", "255.255.255.255"),
        ("64:ff9b::1:0:0", "64:ff9b::1:0:0"),
        ("64:ff9b:1::192.0.2.1", "64:ff9b:1::c000:201"),
        ("64:ff9a::192.0.2.1", "64:ff9a::c000:201"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
    ] {
        assert_eq!(of(text), address, "{text}");
    }
}

fn found(peer: &str, trusted: &[&str], headers: &[&str]) -> String {
    let trusted: Vec<Network> =
        trusted.iter().map(|text| Network::parse(text.as_bytes()).expect(text)).collect();
    let forwarded = headers.iter().rev().map(|value| value.as_bytes());
    let client =
        client(Peer::parse(peer.as_bytes()).expect(peer), trusted.iter().copied(), forwarded);
    client.map_or("none".to_string(), |client| client.to_string())
}

#[test]
fn the_client_is_the_rightmost_hop_that_is_not_trusted() {
    let proxies = ["10.0.0.0/8", "2001:db8::/32"];
    for (peer, headers, client) in [
        ("192.0.2.1", &["198.51.100.7"][..], "192.0.2.1"), // a stranger's header counts for nothing
        ("10.0.0.1", &[], "10.0.0.1"),
        ("10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", &["1.1.1.1, 198.51.100.7, 10.9.9.9"], "198.51.100.7"), // what the client wrote stands at the left
        ("10.0.0.1", &["1.1.1.1", "198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", &["198.51.100.7, nonsense, 10.9.9.9"], "10.9.9.9"),
        ("10.0.0.1", &["198.51.100.7,"], "10.0.0.1"),
        ("10.0.0.1:80", &["198.51.100.7:4711"], "198.51.100.7"),
        ("::ffff:10.0.0.1", &["198.51.100.7:4711"], "198.51.100.7"),
        ("2001:db8::1", &["[2001:db9::2]:80"], "2001:db9::2"),
        ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        // A translator's address is no proxy's, whatever IPv4 address is in it.
        ("64:ff9b::10.0.0.1", &["198.51.100.7"], "64:ff9b::a00:1"),
        // A Unix socket is trusted only by its own word.
        ("unix:", &["198.51.100.7"], "none"),
        ("", &["198.51.100.7"], "none"),
    ] {
        assert_eq!(found(peer, &proxies, headers), client, "{peer} {headers:?}");
    }
    assert_eq!(found("10.0.0.1", &[], &["198.51.100.7"]), "10.0.0.1");
    for socket in ["", "@", "@name", "unix:", "unix:/run/a"] {
        assert_eq!(found(socket, &["unix:"], &["1.1.1.1, 198.51.100.7"]), "198.51.100.7");
        assert_eq!(found(socket, &["unix:"], &[]), "none");
    }
    assert_eq!(found("10.0.0.1", &["unix:"], &["198.51.100.7"]), "10.0.0.1");
    assert_eq!(Peer::parse(b"localhost"), None);
}

#[test]
fn networks() {
    let has = |network: &str, address: &str| {
        Network::parse(network.as_bytes()).expect(network).contains(address.parse().expect(address))
    };
    assert!(has("10.0.0.0/8", "10.255.0.1") && !has("10.0.0.0/8", "11.0.0.1"));
    assert!(has("0.0.0.0/0", "1.2.3.4") && !has("0.0.0.0/0", "::1") && has("::/0", "::1"));
    assert!(has("192.0.2.1", "::ffff:192.0.2.1") && !has("192.0.2.1", "192.0.2.2"));
    assert!(has("2001:db8::/33", "2001:db8:7fff::1") && !has("2001:db8::/33", "2001:db8:8000::1"));
    assert!(!has("unix:", "0.0.0.0") && !Network::UNIX.is_everything());
    for text in [
        "10.0.0.1/8",
        "10.0.0.0/33",
        "::/129",
        "10.0.0.0/",
        "10.0.0.0/+8",
        "10.0.0.0/8/8",
        "host",
        "unix",
        "",
    ] {
        assert_eq!(Network::parse(text.as_bytes()), None, "{text}");
    }
}
