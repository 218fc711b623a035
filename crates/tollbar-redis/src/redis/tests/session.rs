use crate::redis::resp::Full;
use crate::redis::{Arg, Fault, Script, Session, Url, Why};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

static SCRIPTS: [Script; 2] =
    [Script { name: "one", source: "return 1" }, Script { name: "two", source: "return 2" }];
const SHA: &str = "0123456789012345678901234567890123456789";

fn session(url: &str) -> Session {
    Session::new(&Url::parse(url).unwrap(), &SCRIPTS, 2048, 0).unwrap()
}

/// Gives the session bytes, seven at a time.
fn give(session: &mut Session, bytes: &str) {
    for piece in bytes.as_bytes().chunks(7) {
        session.input()[..piece.len()].copy_from_slice(piece);
        session.read(piece.len());
    }
}

/// Takes the session's output, and returns the words of all commands.
fn sent(session: &mut Session) -> String {
    let bytes = session.output().to_vec();
    session.wrote(bytes.len());
    let text = String::from_utf8(bytes).unwrap();
    let words: Vec<&str> =
        text.split("\r\n").filter(|line| !line.starts_with(['*', '$'])).collect();
    words.join(" ").trim().to_string()
}

fn loaded() -> String {
    format!("$40\r\n{SHA}\r\n")
}

/// A session after its handshake.
fn ready(url: &str) -> Session {
    let mut session = session(url);
    session.begin();
    let _ = sent(&mut session);
    give(&mut session, &format!("+OK\r\n{}{}", loaded(), loaded()));
    assert!(session.next().is_none() && session.is_ready());
    session
}

#[test]
fn the_handshake_is_what_the_url_says() {
    for (url, greeting) in [
        ("redis://h", ""),
        ("redis://:pw@h", "AUTH pw "),
        ("redis://me:pw@h/7", "AUTH me pw SELECT 7 "),
    ] {
        let mut session = session(url);
        assert!(!session.is_ready() && session.output().is_empty());
        session.begin();
        let rest = "CLIENT SETNAME tollbar SCRIPT LOAD return 1 SCRIPT LOAD return 2";
        assert_eq!(sent(&mut session), format!("{greeting}{rest}"));
        assert_eq!(session.call(0, &[b"k"], &[]), Err(Full), "before the handshake is done");
        // The replies to AUTH and SELECT, and an error to SETNAME, which is ignored.
        give(
            &mut session,
            &"+OK\r\n".repeat(
                greeting.split(' ').filter(|word| ["AUTH", "SELECT"].contains(word)).count(),
            ),
        );
        give(&mut session, &format!("-ERR unknown command\r\n{}", loaded()));
        assert!(session.next().is_none() && !session.is_ready());
        give(&mut session, &loaded());
        assert!(session.next().is_none() && session.is_ready());
    }
}

#[test]
fn a_refused_handshake_is_reported_once() {
    for (replies, fault) in [
        ("-WRONGPASS invalid username-password pair\r\n", Fault::Refused),
        ("+OK\r\n+OK\r\n-LOADING Redis is loading\r\n", Fault::Unavailable(Why::Loading)),
        ("+OK\r\n+OK\r\n-NOPERM no script\r\n", Fault::Refused),
        ("+OK\r\n+OK\r\n$3\r\nabc\r\n", Fault::Protocol),
        ("-ERR max number of clients reached\r\n", Fault::Unavailable(Why::TooManyClients)),
        ("HTTP/1.1 400 Bad Request\r\n", Fault::Protocol),
    ] {
        let mut session = session("redis://:pw@h");
        session.begin();
        give(&mut session, replies);
        assert_eq!(session.next(), Some(Err(fault)), "{replies}");
        assert_eq!(session.next(), None);
        assert_eq!((session.fault(), session.is_ready()), (Some(fault), false));
        assert_eq!(session.call(0, &[], &[]), Err(Full));
        // A new connection begins again.
        session.begin();
        assert_eq!((session.fault(), session.error_text()), (None, ""));
    }
}

