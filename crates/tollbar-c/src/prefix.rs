//! Keys made of network addresses.

use super::boundary::*;
use super::status::*;
use core::ffi::{c_char, c_void};
use core::mem::size_of;
use core::net::IpAddr;
use tollbar::address::{self, Network, Peer};
use tollbar::prefix::Prefix;

/// A network prefix as a key: the first `length` bytes of `bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_prefix {
    /// The number of bytes in the key.
    pub length: u32,
    /// The family (4 or 6), the number of bits in the prefix, and the bytes of the address that
    /// hold these bits. All other bits are 0.
    pub bytes: [u8; 20],
}

/// Makes the key of an address in network byte order. With `length` 4 it is an IPv4 address, and
/// the key has its first `ipv4_bits` bits. With `length` 16 it is an IPv6 address, and the key has
/// its first `ipv6_bits` bits. IPv6 addresses that stand for an IPv4 address are treated as IPv4:
/// ::ffff:a.b.c.d, and 64:ff9b::a.b.c.d, which a translator (NAT64) makes. Returns 0,
/// TOLLBAR_E_ADDRESS for another length, or TOLLBAR_E_OUT_OF_RANGE for more than 32 or 128 bits,
/// whichever family the address has.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_prefix_from_address(
    address: *const c_void,
    length: usize,
    ipv4_bits: u32,
    ipv6_bits: u32,
    out: *mut tollbar_prefix,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (address, out) = unsafe { (bytes(address.cast(), length)?, place(out)?) };
        let address = match (<[u8; 4]>::try_from(address), <[u8; 16]>::try_from(address)) {
            (Ok(ipv4), _) => IpAddr::from(ipv4),
            (_, Ok(ipv6)) => IpAddr::from(ipv6),
            _ => return Err(TOLLBAR_E_ADDRESS),
        };
        out.write(key(&Prefix::of(address, ipv4_bits, ipv6_bits).ok_or(TOLLBAR_E_OUT_OF_RANGE)?));
        Ok(TOLLBAR_ALLOWED)
    })
}

/// tollbar_prefix_from_address for an address as text of `length` bytes: "192.0.2.1",
/// "2001:db8::1". A port ("192.0.2.1:80"; an IPv6 address with a port is in brackets), brackets, a
/// zone ("%eth0") and blanks around the address do not count.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_prefix_parse(
    text: *const c_char,
    length: usize,
    ipv4_bits: u32,
    ipv6_bits: u32,
    out: *mut tollbar_prefix,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (text, out) = unsafe { (bytes(text, length)?, place(out)?) };
        if !Prefix::fits(ipv4_bits, ipv6_bits) {
            return Err(TOLLBAR_E_OUT_OF_RANGE);
        }
        out.write(key(&Prefix::parse(text, ipv4_bits, ipv6_bits).ok_or(TOLLBAR_E_ADDRESS)?));
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Reads a network of trusted proxies for tollbar_prefix_of_client: "10.0.0.0/8", "2001:db8::/32",
/// one address, or "unix:" for connections by a Unix socket. Returns 0, or TOLLBAR_E_ADDRESS for
/// another text and for a network with bits beyond its prefix.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_network_parse(
    text: *const c_char,
    length: usize,
    out: *mut tollbar_prefix,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (text, out) = unsafe { (bytes(text, length)?, place(out)?) };
        let network = Network::parse(text).ok_or(TOLLBAR_E_ADDRESS)?;
        // A Unix socket has no family, and no bits.
        let mut raw = tollbar_prefix { length: 2, bytes: [0; 20] };
        if let Some((address, bits)) = network.addresses() {
            let all = u32::from(bits);
            let prefix = match address {
                IpAddr::V4(address) => Prefix::ipv4(address, all),
                IpAddr::V6(address) => Prefix::ipv6(address, all),
            };
            raw = key(&prefix.ok_or(TOLLBAR_E_ADDRESS)?);
        }
        out.write(raw);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes the key of a client behind proxies. `peer` is the address of the connection as text, as
/// tollbar_prefix_parse reads it; an empty text, "unix:..." or "@..." is a Unix socket. `forwarded`
/// is the value of X-Forwarded-For, and of several such fields their values joined by commas.
/// `proxies` are `count` networks whose proxies are trusted.
///
/// The client is the peer or, if the peer is a trusted proxy, the right-most address in `forwarded`
/// that no trusted proxy has. What a client writes into the header itself stands to the left of it.
/// A text that is no address ends the walk: then the last trusted proxy is the client.
///
/// Returns 0, TOLLBAR_E_ADDRESS if the client has no address (a text that is none, a Unix socket)
/// or if a network was not made by tollbar_network_parse, or TOLLBAR_E_OUT_OF_RANGE for more than
/// 32 or 128 bits.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_prefix_of_client(
    peer: *const c_char,
    peer_length: usize,
    forwarded: *const c_char,
    forwarded_length: usize,
    proxies: *const tollbar_prefix,
    count: usize,
    ipv4_bits: u32,
    ipv6_bits: u32,
    out: *mut tollbar_prefix,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (peer, forwarded, out) = unsafe {
            (bytes(peer, peer_length)?, bytes(forwarded, forwarded_length)?, place(out)?)
        };
        array(proxies, count)?;
        let proxies = match count {
            0 => &[],
            1.. if count > isize::MAX as usize / size_of::<tollbar_prefix>() => {
                return Err(TOLLBAR_E_BUFFER_TOO_SMALL)
            }
            // SAFETY: not null, aligned, and `count` prefixes by the caller's promise, no more than
            // fit into memory.
            _ => unsafe { core::slice::from_raw_parts(proxies, count) },
        };
        if !Prefix::fits(ipv4_bits, ipv6_bits) {
            return Err(TOLLBAR_E_OUT_OF_RANGE);
        }
        if proxies.iter().any(|proxy| network(proxy).is_none()) {
            return Err(TOLLBAR_E_ADDRESS);
        }
        let peer = Peer::parse(peer).ok_or(TOLLBAR_E_ADDRESS)?;
        let forwarded = (!forwarded.is_empty()).then_some(forwarded);
        let client =
            address::client(peer, proxies.iter().filter_map(network), forwarded.into_iter());
        let client = client.and_then(|client| Prefix::of(client, ipv4_bits, ipv6_bits));
        out.write(key(&client.ok_or(TOLLBAR_E_ADDRESS)?));
        Ok(TOLLBAR_ALLOWED)
    })
}

fn key(prefix: &Prefix) -> tollbar_prefix {
    let mut key = tollbar_prefix { length: prefix.as_bytes().len() as u32, bytes: [0; 20] };
    for (to, byte) in key.bytes.iter_mut().zip(prefix.as_bytes()) {
        *to = *byte;
    }
    key
}

/// The network that tollbar_network_parse has written.
fn network(raw: &tollbar_prefix) -> Option<Network> {
    let [family, bits, address @ ..] = raw.bytes;
    match (family, address) {
        (0, _) => (raw.length == 2).then_some(Network::UNIX),
        (4, [a, b, c, d, ..]) => Network::new(IpAddr::from([a, b, c, d]), bits),
        (6, [address @ .., _, _]) => Network::new(IpAddr::from(address), bits),
        _ => None,
    }
}
