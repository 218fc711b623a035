//! One visit a day for each address, in a table file that other programs use, too.
//!
//! `cargo run --example visit -- /dev/shm/visits 192.0.2.1 '[2001:db8::1]:443'`
//!
//! It prints "passes", "refused" or "no address" for each address. The key of an address is the
//! network of its client: an IPv4 address, or the first 64 bits of an IPv6 address, however a
//! server or a proxy writes them.

use tollbar::prefix::Prefix;
use tollbar::table::{Options, PolicyId, Table};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: visit TABLE ADDRESS...")?;
    let table = Table::file(path, &Options::new(10_000), &["1/day".parse()?])?;
    for address in arguments {
        println!(
            "{}",
            match Prefix::parse(address.as_bytes(), 32, 64) {
                None => "no address",
                Some(client) if table.check(PolicyId::FIRST, client.as_bytes(), 1).is_allowed() =>
                    "passes",
                Some(_) => "refused",
            }
        );
    }
    Ok(())
}
