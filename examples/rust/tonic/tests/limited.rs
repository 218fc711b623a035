//! The program, started as a reader would start it, and called over TCP.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use tonic::transport::Channel;
use tonic::Code;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::HealthCheckRequest;

/// The running program; it ends with this value.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn three_of_five_calls_pass() {
    let child = Command::new(env!("CARGO_BIN_EXE_tollbar-example-tonic"))
        .arg("127.0.0.1:0")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut program = Program(child);
    let mut line = String::new();
    BufReader::new(program.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = format!("http://{}", line.trim().strip_prefix("listening on ").unwrap());

    let channel = Channel::from_shared(url).unwrap().connect().await.unwrap();
    let mut client = HealthClient::new(channel);
    for left in [2, 1, 0] {
        let answer = client.check(HealthCheckRequest::default()).await.unwrap();
        let limit = answer.metadata().get("ratelimit").unwrap().to_str().unwrap();
        assert!(limit.starts_with(&format!("\"default\";r={left};t=")), "{limit}");
        assert_eq!(answer.metadata().get("retry-after"), None);
    }
    for _ in 0..2 {
        let status = client.check(HealthCheckRequest::default()).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
        let wait: u64 =
            status.metadata().get("retry-after").unwrap().to_str().unwrap().parse().unwrap();
        assert!((1..=20).contains(&wait), "{wait}");
    }
}
