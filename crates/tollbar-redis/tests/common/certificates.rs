//! Certificates of an authority of the test's own, and a server with TLS.
#![allow(dead_code)] // each test program uses a part of it

use super::server::Server;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// An authority (`ca.crt`), a server's certificate (`server.crt`, `server.key`) and a client's
/// (`client.crt`, `client.key`), in a directory that ends with this value.
pub struct Certificates {
    directory: PathBuf,
}

impl Certificates {
    /// The server's certificate is for `host`, and for 127.0.0.1 if that is `localhost`.
    pub fn make(host: &str) -> Certificates {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("tollbar-tls-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let made = Certificates { directory };
        let own = "/CN=authority of a test";
        made.openssl(&format!("req -x509 {KEY} -keyout ca.key -out ca.crt -days 2 -subj"), &[own]);
        let names = match host {
            "localhost" => "subjectAltName=DNS:localhost,IP:127.0.0.1".to_string(),
            host => format!("subjectAltName=DNS:{host}"),
        };
        for (name, extension) in
            [("server", names.as_str()), ("client", "extendedKeyUsage=clientAuth")]
        {
            let command = format!(
                "req -x509 {KEY} -keyout {name}.key -out {name}.crt -days 2 -CA ca.crt -CAkey ca.key \
                 -addext basicConstraints=critical,CA:FALSE -addext {extension} -subj"
            );
            made.openssl(&command, &["/CN=a test"]);
        }
        made
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn openssl(&self, words: &str, more: &[&str]) {
        let output = Command::new("openssl")
            .args(words.split_ascii_whitespace())
            .args(more)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .output()
            .expect("openssl; as root: apt-get install openssl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

/// A server with a port for TLS. `asks`: clients must have a certificate.
pub fn start(made: &Certificates, asks: bool) -> Server {
    let path = |name: &str| made.path(name).display().to_string();
    Server::with_tls(&[
        "--tls-cert-file",
        &path("server.crt"),
        "--tls-key-file",
        &path("server.key"),
        "--tls-ca-cert-file",
        &path("ca.crt"),
        "--tls-auth-clients",
        if asks { "yes" } else { "no" },
    ])
}
