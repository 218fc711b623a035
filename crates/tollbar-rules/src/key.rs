//! Where a rule's key comes from, and the bytes of a key.

use crate::path::{segments, Pattern};
use crate::request::{Said, Seen};
use std::fmt;
use std::net::IpAddr;
use tollbar::address;
use tollbar::prefix::Prefix;

/// A key: one part, or several that are joined. A part is the first of its sources that the request
/// has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    parts: Vec<Vec<Source>>,
}

/// Whether a request has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Key,
    Missing,
    /// A source has several values, and none of them is the key.
    Ambiguous,
}

/// A source of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// All requests have one key.
    All,
    /// An empty part of a key of several parts, for a request without the sources before it. A key
    /// of nothing but such parts is none.
    Nothing,
    /// The first bits of the client's address: of IPv4, and of IPv6.
    Address(u8, u8),
    /// A header, in lower case.
    Header(String),
    /// A cookie.
    Cookie(String),
    /// A segment of the path, by its name in the pattern and its number.
    Path(String, usize),
    /// A word of the server, with its colon.
    Field(String),
}

/// The prefix lengths of `address` without numbers: a whole IPv4 address, and of IPv6 the /64 that
/// a host usually has for itself.
const PREFIXES: (u8, u8) = (32, 64);
const EXPECTED: &str =
    "address, address/32/64, header NAME, cookie NAME, path NAME, field NAME or all; two with | between them for the first that is there; nothing as the last of a part";

impl Key {
    /// Reads the parts of a key.
    ///
    /// # Errors
    /// The number of the part, the offset in its text, and what is expected there.
    pub fn parse(texts: &[&str], pattern: &Pattern) -> Result<Key, (usize, usize, &'static str)> {
        let part = |(n, text): (usize, &&str)| {
            let mut at = 0;
            let mut sources = Vec::new();
            for text in text.split('|') {
                let begin = at + text.len() - text.trim_start().len();
                at += text.len() + 1;
                let source =
                    Source::parse(text.trim(), pattern).map_err(|expected| (n, begin, expected))?;
                if sources.last() == Some(&Source::Nothing)
                    || source == Source::Nothing && (sources.is_empty() || texts.len() == 1)
                {
                    return Err((
                        n,
                        begin,
                        "nothing only behind another source, as the last of a part, in a key of several parts",
                    ));
                }
                sources.push(source);
            }
            Ok(sources)
        };
        texts.iter().enumerate().map(part).collect::<Result<Vec<_>, _>>().map(|parts| Key { parts })
    }

    /// All sources.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.parts.iter().flatten()
    }

    /// Whether a client can have another key with every request, because it chooses some part of
    /// the key.
    pub fn is_chosen_by_client(&self) -> bool {
        self.parts.iter().any(|part| part.iter().any(Source::is_chosen_by_client))
    }

    /// The only source, if there is one.
    pub fn only(&self) -> Option<&Source> {
        match &self.parts[..] {
            [part] if part.len() == 1 => part.first(),
            _ => None,
        }
    }

    /// Writes the key of a request behind the bytes in `out`, if the request has one.
    pub(crate) fn write(&self, request: &Seen<'_>, out: &mut Vec<u8>) -> Written {
        let joined = self.parts.len() > 1;
        // Whether some part has a value.
        let mut is_key = false;
        for part in &self.parts {
            let begin = out.len();
            if joined {
                // Room for the part's length. With the lengths, two different lists of parts never
                // have the same bytes.
                out.extend_from_slice(&[0; 4]);
            }
            let mut written = Written::Missing;
            for (n, source) in (0u8..).zip(part) {
                let before = out.len();
                if part.len() > 1 {
                    // The source's number, so that a cookie with the bytes of an address is not the
                    // address's key.
                    out.push(n);
                }
                written = source.write(request, out);
                is_key |= written == Written::Key && *source != Source::Nothing;
                if written != Written::Missing {
                    break;
                }
                out.truncate(before);
            }
            if written != Written::Key {
                return written;
            }
            if joined {
                let length = (out.len() - begin - 4) as u32;
                out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
            }
        }
        if is_key {
            Written::Key
        } else {
            Written::Missing
        }
    }

    /// Writes the value of the first source that the request has behind the bytes in `out`, and
    /// nothing if it has none.
    pub(crate) fn write_value(&self, request: &Seen<'_>, out: &mut Vec<u8>) {
        let _ = self.sources().any(|source| source.write(request, out) == Written::Key);
    }

    /// Whether the key is the client's address.
    pub(crate) fn is_address(&self) -> bool {
        matches!(self.only(), Some(Source::Address(..)))
    }

    /// Whether the key is a segment of the path.
    pub(crate) fn is_of_path(&self) -> bool {
        matches!(self.only(), Some(Source::Path(..)))
    }

    /// The bytes of a key that the rules file names: of one source only. `None` for a text that is
    /// no address.
    pub(crate) fn named(&self, text: &str) -> Option<Vec<u8>> {
        match self.only()? {
            Source::Address(v4, v6) => address_key(address::parse(text.as_bytes())?, *v4, *v6)
                .map(|key| key.as_bytes().to_vec()),
            Source::All => None,
            _ => (!text.is_empty()).then(|| text.as_bytes().to_vec()),
        }
    }
}

