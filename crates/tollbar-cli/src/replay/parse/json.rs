//! A JSON object a line: nginx with `escape=json`, Caddy, Envoy and whatever names its fields as
//! they do.

use super::client;
use super::fields::{Named, Role, ROLES};
use super::prefixes;
use super::request::{method_of, origin_form, path_of, Key, Request, WrongLine};
use crate::civil;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

pub struct Json {
    named: Named,
    names: Vec<(Role, Cow<'static, str>)>,
}

impl Json {
    pub fn new(named: Named) -> Json {
        Json { names: named.names(), named }
    }

    pub fn parse<'a>(&mut self, line: &'a [u8], cut: bool) -> Result<Request<'a>, WrongLine> {
        if cut {
            return Err(Cow::Borrowed("longer than a mebibyte"));
        }
        let line = if line.starts_with(b"{") { line } else { prefixes::behind(line) };
        let found = match std::str::from_utf8(line) {
            Ok(text) => self.find(text)?,
            // nginx copies bytes above 127 as they came.
            Err(_) => self.find(&String::from_utf8_lossy(line))?.owned(),
        };
        self.request(found)
    }

    fn find<'a>(&self, text: &'a str) -> Result<Found<'a>, WrongLine> {
        let mut found = Found::default();
        let mut reader = serde_json::Deserializer::from_str(text);
        let object = Object { names: &self.names, prefix: "", found: &mut found };
        let result = object.deserialize(&mut reader).and_then(|()| reader.end());
        result.map_err(|error| {
            Cow::Owned(format!(
                "column {}: {}",
                error.column().max(1),
                without_place(&error.to_string())
            ))
        })?;
        Ok(found)
    }

    fn request<'a>(&self, mut found: Found<'a>) -> Result<Request<'a>, WrongLine> {
        let missing = |role| Named::missing(role, &self.names);
        let time = match found.take(Role::Time).ok_or_else(|| missing(Role::Time))?.1 {
            Scalar::Text(text) => civil::any(text.as_bytes()),
            Scalar::Number(number) => civil::unix(number.as_bytes()),
        }
        .map_err(Cow::Borrowed)?;
        let (rank, key) = found.take(Role::Key).ok_or_else(|| missing(Role::Key))?;
        let name = &self.names[rank].1;
        let key = key.bytes();
        let key = if name.contains("orwarded") { cut(key, client::last_hop) } else { key };
        let key = match self.named.takes_text(name) {
            true => client::any(key, name)?,
            false => Key::Address(client::address(&key, name)?),
        };
        let cost = match found.take(Role::Cost) {
            None => 1,
            Some((_, cost)) => super::trace::number(
                &cost.bytes(),
                "the cost is not a whole number",
                "the cost does not fit 64 bits",
            )
            .map_err(Cow::Borrowed)?,
        };
        let class =
            found.take(Role::Class).map_or(Cow::Borrowed(&b""[..]), |(_, class)| class.bytes());
        let path = found.take(Role::Path).map_or(Cow::Borrowed(&b""[..]), |(_, path)| path.bytes());
        // The field of the path may hold the whole request line, such as "GET /path HTTP/1.1".
        let is_line = path.contains(&b' ');
        let method = match found.take(Role::Method) {
            Some((_, method)) => method.bytes(),
            None if is_line => cut(path.clone(), method_of),
            None => Cow::Borrowed(&b""[..]),
        };
        let path = if is_line { cut(path, path_of) } else { cut(path, origin_form) };
        let agent =
            found.take(Role::Agent).map_or(Cow::Borrowed(&b""[..]), |(_, agent)| agent.bytes());
        Ok(Request { time, key, cost, class, path, agent, method })
    }
}

/// A part of borrowed or owned bytes.
fn cut<'a>(bytes: Cow<'a, [u8]>, part: impl Fn(&[u8]) -> &[u8]) -> Cow<'a, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(part(bytes)),
        Cow::Owned(bytes) => Cow::Owned(part(&bytes).to_vec()),
    }
}

/// serde_json ends its messages with a line and column. The message already begins with the line.
fn without_place(text: &str) -> &str {
    text.rfind(" at line ").map_or(text, |at| &text[..at])
}

