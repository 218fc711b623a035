use crate::redis::resp::{decode, Full, Malformed, Reply, Writer, DEPTH_MOST};
use proptest::collection::vec;
use proptest::prelude::*;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// A reply that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Simple(String),
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Owned>),
}

fn owned(reply: Reply<'_>) -> Owned {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
    match reply {
        Reply::Simple(line) => Owned::Simple(text(line)),
        Reply::Error(line) => Owned::Error(text(line)),
        Reply::Int(value) => Owned::Int(value),
        Reply::Bulk(bytes) => Owned::Bulk(bytes.to_vec()),
        Reply::Nil => Owned::Nil,
        Reply::Array(items) => Owned::Array(items.map(owned).collect()),
    }
}

fn encode(reply: &Owned, out: &mut Vec<u8>) {
    match reply {
        Owned::Simple(line) => out.extend(format!("+{line}\r\n").bytes()),
        Owned::Error(line) => out.extend(format!("-{line}\r\n").bytes()),
        Owned::Int(value) => out.extend(format!(":{value}\r\n").bytes()),
        Owned::Bulk(bytes) => {
            out.extend(format!("${}\r\n", bytes.len()).bytes());
            out.extend(bytes);
            out.extend(b"\r\n");
        }
        Owned::Nil => out.extend(b"$-1\r\n"),
        Owned::Array(items) => {
            out.extend(format!("*{}\r\n", items.len()).bytes());
            items.iter().for_each(|item| encode(item, out));
        }
    }
}

fn replies() -> impl Strategy<Value = Owned> {
    let leaf = prop_oneof![
        "[ -~]{0,20}".prop_map(Owned::Simple),
        "[A-Z]{1,8} [ -~]{0,20}".prop_map(Owned::Error),
        any::<i64>().prop_map(Owned::Int),
        vec(any::<u8>(), 0..40).prop_map(Owned::Bulk),
        Just(Owned::Nil),
    ];
    leaf.prop_recursive(DEPTH_MOST, 20, 5, |inner| vec(inner, 0..5).prop_map(Owned::Array))
}

/// Decodes all replies in `bytes`, given in pieces of these sizes.
fn read_in_pieces(bytes: &[u8], sizes: &[usize]) -> Result<Vec<Owned>, Malformed> {
    let (mut seen, mut found) = (Vec::new(), Vec::new());
    let (mut rest, mut sizes) = (bytes, sizes.iter().copied().cycle());
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
        seen.extend(piece);
        rest = after;
        while let Some((reply, len)) = decode(&seen)? {
            found.push(owned(reply));
            seen.drain(..len);
        }
    }
    assert!(seen.is_empty(), "left over: {seen:?}");
    Ok(found)
}

proptest! {
    #[test]
    fn any_splitting_gives_the_same_replies(sent in vec(replies(), 1..6), sizes in vec(1_usize..30, 1..8)) {
        let mut bytes = Vec::new();
        sent.iter().for_each(|reply| encode(reply, &mut bytes));
        prop_assert_eq!(read_in_pieces(&bytes, &sizes), Ok(sent.clone()));
        prop_assert_eq!(read_in_pieces(&bytes, &[1]), Ok(sent));
    }

    /// Random bytes cause no panic, no length beyond the input, and no other result when more bytes
    /// follow.
    #[test]
    fn any_bytes_are_a_reply_or_not(bytes in vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'$'), Just(b'*'), Just(b':'),
            Just(b'-'), Just(b'+'), b'0'..=b'9', any::<u8>()], 0..60)) {
        let mut settled = None;
        for len in 0..=bytes.len() {
            let decoded = decode(&bytes[..len]).map(|found| found.map(|(reply, len)| (owned(reply), len)));
            if let Ok(Some((_, used))) = &decoded {
                prop_assert!(*used <= len && *used > 0);
            }
            if let Some(before) = &settled {
                prop_assert_eq!(before, &decoded);
            } else if decoded != Ok(None) {
                settled = Some(decoded);
            }
        }
    }

    #[test]
    fn a_command_is_the_array_of_its_strings(parts in vec(vec(any::<u8>(), 0..20), 1..6), number: i64) {
        let mut block = [0_u8; 400];
        let mut writer = Writer::new(&mut block);
        writer.command(parts.len() + 1);
        for part in &parts {
            writer.bulk(part);
        }
        let len = writer.int(number).finish().unwrap();
        let expected: Vec<Owned> = parts.into_iter().chain([number.to_string().into_bytes()]).map(Owned::Bulk).collect();
        prop_assert_eq!(decode(&block[..len]).unwrap().map(|(reply, len)| (owned(reply), len)), Some((Owned::Array(expected), len)));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for room in 0..23 {
        let mut block = std::vec![0_u8; room];
        // *1 $4 PING
        assert_eq!(
            Writer::new(&mut block).command(1).bulk(b"PINGPONGPING").finish(),
            Err(Full),
            "{room}"
        );
    }
    assert_eq!(Writer::new(&mut [0; 23]).command(1).bulk(b"PINGPONGPING").finish(), Ok(23));
}

#[test]
fn malformed_bytes_are_an_error_at_once() {
    let deep = "*1\r\n".repeat(DEPTH_MOST as usize + 1);
    let cases = [
        "HTTP/1.1 400 Bad Request\r\n",
        "%1\r\n",
        "_\r\n",
        ":\r\n",
        ":-\r\n",
        ":1x",
        ":+1\r\n",
        ":9223372036854775808\r\n",
        "$-2\r\n",
        "$x",
        "$536870913\r\n",
        "$3\r\nabcd",
        "$3\r\nabc\n",
        "*-2\r\n",
        "*1048577\r\n",
        "*1\r\n?",
        "+a\nb",
        "+a\rb",
        ":1234567890123456789012",
        &deep,
    ];
    for bytes in cases {
        assert_eq!(decode(bytes.as_bytes()), Err(Malformed), "{bytes:?}");
    }
    for bytes in [
        "",
        "+",
        "+OK",
        "+OK\r",
        ":1",
        ":-",
        "$",
        "$5",
        "$3\r\nab",
        "$3\r\nabc",
        "$3\r\nabc\r",
        "*2\r\n:1\r\n",
        "*",
    ] {
        assert_eq!(decode(bytes.as_bytes()), Ok(None), "{bytes:?}");
    }
    assert_eq!(decode(b":-9223372036854775808\r\n"), Ok(Some((Reply::Int(i64::MIN), 23))));
    assert_eq!(decode(b"*-1\r\n"), Ok(Some((Reply::Nil, 5))));
}