impl Source {
    pub(crate) fn parse(text: &str, pattern: &Pattern) -> Result<Source, &'static str> {
        let (word, name) =
            text.split_once([' ', '\t']).map_or((text, ""), |(word, name)| (word, name.trim()));
        let is_name = !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_graphic() && !b"=;:,|".contains(&b));
        match word {
            "all" if name.is_empty() => Ok(Source::All),
            "nothing" if name.is_empty() => Ok(Source::Nothing),
            "address" if name.is_empty() => Ok(Source::Address(PREFIXES.0, PREFIXES.1)),
            "header" if is_name => Ok(Source::Header(name.to_ascii_lowercase())),
            "cookie" if is_name => Ok(Source::Cookie(name.to_owned())),
            "field" if is_name => Ok(Source::Field(format!(":{name}"))),
            "path" => match pattern.position(name) {
                Some(at) => Ok(Source::Path(name.to_owned(), at)),
                None => Err("path NAME with a name that the rule's path has, such as id in /users/:id"),
            },
            _ => match word.strip_prefix("address/").filter(|_| name.is_empty()).map(|bits| bits.split_once('/')) {
                Some(Some((v4, v6))) => match (v4.parse::<u8>(), v6.parse::<u8>()) {
                    (Ok(v4 @ 0..=32), Ok(v6 @ 0..=128)) => Ok(Source::Address(v4, v6)),
                    _ => Err("address/N/M with the bits of an IPv4 prefix, up to 32, and of an IPv6 prefix, up to 128"),
                },
                Some(None) => {
                    Err("address/N/M with the bits of an IPv4 prefix and of an IPv6 prefix, such as address/24/56")
                }
                None => Err(EXPECTED),
            },
        }
    }

    fn write(&self, request: &Seen<'_>, out: &mut Vec<u8>) -> Written {
        if let Source::Address(v4, v6) = self {
            let Some(key) = request.client().and_then(|address| address_key(address, *v4, *v6))
            else {
                return Written::Missing;
            };
            out.extend_from_slice(key.as_bytes());
            return Written::Key;
        }
        match self.said(request) {
            Said::Nothing => Written::Missing,
            Said::Several => Written::Ambiguous,
            Said::One(value) => {
                out.extend_from_slice(value);
                Written::Key
            }
        }
    }

    /// What the request says. An address says nothing, because its key has no text.
    pub(crate) fn said<'r>(&self, request: &'r Seen<'_>) -> Said<'r> {
        match self {
            // One byte, because a table has no empty keys.
            Source::All => Said::One(b"*"),
            Source::Nothing => Said::One(b""),
            Source::Address(..) => Said::Nothing,
            Source::Header(name) | Source::Field(name) => request.field(name),
            Source::Cookie(name) => request.cookie(name),
            Source::Path(_, at) => {
                segments(&request.path).nth(*at).map_or(Said::Nothing, Said::One)
            }
        }
    }

    /// Whether the client sends the value.
    pub fn is_chosen_by_client(&self) -> bool {
        matches!(self, Source::Header(_) | Source::Cookie(_) | Source::Path(..))
    }
}

