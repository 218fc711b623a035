//! Starts the program as a reader would, and sends it requests over TCP.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// The running program; it ends with this value.
struct Program {
    child: Child,
    address: String,
}

impl Program {
    fn start() -> Program {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollbar-example-actix"))
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().to_string();
        Program { child, address }
    }

    /// The status, the header fields and the body of the answer to one request.
    fn ask(&self, fields: &str) -> (u16, HashMap<String, String>, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: example\r\nConnection: close\r\n{fields}\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head[9..12].parse().unwrap();
        let fields = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        (
            status,
            fields.map(|(name, value)| (name.to_lowercase(), value.to_string())).collect(),
            body.to_string(),
        )
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn three_of_five_requests_of_an_address_pass() {
    let program = Program::start();
    for left in [2, 1, 0] {
        let (status, fields, body) = program.ask("");
        assert_eq!((status, body.as_str()), (200, "welcome\n"));
        assert_eq!(fields["ratelimit-policy"], "\"address\";q=3;w=60");
        assert!(fields["ratelimit"].starts_with(&format!("\"address\";r={left};t=")), "{fields:?}");
        assert!(!fields.contains_key("retry-after"));
    }
    // A key that the service has not given out changes nothing.
    for invented in ["", "X-Api-Key: eve-0000\r\n"] {
        let (status, fields, body) = program.ask(invented);
        assert_eq!(status, 429);
        let wait: u64 = fields["retry-after"].parse().unwrap();
        assert!((1..=20).contains(&wait), "{wait}");
        assert_eq!(fields["content-type"], "application/problem+json");
        assert!(body.contains("\"status\":429") && body.contains("\"address\""), "{body}");
    }
}

#[test]
fn five_of_nine_requests_of_each_api_key_pass() {
    let program = Program::start();
    for key in ["ann-7f3a", "bob-91c2"] {
        // 1000 a day bring a permit in 86 s: none comes back meanwhile.
        let statuses: Vec<u16> =
            (0..9).map(|_| program.ask(&format!("X-Api-Key: {key}\r\n")).0).collect();
        assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429, 429, 429]);
    }
    // The address still has its own permits.
    assert_eq!(program.ask("").0, 200);
}
