//! A node, and a thread that runs its client.
#![allow(dead_code)] // each test program uses a part of it

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tollbar::Policy;
use tollbar_redis::lease::{Circuit, Client, Node, Options};
use tollbar_redis::redis::Url;

/// A node, and a thread that runs its client.
pub struct Machine {
    pub node: Arc<Node>,
    stop: Arc<AtomicU32>,
    thread: Option<JoinHandle<Client<Arc<Node>>>>,
}

impl Machine {
    pub fn new(url: &str, name: &str, policy: &str, options: &Options) -> Machine {
        let policy: Policy = policy.parse().expect("a policy");
        let node = Arc::new(Node::private(name, &policy, options).expect("a node"));
        let stop = Arc::new(AtomicU32::new(0));
        let client = Client::new(&Url::parse(url).expect("a URL"));
        let mut client = client.and_then(|client| client.with(node.clone())).expect("a client");
        let thread = {
            let stop = stop.clone();
            std::thread::spawn(move || {
                client.run(&stop);
                client
            })
        };
        Machine { node, stop, thread: Some(thread) }
    }

    pub fn check(&self, key: &[u8], cost: u64) -> bool {
        self.node.check(key, cost).is_allowed()
    }

    /// Waits for the circuit, at most thirty seconds: the machine may be busy.
    pub fn until(&self, circuit: Circuit) -> Duration {
        let since = Instant::now();
        while self.node.circuit(self.node.now()) != circuit {
            assert!(since.elapsed() < Duration::from_secs(30), "{circuit:?} does not come");
            std::thread::sleep(Duration::from_micros(200));
        }
        since.elapsed()
    }

    pub fn client(&mut self) -> Client<Arc<Node>> {
        self.stop.store(1, Ordering::Release);
        self.thread.take().expect("a thread").join().expect("the thread")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop.store(1, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
