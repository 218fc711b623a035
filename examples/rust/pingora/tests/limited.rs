//! The program, started as a reader would start it, before a server that counts its requests.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The running proxy; it ends with this value.
struct Program {
    child: Child,
    address: String,
    served: Arc<AtomicUsize>,
}

impl Program {
    fn start() -> Program {
        let (upstream, served) = upstream();
        // The proxy does not report a port that the kernel chose, so the test chooses a free one.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let child = Command::new(env!("CARGO_BIN_EXE_tollbar-example-pingora"))
            .args([&address, &upstream])
            .spawn()
            .unwrap();
        let program = Program { child, address, served };
        let end = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(&program.address).is_err() {
            assert!(Instant::now() < end, "the proxy does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        program
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

/// The address of a server, and the number of requests that it has answered. It closes each
/// connection after one.
fn upstream() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&served);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = BufReader::new(stream.try_clone().unwrap()).lines();
            if head.map_while(Result::ok).take_while(|line| !line.is_empty()).count() > 0 {
                counter.fetch_add(1, Ordering::Relaxed);
                let _ = stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nwelcome\n",
                );
            }
        }
    });
    (address, served)
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
    // A key that the proxy does not know changes nothing.
    for invented in ["", "X-Api-Key: eve-0000\r\n"] {
        let (status, fields, body) = program.ask(invented);
        assert_eq!(status, 429);
        let wait: u64 = fields["retry-after"].parse().unwrap();
        assert!((1..=20).contains(&wait), "{wait}");
        assert_eq!(fields["content-type"], "application/problem+json");
        assert!(body.contains("\"status\":429") && body.contains("\"address\""), "{body}");
    }
    assert_eq!(program.served.load(Ordering::Relaxed), 3);
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
    assert_eq!(program.served.load(Ordering::Relaxed), 11);
}
