//! A flash sale: a shop's API limits each customer by a token bucket. For the sale it becomes a
//! sliding window that lets a customer make many requests at once, and afterwards the bucket again.
//! No customer's state is lost, and the table runs all the time.
//!
//! `cargo run --example flash_sale`
//!
//! Each line has the requests of one second, in virtual time, and how many of them passed.

use tollbar::table::{Options, PolicyId, Table};
use tollbar::Policy;

const SEC: u64 = 1_000_000_000;
const CUSTOMER: PolicyId = PolicyId::FIRST;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    sale(&mut |line| println!("{line}"))
}

/// The requests before, during and after the sale.
pub fn sale(say: &mut dyn FnMut(String)) -> Result<(), Box<dyn std::error::Error>> {
    let usual: Policy = "5/s burst 10".parse()?;
    let sale: Policy = "120/10s algo sliding-window segments 10".parse()?;
    // Room for windows of up to 10 segments, so that the policy can become the sale's.
    let table = Table::private(&Options::new(100_000).with_room(10), &[usual])?;
    let mut second = |n: u64, customer: &str, asked: u64| {
        let now = 1_000 * SEC + n * SEC;
        let passed = table.take_up_to_at(CUSTOMER, customer.as_bytes(), now, asked);
        say(format!("second {n:2}: {customer} asks {asked}, {passed} pass"));
    };
    second(0, "ann", 20); // the burst
    second(1, "ann", 20); // the refill
    table.set_policy(CUSTOMER, &sale)?;
    second(1, "ann", 20); // she had none left, and the sale gives her none of those back
    second(1, "bob", 200); // he comes with the sale
    second(11, "ann", 60); // her permits come back with the window
    second(12, "ann", 90);
    table.set_policy(CUSTOMER, &usual)?;
    second(12, "ann", 20); // the sale is over, and she has used all of its permits
    second(13, "ann", 20);
    second(13, "eve", 20);
    Ok(())
}
