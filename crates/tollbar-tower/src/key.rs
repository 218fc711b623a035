//! Keys of requests: header fields and addresses.

use http::header::HeaderValue;
use http::Request;
use std::net::IpAddr;
use tollbar::address::{self, Network, Peer};
use tollbar::prefix::Prefix;

/// A request's header field as a key. `None` if the request does not have the field, or has
/// several: a client could vary the others.
pub fn header<B>(request: &Request<B>, name: &str) -> Option<Vec<u8>> {
    let mut values = request.headers().get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.as_bytes().to_vec()),
        _ => None,
    }
}

/// The address at the other end of the connection, in a program with axum that serves by
/// `into_make_service_with_connect_info::<SocketAddr>()`. `None` in any other program.
#[cfg(feature = "axum")]
pub fn peer<B>(request: &Request<B>) -> Option<IpAddr> {
    use axum::extract::ConnectInfo;
    use std::net::SocketAddr;
    Some(request.extensions().get::<ConnectInfo<SocketAddr>>()?.0.ip())
}

/// The key of a client behind trusted proxies.
///
/// `peer` is the address at the other end of the connection: `peer` of the feature `axum`, what
/// tonic's `TcpConnectInfo` holds, or `None` for a Unix socket. `proxies` are the networks of the
/// trusted proxies. If the peer is in one of them, the function reads X-Forwarded-For from the
/// right and takes the first address outside these networks. Otherwise the peer is the client.
/// Returns `None` if neither gives an address.
///
/// ```
/// use tollbar::address::Network;
/// let proxies = [Network::parse(b"10.0.0.0/8").unwrap()];
/// let request = http::Request::builder().header("x-forwarded-for", "1.1.1.1, 192.0.2.1").body(()).unwrap();
/// let peer = "10.0.0.7".parse().unwrap();
/// assert_eq!(tollbar_tower::client(&request, Some(peer), &proxies), tollbar_tower::address("192.0.2.1".parse().unwrap()));
/// ```
pub fn client<B>(
    request: &Request<B>,
    peer: Option<IpAddr>,
    proxies: &[Network],
) -> Option<Vec<u8>> {
    let peer = peer.map_or(Peer::Unix, Peer::Address);
    // A header map's values go in one direction only.
    let forwarded: Vec<&[u8]> =
        request.headers().get_all("x-forwarded-for").iter().map(HeaderValue::as_bytes).collect();
    address(address::client(peer, proxies.iter().copied(), forwarded.into_iter().rev())?)
}

/// An address as a key: an IPv4 address, or the /64 of an IPv6 address, because a client has all
/// addresses of its /64.
pub fn address(address: IpAddr) -> Option<Vec<u8>> {
    Prefix::of(address, 32, 64).map(|prefix| prefix.as_bytes().to_vec())
}
