//! A sender of text messages: callers hand messages over at any rate, and a worker sends 20 a
//! second, in their order.
//!
//! `cargo run --example sender`
//!
//! Of 40 messages at once the queue keeps 25, and one leaves at once. The caller hears of the other
//! 14 at once, and may try later.

use std::thread;
use tollbar::queue::Queue;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let outbox = Queue::new(&"20/s algo pacer".parse()?, 25)?;
    let refused = (0..40).filter(|n| outbox.offer(format!("message {n}")).is_err()).count();
    println!("{refused} refused");
    thread::scope(|scope| {
        scope.spawn(|| {
            // Sleeps until a message may leave. `None`: the queue is closed and empty.
            while let Some(message) = outbox.take_within(u64::MAX) {
                println!("{message} leaves");
            }
        });
        outbox.close();
    });
    Ok(())
}
