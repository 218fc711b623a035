//! The program against a server that admits five requests at once and five in a second.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use tollbar::http::{Fields, Limit};
use tollbar::{Limiter, Policy};

/// The address of the server, which closes each connection after one answer.
fn server() -> String {
    let policy: Policy = "5/s".parse().unwrap();
    let limiter = Limiter::new(&policy).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = BufReader::new(stream.try_clone().unwrap()).lines();
            head.map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
            let decision = limiter.check(1);
            let mut fields = [0; 600];
            let length =
                Fields::new().write(&[Limit::new(b"all", &policy, &decision)], 0, &mut fields);
            let status = if decision.is_allowed() { "200 OK" } else { "429 Too Many Requests" };
            let fields = std::str::from_utf8(&fields[..length]).unwrap();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n{fields}\r\n"
            );
        }
    });
    address
}

#[test]
fn a_paced_client_is_refused_once_or_twice() {
    let address = server();
    let output = Command::new(env!("CARGO_BIN_EXE_tollbar-example-reqwest"))
        .args([&format!("http://{address}/"), "12"])
        .output();
    let output = output.unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{lines}{}", String::from_utf8_lossy(&output.stderr));
    // Without a pace the server would refuse seven of twelve requests at once. The second refusal
    // is for a busy machine, which wakes the client late.
    let (passed, refused) = (lines.matches("200 OK").count(), lines.matches("429 ").count());
    assert!(passed + refused == 12 && (1..=2).contains(&refused), "{lines}");
}