#[test]
fn answers_come_in_the_order_of_the_calls() {
    let mut session = ready("redis://h");
    session.call(0, &[b"a"], &[Arg::Int(-5), Arg::Bytes(b"x y")]).unwrap();
    session.call(1, &[], &[]).unwrap();
    assert_eq!(sent(&mut session), format!("EVALSHA {SHA} 1 a -5 x y EVALSHA {SHA} 0"));
    assert_eq!(session.outstanding(), 2);
    give(&mut session, "*3\r\n:7\r\n$2\r\nhi\r\n$-1\r\n-ERR oops: bad\r\n:9");
    let answer = session.next().unwrap().unwrap();
    assert_eq!((answer.len(), answer.int(0), answer.bytes(1)), (3, Some(7), Some(&b"hi"[..])));
    assert_eq!(
        (answer.int(1), answer.int(2), answer.int(3), answer.bytes(0)),
        (None, None, None, None)
    );
    assert_eq!(session.next(), Some(Err(Fault::Script)));
    assert_eq!((session.error_text(), session.outstanding()), ("ERR oops: bad", 0));
    assert_eq!(session.next(), None);
    // A reply without a command.
    give(&mut session, "\r\n");
    assert_eq!(session.next(), Some(Err(Fault::Protocol)));
}

#[test]
fn a_single_value_is_an_answer_of_one() {
    let mut session = ready("redis://h");
    session.call(0, &[], &[]).unwrap();
    give(&mut session, ":9\r\n");
    let answer = session.next().unwrap().unwrap();
    assert_eq!(
        (answer.len(), answer.is_empty(), answer.int(0), answer.int(1)),
        (1, false, Some(9), None)
    );
}

#[test]
fn a_forgotten_script_is_loaded_once_for_all_calls() {
    let mut session = ready("redis://h");
    for _ in 0..3 {
        session.call(1, &[b"k"], &[]).unwrap();
    }
    let _ = sent(&mut session);
    give(&mut session, &"-NOSCRIPT No matching script. Please use EVAL.\r\n".repeat(3));
    for _ in 0..3 {
        assert_eq!(session.next(), Some(Err(Fault::NoScript)));
    }
    session.call(1, &[b"k"], &[]).unwrap();
    assert_eq!(sent(&mut session), format!("SCRIPT LOAD return 2 EVALSHA {SHA} 1 k"));
    give(&mut session, &format!("{}:3\r\n", loaded()));
    assert_eq!(session.next().unwrap().unwrap().int(0), Some(3));
}

#[test]
fn a_load_waits_for_room() {
    let mut session = ready("redis://h");
    session.call(0, &[], &[]).unwrap();
    let _ = sent(&mut session);
    // The output is full and not sent.
    let filling = [b'x'; 900];
    while session.call(1, &[&filling], &[]).is_ok() {}
    while session.call(1, &[], &[]).is_ok() {}
    give(&mut session, "-NOSCRIPT No matching script.\r\n");
    assert_eq!(session.next(), Some(Err(Fault::NoScript)));
    assert_eq!(session.call(0, &[], &[]), Err(Full));
    let _ = sent(&mut session);
    session.call(0, &[], &[]).unwrap();
    assert_eq!(sent(&mut session), format!("SCRIPT LOAD return 1 EVALSHA {SHA} 0"));
}

#[test]
fn calls_without_a_reply_are_bounded() {
    let mut session = ready("redis://h");
    let mut calls = 0;
    while session.call(0, &[], &[]).is_ok() {
        calls += 1;
        let _ = sent(&mut session);
    }
    assert_eq!((calls, session.outstanding()), (128, 128));
    give(&mut session, ":1\r\n");
    assert!(session.next().unwrap().is_ok());
    assert_eq!((session.call(0, &[], &[]), session.call(0, &[], &[])), (Ok(()), Err(Full)));
}

#[test]
fn a_reply_that_does_not_fit_ends_it() {
    let mut session = ready("redis://h");
    session.call(0, &[], &[]).unwrap();
    give(&mut session, "$20000\r\n");
    while !session.input().is_empty() {
        let n = session.input().len();
        session.read(n);
        assert!(session.next().is_none_or(|result| result == Err(Fault::Protocol)));
    }
    assert_eq!(session.next(), None);
    assert_eq!(session.fault(), Some(Fault::Protocol));
}

#[test]
fn a_moved_key_names_its_node() {
    let mut session = ready("redis://h");
    session.call(0, &[b"k"], &[]).unwrap();
    give(&mut session, "-MOVED 3999 10.0.0.7:6381\r\n");
    assert_eq!(session.next(), Some(Err(Fault::Moved)));
    assert!(session.error_text().contains("10.0.0.7:6381"));
}

#[test]
fn nothing_secret_is_printed() {
    let mut session = session("redis://me:hunter2@h");
    session.begin();
    assert!(!format!("{session:?}").contains("hunter2"));
}
