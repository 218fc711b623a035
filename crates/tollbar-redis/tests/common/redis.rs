//! A real `redis-server`, started and stopped by the test that has it, and never left behind.
#![allow(dead_code)] // each test program uses a part of it

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A server with a unix socket in a directory of its own and a TCP port of 127.0.0.1. It is killed
/// when this is dropped, and when the thread that started it ends.
pub struct Server {
    child: Option<Child>,
    directory: PathBuf,
    port: u16,
    /// The port for TLS; 0: none.
    tls_port: u16,
    options: Vec<String>,
    environment: Vec<(String, String)>,
}

/// A reply as it came.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    Simple(String),
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Raw>),
}

impl Server {
    /// A server that keeps nothing on the disk.
    pub fn start() -> Server {
        Server::with(&[])
    }

    /// The same with options of redis-server's command line, `--maxmemory 2mb`.
    pub fn with(options: &[&str]) -> Server {
        Server::within(options, &[])
    }

    /// The same with a port for TLS, whose files `options` name.
    pub fn with_tls(options: &[&str]) -> Server {
        Server::new(options, &[], free_port())
    }

    /// The same as [`Server::with`], with variables of its environment.
    pub fn within(options: &[&str], environment: &[(&str, &str)]) -> Server {
        Server::new(options, environment, 0)
    }

    fn new(options: &[&str], environment: &[(&str, &str)], tls_port: u16) -> Server {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        // Short, since a socket's path may have 107 bytes.
        let directory =
            std::env::temp_dir().join(format!("tollbar-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for redis-server");
        let options = options.iter().map(|option| option.to_string()).collect();
        let environment =
            environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let mut server = Server { child: None, directory, port: 0, tls_port, options, environment };
        server.launch();
        server
    }

    /// Its URL by TCP.
    pub fn tcp(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its URL by the unix socket.
    pub fn unix(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// Its TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its port for TLS.
    pub fn tls_port(&self) -> u16 {
        self.tls_port
    }

    /// The path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("redis.sock")
    }

    /// `kill -9`: what it held is gone. Connections are reset, new ones refused.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("kill");
            child.wait().expect("wait");
        }
    }

    /// Starts it again, empty, at the same addresses.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
    }

    /// SIGSTOP: it is there, and does not answer.
    pub fn pause(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    /// Sends a command on a connection of its own, and panics at an error.
    pub fn command(&self, parts: &[&str]) -> Raw {
        match self.try_command(parts).expect("redis-server answers") {
            Raw::Error(text) => panic!("{parts:?}: {text}"),
            reply => reply,
        }
    }

    /// Sends a command on a connection of its own.
    pub fn try_command(&self, parts: &[&str]) -> std::io::Result<Raw> {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        self.try_bytes(&parts)
    }

    /// The same with strings that need not be text.
    pub fn try_bytes(&self, parts: &[&[u8]]) -> std::io::Result<Raw> {
        let stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut text = format!("*{}\r\n", parts.len()).into_bytes();
        for part in parts {
            text.extend(format!("${}\r\n", part.len()).as_bytes());
            text.extend(*part);
            text.extend(b"\r\n");
        }
        (&stream).write_all(&text)?;
        read(&mut BufReader::new(stream))
    }

    /// How many keys there are in database 0.
    pub fn keys(&self) -> i64 {
        self.command(&["DBSIZE"]).int()
    }

    fn launch(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        // Clients of a server that is started again know its port, so it waits until the port is
        // free.
        let chooses = self.port == 0;
        loop {
            if self.port == 0 {
                // Free now. Should another take it first, the server ends and this is done again.
                self.port = free_port();
            }
            let mut child = self.spawn();
            loop {
                if self.try_command(&["PING"]).is_ok_and(
                    |reply| !matches!(&reply, Raw::Error(text) if text.starts_with("LOADING")),
                ) {
                    self.child = Some(child);
                    return;
                }
                if child.try_wait().expect("wait").is_some() {
                    if chooses {
                        self.port = 0;
                        self.tls_port = if self.tls_port == 0 { 0 } else { free_port() };
                    }
                    break;
                }
                if Instant::now() > deadline {
                    let _ = child.kill();
                    let _ = child.wait();
                    panic!("redis-server does not answer: {}", self.log());
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(Instant::now() < deadline, "redis-server does not start: {}", self.log());
        }
    }

    fn spawn(&self) -> Child {
        let _ = std::fs::remove_file(self.socket());
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--dir"])
            .arg(&self.directory)
            .arg("--unixsocket")
            .arg(self.socket())
            .args([
                "--save",
                "",
                "--appendonly",
                "no",
                "--daemonize",
                "no",
                "--logfile",
                "log",
                "--enable-debug-command",
                "yes",
            ])
            .args((self.tls_port != 0).then_some("--tls-port"))
            .args((self.tls_port != 0).then(|| self.tls_port.to_string()))
            .args(&self.options)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: prctl may be called between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        command.spawn().unwrap_or_else(|why| {
            panic!("redis-server: {why}; as root: apt-get install redis-server")
        })
    }

    fn signal(&self, signal: i32) {
        let child = self.child.as_ref().expect("the server runs");
        // SAFETY: a child that has not been waited for, so the number is its own.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Raw {
    /// An integer.
    pub fn int(&self) -> i64 {
        match self {
            Raw::Int(value) => *value,
            other => panic!("not an integer: {other:?}"),
        }
    }

    /// A string, simple or not.
    pub fn text(&self) -> String {
        match self {
            Raw::Simple(text) => text.clone(),
            Raw::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("not a string: {other:?}"),
        }
    }

    /// An array's items.
    pub fn items(&self) -> &[Raw] {
        match self {
            Raw::Array(items) => items,
            other => panic!("not an array: {other:?}"),
        }
    }
}

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    free.expect("a port").port()
}

fn read(from: &mut impl BufRead) -> std::io::Result<Raw> {
    let wrong = || std::io::Error::other("not a reply");
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let (kind, rest) = line.trim_end().split_at(1);
    let number = || rest.parse::<i64>().map_err(|_| wrong());
    Ok(match kind {
        "+" => Raw::Simple(rest.to_string()),
        "-" => Raw::Error(rest.to_string()),
        ":" => Raw::Int(number()?),
        "$" if number()? < 0 => Raw::Nil,
        "$" => {
            let mut bytes = vec![0; number()? as usize + 2];
            from.read_exact(&mut bytes)?;
            bytes.truncate(bytes.len() - 2);
            Raw::Bulk(bytes)
        }
        "*" if number()? < 0 => Raw::Nil,
        "*" => Raw::Array((0..number()?).map(|_| read(from)).collect::<Result<_, _>>()?),
        _ => return Err(wrong()),
    })
}
