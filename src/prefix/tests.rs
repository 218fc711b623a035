use super::*;
use std::string::ToString;

#[test]
fn every_length_keeps_its_bits_and_no_others() {
    for bits in 0..=32 {
        let all = Prefix::ipv4(Ipv4Addr::from(u32::MAX), bits).unwrap();
        for bit in 0..32 {
            let one_off = Prefix::ipv4(Ipv4Addr::from(u32::MAX ^ 1 << (31 - bit)), bits).unwrap();
            assert_eq!(one_off == all, bit >= bits, "bit {bit} of /{bits}");
        }
    }
    for bits in 0..=128 {
        let all = Prefix::ipv6(Ipv6Addr::from(u128::MAX), bits).unwrap();
        for bit in 0..128 {
            let one_off = Prefix::ipv6(Ipv6Addr::from(u128::MAX ^ 1 << (127 - bit)), bits).unwrap();
            assert_eq!(one_off == all, bit >= bits, "bit {bit} of /{bits}");
        }
    }
}

#[test]
fn prefixes_of_different_family_or_length_differ() {
    let zero = [
        Prefix::parse(b"0.0.0.0", 0, 0),
        Prefix::parse(b"0.0.0.0", 8, 0),
        Prefix::parse(b"::", 0, 0),
        Prefix::parse(b"::", 0, 8),
    ];
    for (n, a) in zero.iter().enumerate() {
        assert!(zero.iter().skip(n + 1).all(|b| a != b) && a.is_some());
    }
}

#[test]
fn a_text_that_is_not_an_address_is_refused() {
    for text in
        ["", "1.2.3", "1.2.3.4.5", "1.2.3.256", ":::", "fe80::1::2", "g::", "%eth0", "caf\u{e9}"]
    {
        assert_eq!(Prefix::parse(text.as_bytes(), 32, 64), None, "{text}");
    }
    assert_eq!(Prefix::parse(b"\xff\xfe", 32, 64), None);
    assert_eq!(Prefix::parse(b"1.2.3.4", 33, 64), None);
    assert_eq!(Prefix::parse(b"::1", 32, 129), None);
    let zoned = Prefix::parse(b"fe80::1%eth0", 32, 64);
    assert_eq!((zoned, zoned.is_some()), (Prefix::parse(b"fe80::2", 32, 64), true));
    let mapped = "::ffff:10.1.2.3".to_string();
    assert_eq!(Prefix::parse(mapped.as_bytes(), 24, 64), Prefix::parse(b"10.1.2.99", 24, 64));
}
