//! Tests of URLs, RESP2 and sessions without a Redis server.

mod resp;
mod session;
mod url;

use super::fault::{Fault, Why};
use super::text::Text;

#[test]
fn error_replies_are_distinguished() {
    let cases: [(&str, Fault); 24] = [
        ("NOSCRIPT No matching script. Please use EVAL.", Fault::NoScript),
        ("READONLY You can't write against a read only replica.", Fault::Unavailable(Why::ReadOnly)),
        ("LOADING Redis is loading the dataset in memory", Fault::Unavailable(Why::Loading)),
        ("CLUSTERDOWN Hash slot not served", Fault::Unavailable(Why::ClusterDown)),
        ("OOM command not allowed when used memory > 'maxmemory'.", Fault::Unavailable(Why::OutOfMemory)),
        ("BUSY Redis is busy running a script.", Fault::Unavailable(Why::Busy)),
        ("MASTERDOWN Link with MASTER is down", Fault::Unavailable(Why::MasterDown)),
        ("NOREPLICAS Not enough good replicas to write.", Fault::Unavailable(Why::NoReplicas)),
        ("TRYAGAIN Multiple keys request during rehashing of slot", Fault::Unavailable(Why::TryAgain)),
        ("MISCONF Redis is configured to save RDB snapshots", Fault::Unavailable(Why::NotSaved)),
        ("ERR max number of clients reached", Fault::Unavailable(Why::TooManyClients)),
        ("NOAUTH Authentication required.", Fault::Refused),
        ("WRONGPASS invalid username-password pair or user is disabled.", Fault::Refused),
        ("NOPERM this user has no permissions to run the 'evalsha' command", Fault::Refused),
        ("DENIED Redis is running in protected mode", Fault::Refused),
        ("ERR AUTH <password> called without any password configured for the default user.", Fault::Refused),
        ("ERR invalid password", Fault::Refused),
        ("ERR The user executing the script can't run this command or subcommand", Fault::Refused),
        ("ERR ACL failure in script: User a has no permissions to run the 'set' command", Fault::Refused),
        ("MOVED 3999 127.0.0.1:6381", Fault::Moved),
        ("ASK 3999 127.0.0.1:6381", Fault::Moved),
        ("CROSSSLOT Keys in request don't hash to the same slot", Fault::Moved),
        (
            "ERR Error running script (call to f_0a): @user_script:1: @user_script: 1: -READONLY You can't write",
            Fault::Unavailable(Why::ReadOnly),
        ),
        ("ERR unknown command 'EVALSHA'", Fault::Script),
    ];
    for (text, fault) in cases {
        assert_eq!(Fault::of(text.as_bytes()), fault, "{text}");
    }
    // A prefix of a code, or a text without an inner error, is no known error.
    for text in
        ["", "READONLYX", "ERR", "ERR Error running script (call to f_0a): @user_script:1: oops"]
    {
        assert_eq!(Fault::of(text.as_bytes()), Fault::Script, "{text}");
    }
}

#[test]
fn text_from_outside_is_printable_and_short() {
    assert_eq!(Text::<8>::printable(b"a\x1b[2J\nb\xffcdef").as_str(), "a?[2J?b?");
    assert!(Text::<8>::new().is_empty());
}
