//! Keys made of network addresses.

use super::boundary::*;
use super::status::*;
use core::ffi::{c_char, c_void};
use core::net::IpAddr;
use tollbar::prefix::Prefix;

/// A network prefix as a key: the first `length` of `bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_prefix {
    /// The bytes of the key.
    pub length: u32,
    /// The family (4 or 6), the bits that count, and the address up to them; then zeroes.
    pub bytes: [u8; 20],
}

/// The key of an address in network byte order: `length` 4 for IPv4, of which the first `ipv4_bits` bits
/// count, or 16 for IPv6, of which the first `ipv6_bits` do. IPv4-mapped IPv6
/// addresses are treated as IPv4. Returns 0, TOLLBAR_E_ADDRESS for another length, or TOLLBAR_E_OUT_OF_RANGE if there are
/// more bits than the address has.
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

/// tollbar_prefix_from_address for an address as people write it, `length` bytes of text: "192.0.2.1", "2001:db8::1".
/// A zone ("%eth0") does not count.
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
        if ipv4_bits > 32 || ipv6_bits > 128 {
            return Err(TOLLBAR_E_OUT_OF_RANGE);
        }
        out.write(key(&Prefix::parse(text, ipv4_bits, ipv6_bits).ok_or(TOLLBAR_E_ADDRESS)?));
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