/// A field's value.
enum Scalar<'a> {
    Text(Cow<'a, str>),
    /// As decimal text.
    Number(String),
}

impl<'a> Scalar<'a> {
    fn bytes(self) -> Cow<'a, [u8]> {
        match self {
            Scalar::Text(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
            Scalar::Text(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
            Scalar::Number(text) => Cow::Owned(text.into_bytes()),
        }
    }
}

/// The best field of each role, with the rank of its name.
#[derive(Default)]
struct Found<'a> {
    values: [Option<(usize, Scalar<'a>)>; ROLES],
}

impl<'a> Found<'a> {
    fn take(&mut self, role: Role) -> Option<(usize, Scalar<'a>)> {
        self.values[role as usize].take()
    }

    fn owned(self) -> Found<'static> {
        let own = |(rank, value)| match value {
            Scalar::Text(text) => (rank, Scalar::Text(Cow::Owned(Cow::into_owned(text)))),
            Scalar::Number(number) => (rank, Scalar::Number(number)),
        };
        Found { values: self.values.map(|value| value.map(own)) }
    }
}

/// Reads an object, and those in it that have a field with a name.
struct Object<'s, 'a> {
    names: &'s [(Role, Cow<'static, str>)],
    /// The path of this object, with a point behind it.
    prefix: &'s str,
    found: &'s mut Found<'a>,
}

impl<'a> DeserializeSeed<'a> for Object<'_, 'a> {
    type Value = ();
    fn deserialize<D: Deserializer<'a>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Object<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(Name(name)) = map.next_key::<Name<'a>>()? {
            let rest = |full: &str| {
                full.strip_prefix(self.prefix)
                    .and_then(|full| full.strip_prefix(&*name))
                    .map(str::len)
            };
            let exact = self.names.iter().position(|(_, full)| rest(full) == Some(0));
            let is_inside = || {
                self.names.iter().any(|(_, full)| {
                    full.strip_prefix(self.prefix)
                        .and_then(|full| full.strip_prefix(&*name))
                        .is_some_and(|rest| rest.starts_with('.'))
                })
            };
            if exact.is_none() && !is_inside() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let inside = format!("{}{name}.", self.prefix);
            let scalar = map.next_value_seed(Value {
                names: self.names,
                prefix: &inside,
                found: self.found,
            })?;
            if let (Some(rank), Some(scalar)) = (exact, scalar) {
                let place = &mut self.found.values[self.names[rank].0 as usize];
                if place.as_ref().is_none_or(|(other, _)| rank < *other) {
                    *place = Some((rank, scalar));
                }
            }
        }
        Ok(())
    }
}

/// A field's name, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'a> serde::Deserialize<'a> for Name<'a> {
    fn deserialize<D: Deserializer<'a>>(reader: D) -> Result<Name<'a>, D::Error> {
        reader.deserialize_str(Text).map(Name)
    }
}

struct Text;

impl<'a> Visitor<'a> for Text {
    type Value = Cow<'a, str>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Cow<'a, str>, E> {
        Ok(Cow::Borrowed(text))
    }
    fn visit_str<E>(self, text: &str) -> Result<Cow<'a, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// A value that may be wanted, or an object in which one may be.
struct Value<'s, 'a> {
    names: &'s [(Role, Cow<'static, str>)],
    prefix: &'s str,
    found: &'s mut Found<'a>,
}

