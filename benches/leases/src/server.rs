//! A `redis-server` of this run's own, on a Unix socket.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Server {
    child: Child,
    directory: PathBuf,
}

impl Server {
    pub fn start() -> Server {
        let directory = std::env::temp_dir().join(format!("tollbar-leases-{}", std::process::id()));
        std::fs::create_dir_all(&directory)
            .unwrap_or_else(|why| super::fail(&format!("{}: {why}", directory.display())));
        let socket = directory.join("socket");
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|why| {
                super::fail(&format!("redis-server: {why}; as root: apt-get install redis-server"))
            });
        let deadline = Instant::now() + Duration::from_secs(10);
        while UnixStream::connect(&socket).is_err() {
            if Instant::now() > deadline {
                super::fail("redis-server does not come up");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Server { child, directory }
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    pub fn url(&self) -> String {
        format!("unix:{}", self.socket().display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
