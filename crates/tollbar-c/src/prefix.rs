//! Keys made of network addresses.

use super::boundary::*;
use super::status::*;
use core::ffi::{c_char, c_void};
use core::net::IpAddr;
use tollbar::prefix::Prefix;

/// A network prefix as a key: the first `length` bytes of `bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_prefix {
    /// The number of bytes in the key.
    pub length: u32,
    /// The family (4 or 6), the number of bits in the prefix, and the bytes of the address that hold these bits. All other bits are 0.
    pub bytes: [u8; 20],
}

/// Makes the key of an address in network byte order. With `length` 4 it is an IPv4 address, and the key has its first `ipv4_bits` bits.
/// With `length` 16 it is an IPv6 address, and the key has its first `ipv6_bits` bits. IPv4-mapped IPv6 addresses are treated as IPv4.
/// Returns 0, TOLLBAR_E_ADDRESS for another length, or TOLLBAR_E_OUT_OF_RANGE for more than 32 or 128 bits, whichever family the address has.
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

/// tollbar_prefix_from_address for an address as text of `length` bytes: "192.0.2.1", "2001:db8::1". A zone ("%eth0") is ignored.
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

fn key(prefix: &Prefix) -> tollbar_prefix {
    let mut key = tollbar_prefix { length: prefix.as_bytes().len() as u32, bytes: [0; 20] };
    for (to, byte) in key.bytes.iter_mut().zip(prefix.as_bytes()) {
        *to = *byte;
    }
    key
}