impl<'a> DeserializeSeed<'a> for Value<'_, 'a> {
    type Value = Option<Scalar<'a>>;
    fn deserialize<D: Deserializer<'a>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Value<'_, 'a> {
    type Value = Option<Scalar<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_map<M: MapAccess<'a>>(self, map: M) -> Result<Self::Value, M::Error> {
        Object { names: self.names, prefix: self.prefix, found: self.found }.visit_map(map)?;
        Ok(None)
    }
    // The first of several values, as Caddy writes headers.
    fn visit_seq<S: SeqAccess<'a>>(self, mut values: S) -> Result<Self::Value, S::Error> {
        let first = values.next_element_seed(self)?.flatten();
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first)
    }
    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Text(Cow::Borrowed(text))))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Text(Cow::Owned(text.to_owned()))))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Number(number.to_string())))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Number(number.to_string())))
    }
    // Unix time of this century as a double is exact to 0.24 microseconds.
    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Number(format!("{number:.6}"))))
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(u64, String, String, String), String> {
        let mut json = Json::new(Named::default());
        let request = json.parse(line.as_bytes(), false).map_err(Cow::into_owned)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let key = match request.key {
            Key::Address(address) => address.to_string(),
            Key::Text(key) => text(&key),
        };
        Ok((request.time, key, text(&request.path), text(&request.agent)))
    }

    const AT: u64 = 1_431_857_103_000_000_000;

    #[test]
    fn nginx_caddy_envoy() {
        let expected = Ok((AT, "192.0.2.1".to_owned(), "/a".to_owned(), "x".to_owned()));
        for line in [
            r#"{"time_iso8601":"2015-05-17T10:05:03+00:00","remote_addr":"192.0.2.1","request_uri":"/a","http_user_agent":"x"}"#,
            r#"{"msec":"1431857103.000","remote_addr":"192.0.2.1","request":"GET /a HTTP/1.1","status":200,"http_user_agent":"x"}"#,
            r#"{"level":"info","ts":1431857103.0,"request":{"remote_ip":"192.0.2.1","remote_port":"1","uri":"/a","headers":{"Accept":["b"],"User-Agent":["x","y"]}},"size":0}"#,
            r#"{"ts":1431857103,"request":{"remote_ip":"10.0.0.1","client_ip":"192.0.2.1","uri":"\/a","headers":{"User-Agent":["x"]}}}"#,
            r#"{"start_time":"2015-05-17T10:05:03.000Z","downstream_remote_address":"192.0.2.1:4711","path":"/a","user_agent":"x","x_forwarded_for":null}"#,
            r#"{"start_time":"2015-05-17T10:05:03.000Z","x_forwarded_for":"10.9.9.9, 192.0.2.1","path":"/a","user_agent":"x"}"#,
            r#"{"ClientAddr":"192.0.2.1:4711","ClientHost":"192.0.2.1","RequestMethod":"GET","RequestPath":"/a","StartUTC":"2015-05-17T10:05:03Z","request_User-Agent":"x","time":"2015-05-17T10:05:09Z"}"#,
            r#"{"ClientIP":"192.0.2.1","ClientRequestMethod":"GET","ClientRequestURI":"/a","ClientRequestUserAgent":"x","EdgeStartTimestamp":1431857103000000000,"EdgeEndTimestamp":"2015-05-17T10:05:04Z"}"#,
            r#"{"httpRequest":{"requestMethod":"GET","requestUrl":"https://shop.example:443/a","remoteIp":"192.0.2.1","userAgent":"x"},"timestamp":"2015-05-17T10:05:03.000000Z","receiveTimestamp":"2015-05-17T10:05:09Z"}"#,
            r#"{"ts":1431857103,"remote_addr":"::ffff:192.0.2.1","uri":"/a","user_agent":"x"}"#,
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn hostile_lines_are_refused_with_a_place() {
        for (line, part) in [
            (r#"{"ts":1"#, "column"),
            (r#"[1]"#, "an object"),
            (r#"{"remote_addr":"a"}"#, "no time"),
            (r#"{"ts":1}"#, "no client's address"),
            (r#"{"ts":1,"remote_addr":"a\u0007"}"#, r#"remote_addr is no address: "a\x07""#),
            (r#"{"ts":1,"user":"a\u0007"}"#, "control byte"),
            (r#"{"ts":1,"remote_addr":""}"#, "no client: remote_addr is"),
            (r#"{"ts":1,"remote_addr":"-"}"#, "no client: remote_addr is"),
            (r#"{"ts":1,"remote_addr":"unknown"}"#, r#"remote_addr is no address: "unknown""#),
            (r#"{"ts":-1,"remote_addr":"::1"}"#, "not a number"),
            (r#"{"ts":"yesterday","remote_addr":"::1"}"#, "not a number"),
        ] {
            let wrong = read(line).expect_err(line);
            assert!(wrong.contains(part), "{line}: {wrong}");
        }
        let deep = format!("{{\"a\":{}", "[".repeat(100_000));
        assert!(read(&deep).is_err());
        let deep = "{\"request\":".repeat(100_000);
        assert!(read(&deep).is_err());
    }
}
