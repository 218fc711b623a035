//! Networks, and the client's address behind trusted proxies.

use std::net::IpAddr;

/// A network such as `10.0.0.0/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Reads `10.0.0.0/8`, `2001:db8::/32` or an address. `None` for another text, and for a network with bits beyond its prefix.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) if bits.bytes().all(|b| b.is_ascii_digit()) => {
                (address, Some(bits.parse::<u8>().ok()?))
            }
            Some(_) => return None,
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let network = Network { address, bits: bits.unwrap_or(most) };
        (network.bits <= most && number(address) & !network.mask() == 0).then_some(network)
    }

    /// Whether the address is in the network. IPv4-mapped IPv6 addresses are IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && number(address) & self.mask() == number(self.address)
    }

    /// Whether the network has every address of its family.
    pub fn is_everything(&self) -> bool {
        self.bits == 0
    }

    fn mask(&self) -> u128 {
        let zeros = if self.address.is_ipv4() { 32 } else { 128 } - u32::from(self.bits);
        u128::MAX.checked_shl(zeros).unwrap_or(0)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The client's address: `peer` or, if `peer` is a trusted proxy, the right-most address of X-Forwarded-For that no trusted proxy has.
/// `forwarded` yields the values of the header from the last to the first.
///
/// A client can write anything at the left of the header, and each proxy adds at the right the address that it saw. So the walk goes from the
/// right and ends at the first address that is not trusted. It also ends at a text that is no address. Then the last trusted proxy is the client.
pub fn client<'a>(peer: IpAddr, trusted: &[Network], forwarded: impl Iterator<Item = &'a [u8]>) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut client = peer.to_canonical();
    if !is_trusted(client) {
        return client;
    }
    for value in forwarded {
        for hop in value.rsplit(|&byte| byte == b',') {
            let Some(address) = hop_address(hop) else { return client };
            client = address.to_canonical();
            if !is_trusted(client) {
                return client;
            }
        }
    }
    client
}

/// An address as proxies write it: with blanks around it, and perhaps with a port, `192.0.2.1:80` or `[2001:db8::1]:80`.
fn hop_address(hop: &[u8]) -> Option<IpAddr> {
    address(std::str::from_utf8(hop).ok()?.trim())
}

/// An address, perhaps with a port or a zone.
pub fn address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Some(inside) = text.strip_prefix('[') {
        let (address, port) = inside.split_once(']')?;
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
        return if is_port { address.parse().ok() } else { None };
    }
    if let Some((address, zone)) = text.split_once('%') {
        return if zone.is_empty() { None } else { address.parse().ok() };
    }
    let (address, port) = text.split_once(':')?;
    port.parse::<u16>().ok()?;
    address.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(peer: &str, trusted: &[&str], headers: &[&str]) -> String {
        let trusted: Vec<Network> = trusted.iter().map(|text| Network::parse(text).expect(text)).collect();
        let forwarded = headers.iter().rev().map(|value| value.as_bytes());
        client(peer.parse().expect(peer), &trusted, forwarded).to_string()
    }

    #[test]
    fn the_client_is_the_rightmost_hop_that_is_not_trusted() {
        let proxies = ["10.0.0.0/8", "2001:db8::/32"];
        for (peer, headers, client) in [
            ("192.0.2.1", &["198.51.100.7"][..], "192.0.2.1"), // a stranger's header counts for nothing
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["1.1.1.1, 198.51.100.7, 10.9.9.9"], "198.51.100.7"), // what the client wrote stands at the left
            ("10.0.0.1", &["1.1.1.1", "198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["198.51.100.7, nonsense, 10.9.9.9"], "10.9.9.9"),
            ("10.0.0.1", &["198.51.100.7,"], "10.0.0.1"),
            ("::ffff:10.0.0.1", &["198.51.100.7:4711"], "198.51.100.7"),
            ("2001:db8::1", &["[2001:db9::2]:80"], "2001:db9::2"),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ] {
            assert_eq!(found(peer, &proxies, headers), client, "{peer} {headers:?}");
        }
        assert_eq!(found("10.0.0.1", &[], &["198.51.100.7"]), "10.0.0.1");
    }

    #[test]
    fn networks() {
        let has = |network: &str, address: &str| {
            Network::parse(network).expect(network).contains(address.parse().expect(address))
        };
        assert!(has("10.0.0.0/8", "10.255.0.1") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("0.0.0.0/0", "1.2.3.4") && !has("0.0.0.0/0", "::1") && has("::/0", "::1"));
        assert!(has("192.0.2.1", "::ffff:192.0.2.1") && !has("192.0.2.1", "192.0.2.2"));
        assert!(has("2001:db8::/33", "2001:db8:7fff::1") && !has("2001:db8::/33", "2001:db8:8000::1"));
        for text in ["10.0.0.1/8", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "host", ""] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }
}
