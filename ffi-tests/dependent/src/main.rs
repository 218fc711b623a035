//! Calls that need an operating system: the system's clock and a table. With `redis`, also the
//! parser of a store's URL.

use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Limiter, Policy, Verdict};

fn main() {
    assert_eq!(dependent::passes("3/min", 10), Some(3));
    assert_eq!(dependent::passes("20/s algo sliding-window", 30), Some(20));
    assert_eq!(
        dependent::prefix("192.0.2.1").map(|prefix| prefix.as_bytes().to_vec()),
        Some(vec![4, 32, 192, 0, 2, 1])
    );

    let policy: Policy = "1/h burst 2".parse().expect("a policy");
    let limiter = Limiter::new(&policy).expect("memory");
    assert_eq!((0..9).filter(|_| limiter.check(1).is_allowed()).count(), 2);
    let table = Table::private(&Options::new(100), &[policy]).expect("memory");
    assert_eq!((0..9).filter(|_| table.admit(PolicyId::FIRST, b"key", 1) == Verdict::Allowed).count(), 2);
    #[cfg(feature = "redis")]
    assert!(tollbar_redis::redis::Url::parse("redis://127.0.0.1:6379/0").is_ok());
    println!("decided");
}
