//! A request as the rules see it.

use crate::host;
use crate::path::Spelling;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::IpAddr;
use tollbar::address::{self, Network, Peer};

/// A field of a request. Names that begin with a colon are the server's own words, which no client
/// can send as a header:
///
/// | name | value |
/// |---|---|
/// | `:method` | the method, such as `GET` |
/// | `:path` | the target as the client sent it, `/a/b?c=d` |
/// | `:host` | the host; without this field it is that of the target `http://host/a`, or else the header `Host` |
/// | `:address` | the address of the connection's other end, or `unix:` |
/// | `:NAME` | any other word of the server, for `key = "field NAME"` |
///
/// Every other field is a header; upper and lower case are equal in its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

impl<'a> Field<'a> {
    /// A field.
    pub const fn new(name: &'a [u8], value: &'a [u8]) -> Field<'a> {
        Field { name, value }
    }
}

impl<'a, N: AsRef<[u8]> + ?Sized, V: AsRef<[u8]> + ?Sized> From<(&'a N, &'a V)> for Field<'a> {
    fn from((name, value): (&'a N, &'a V)) -> Field<'a> {
        Field { name: name.as_ref(), value: value.as_ref() }
    }
}

/// What a request says under one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    Nothing,
    One(&'a [u8]),
    /// Several values. A client that varies one of them must not have a key of its own for each,
    /// and which one the server takes nobody knows.
    Several,
}

impl<'a> Said<'a> {
    /// Equal values are one.
    fn of(mut values: impl Iterator<Item = &'a [u8]>) -> Said<'a> {
        match values.next() {
            None => Said::Nothing,
            Some(first) if values.all(|value| value == first) => Said::One(first),
            Some(_) => Said::Several,
        }
    }
}

/// A request's fields, and what several rules need of them.
pub(crate) struct Seen<'a> {
    fields: &'a [Field<'a>],
    trusted: &'a [Network],
    pub method: &'a [u8],
    target: &'a [u8],
    pub path: Cow<'a, [u8]>,
    client: OnceCell<Option<IpAddr>>,
}

impl<'a> Seen<'a> {
    pub fn new(fields: &'a [Field<'a>], trusted: &'a [Network], spelling: Spelling) -> Seen<'a> {
        let find = |name: &[u8]| {
            fields.iter().find(|field| field.name == name).map_or(&b""[..], |field| field.value)
        };
        let target = find(b":path");
        let (method, path) = (find(b":method"), spelling.normal(target));
        Seen { fields, trusted, method, target, path, client: OnceCell::new() }
    }

    /// The value of a header or of a word. Empty values do not count.
    pub fn field(&self, name: &str) -> Said<'a> {
        Said::of(self.all(name))
    }

    /// The values of a header that are not empty, in their order.
    fn all<'n>(&self, name: &'n str) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a, 'n> {
        let is = move |field: &&Field<'_>| {
            field.name.eq_ignore_ascii_case(name.as_bytes()) && !field.value.is_empty()
        };
        self.fields.iter().filter(is).map(|field| field.value)
    }

    /// The hosts that the request names, without their ports: one, if the request is sound.
    pub fn hosts(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let own = self.all(":host").next().or_else(|| host::of_target(self.target));
        let named = own.is_none().then(|| self.all("host"));
        own.into_iter().chain(named.into_iter().flatten()).map(host::bare)
    }

    /// The value of a cookie. Empty values do not count.
    pub fn cookie(&self, name: &str) -> Said<'a> {
        let pairs = self.all("cookie").flat_map(|value| value.split(|&byte| byte == b';'));
        let values = pairs
            .filter_map(|pair| pair.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        Said::of(values.filter(|value| !value.is_empty()))
    }

    /// The client's address; `None` if the server gave none.
    pub fn client(&self) -> Option<IpAddr> {
        *self.client.get_or_init(|| {
            let peer = self.all(":address").next().map_or(Some(Peer::Unix), Peer::parse)?;
            address::client(peer, self.trusted.iter().copied(), self.all("x-forwarded-for").rev())
        })
    }
}