fn address_key(address: IpAddr, v4: u8, v6: u8) -> Option<Prefix> {
    Prefix::of(address, u32::from(v4), u32::from(v6))
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::All => f.write_str("all"),
            Source::Nothing => f.write_str("nothing"),
            Source::Address(v4, v6) if (*v4, *v6) == PREFIXES => f.write_str("address"),
            Source::Address(v4, v6) => write!(f, "address/{v4}/{v6}"),
            Source::Header(name) => write!(f, "header {name}"),
            Source::Cookie(name) => write!(f, "cookie {name}"),
            Source::Path(name, _) => write!(f, "path {name}"),
            Source::Field(name) => write!(f, "field {}", name.trim_start_matches(':')),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, part) in self.parts.iter().enumerate() {
            f.write_str(if n > 0 { ", " } else { "" })?;
            for (n, source) in part.iter().enumerate() {
                write!(f, "{}{source}", if n > 0 { " | " } else { "" })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Field;

    fn key(texts: &[&str]) -> Key {
        Key::parse(texts, &Pattern::parse("/users/:id").expect("a pattern"))
            .unwrap_or_else(|error| panic!("{texts:?}: {error:?}"))
    }

    fn of(texts: &[&str], fields: &[(&str, &str)]) -> Option<Vec<u8>> {
        let fields: Vec<Field<'_>> = fields
            .iter()
            .map(|(name, value)| Field::new(name.as_bytes(), value.as_bytes()))
            .collect();
        let mut out = Vec::new();
        (key(texts).write(&Seen::new(&fields, &[], Default::default()), &mut out) == Written::Key)
            .then_some(out)
    }

    #[test]
    fn sources() {
        let request = [
            (":path", "/users/7?x"),
            (":address", "192.0.2.9"),
            (":user", "ann"),
            ("X-Key", "k"),
            ("Cookie", "a=1; sid=s=2; b"),
            ("x-empty", ""),
        ];
        for (text, bytes) in [
            ("header x-kEY", Some(&b"k"[..])),
            ("header X-Empty", None),
            ("cookie sid", Some(b"s=2")),
            ("cookie b", None),
            ("path id", Some(b"7")),
            ("field user", Some(b"ann")),
            ("all", Some(b"*")),
            ("address", Some(&[4, 32, 192, 0, 2, 9])),
            ("address/24/56", Some(&[4, 24, 192, 0, 2])),
            ("header none | path id", Some(b"\x017")),
        ] {
            assert_eq!(of(&[text], &request).as_deref(), bytes, "{text}");
        }
        assert_eq!(of(&["field user", "header none"], &request), None);
        // A header cannot be a word of the server.
        assert_eq!(of(&["field user"], &[("user", "ann")]), None);
    }

    #[test]
    fn joined_parts_and_alternatives_do_not_collide() {
        let joined = |a, b| of(&["header a", "header b"], &[("a", a), ("b", b)]);
        assert_ne!(joined("xy", "z"), joined("x", "yz"));
        assert_ne!(joined("x\0\0\0\0y", "z"), joined("x", "y\0\0\0\0z"));
        let either = |fields: &[(&str, &str)]| of(&["header a | header b"], fields);
        assert_ne!(either(&[("a", "x")]), either(&[("b", "x")]));
    }

    /// B7: which value a server takes is not known, and a client that varies one must not get a key
    /// for each.
    #[test]
    fn several_values_are_no_key() {
        let written = |text: &str, fields: &[(&str, &str)]| {
            let fields: Vec<Field<'_>> = fields
                .iter()
                .map(|(name, value)| Field::new(name.as_bytes(), value.as_bytes()))
                .collect();
            key(&[text]).write(&Seen::new(&fields, &[], Default::default()), &mut Vec::new())
        };
        for (text, fields, wanted) in [
            ("header x", &[("X", "a"), ("x", "b")][..], Written::Ambiguous),
            ("header x | all", &[("X", "a"), ("x", "b")], Written::Ambiguous),
            ("header x", &[("X", "a"), ("x", "a"), ("x", "")], Written::Key),
            ("cookie s", &[("Cookie", "s=a; t=c; s=b")], Written::Ambiguous),
            ("cookie s", &[("Cookie", "s=a"), ("cookie", "s=b")], Written::Ambiguous),
            ("cookie s", &[("Cookie", "s=a; s=; s=a")], Written::Key),
            ("cookie s", &[("Cookie", "s=")], Written::Missing),
        ] {
            assert_eq!(written(text, fields), wanted, "{text} {fields:?}");
        }
    }

    /// B1: as nginx joins variables, of which some may be empty.
    #[test]
    fn parts_may_be_empty_but_not_all() {
        let joined =
            |fields: &[(&str, &str)]| of(&["header a | nothing", "header b | nothing"], fields);
        let keys =
            [joined(&[("a", "x")]), joined(&[("b", "x")]), joined(&[("a", "x"), ("b", "x")])];
        assert!(
            keys.iter().all(Option::is_some)
                && keys[0] != keys[1]
                && keys[1] != keys[2]
                && keys[0] != keys[2]
        );
        assert_eq!(joined(&[]), None);
        assert!(of(&["all", "header b | nothing"], &[]).is_some());
        // The two bytes of an empty value are not those of a value that a client could send.
        assert_ne!(joined(&[("a", "x")]), joined(&[("a", "x"), ("b", "\u{1}")]));
    }

    #[test]
    fn a_wrong_source_has_a_place() {
        let pattern = Pattern::parse("/users/:id").expect("a pattern");
        for (texts, part, at) in [
            (&["addres"][..], 0, 0),
            (&["all", "cookie a |  path x"], 1, 12),
            (&["header"], 0, 0),
            (&["address/64"], 0, 0),
            (&["address/33/64"], 0, 0),
            (&["field :user"], 0, 0),
            (&["address | "], 0, 10),
            (&["nothing"], 0, 0),
            (&["header a | nothing"], 0, 11),
            (&["all", "nothing"], 1, 0),
            (&["all", "header a | nothing | all"], 1, 21),
        ] {
            assert_eq!(
                Key::parse(texts, &pattern).map_err(|(part, at, _)| (part, at)),
                Err((part, at)),
                "{texts:?}"
            );
        }
    }
}
