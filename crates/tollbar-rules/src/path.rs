//! Paths, and the patterns that rules have for them.

use std::borrow::Cow;

/// A pattern: `/login`, `/api/**`, `/users/:id/avatar`, `/static/*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: String,
    parts: Vec<Segment>,
    /// It ends in `**`: more segments may follow, or none.
    open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Segment {
    Literal(String),
    /// Any one segment, with a name or without.
    Any(Option<String>),
}

/// How narrow a pattern is, from its first segment on: a greater value is narrower.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Narrowness(Vec<u8>);

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// The offset of the wrong byte or segment, and what is expected there.
    pub fn parse(text: &str) -> Result<Pattern, (usize, &'static str)> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err((0, "a path that begins with /, such as /login or /api/**"));
        };
        if let Some(at) = text.find(['?', '#', '%']) {
            return Err((at, "a decoded path without a query, because that is what the rules see"));
        }
        let mut pattern = Pattern { text: text.to_owned(), parts: Vec::new(), open: false };
        let mut at = 1;
        // A slash at the end does not count, as in requests.
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.is_empty() {
            return Ok(pattern);
        }
        for segment in rest.split('/') {
            if pattern.open {
                return Err((at, "** at the end only"));
            }
            match segment {
                "**" => pattern.open = true,
                "*" => pattern.parts.push(Segment::Any(None)),
                "" | "." | ".." => return Err((at, "a segment with a name")),
                _ => match segment.strip_prefix(':') {
                    Some(name)
                        if !name.is_empty()
                            && name
                                .bytes()
                                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') =>
                    {
                        if pattern.position(name).is_some() {
                            return Err((at, "each name of a segment once"));
                        }
                        pattern.parts.push(Segment::Any(Some(name.to_owned())));
                    }
                    Some(_) => {
                        return Err((at, "a name of letters, digits, _ and - after the colon"))
                    }
                    None if segment.contains('*') => {
                        return Err((at, "* or ** as a whole segment"))
                    }
                    None => pattern.parts.push(Segment::Literal(segment.to_owned())),
                },
            }
            at += segment.len() + 1;
        }
        Ok(pattern)
    }

    /// The pattern for paths in lower case.
    pub(crate) fn in_lower_case(mut self) -> Pattern {
        for part in &mut self.parts {
            if let Segment::Literal(text) = part {
                text.make_ascii_lowercase();
            }
        }
        self
    }

    /// The text that it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number of the segment that has the name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.parts.iter().position(|part| matches!(part, Segment::Any(Some(own)) if own == name))
    }

    /// Whether the pattern matches a path. The path must be decoded, and without query, empty
    /// segments, `.` and `..`.
    pub fn matches(&self, path: &[u8]) -> bool {
        let mut segments = segments(path);
        for part in &self.parts {
            match (part, segments.next()) {
                (_, None) => return false,
                (Segment::Literal(wanted), Some(found)) if wanted.as_bytes() != found => {
                    return false
                }
                _ => {}
            }
        }
        self.open || segments.next().is_none()
    }

    /// How narrow the pattern is. Of several routes the narrowest is the nearest.
    pub fn narrowness(&self) -> Narrowness {
        let of = |part: &Segment| if matches!(part, Segment::Literal(_)) { 3 } else { 2 };
        // The end of the path is narrower than "anything may follow", and a segment is narrower
        // than both.
        Narrowness(self.parts.iter().map(of).chain([u8::from(!self.open)]).collect())
    }

    /// Whether some path matches both.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        let differ = |(one, two): (&Segment, &Segment)| match (one, two) {
            (Segment::Literal(one), Segment::Literal(two)) => one != two,
            _ => false,
        };
        if self.parts.iter().zip(&other.parts).any(differ) {
            return false;
        }
        let (one, two) = (self.parts.len(), other.parts.len());
        (one >= two || self.open) && (two >= one || other.open)
    }

    /// Whether every path that `other` matches matches this pattern too.
    pub fn covers(&self, other: &Pattern) -> bool {
        if self.parts.len() > other.parts.len()
            || (!self.open && (other.open || self.parts.len() != other.parts.len()))
        {
            return false;
        }
        self.parts.iter().zip(&other.parts).all(|(one, two)| match (one, two) {
            (Segment::Any(_), _) => true,
            (Segment::Literal(one), Segment::Literal(two)) => one == two,
            (Segment::Literal(_), Segment::Any(_)) => false,
        })
    }
}

/// The segments of a path from [`normal`].
pub fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let rest = path.strip_prefix(b"/").unwrap_or(path);
    rest.split(|&byte| byte == b'/').filter(|segment| !segment.is_empty())
}

/// Which spellings of a path are the same for the server behind the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spelling {
    /// `/LOGIN` is `/login`: upper and lower case of ASCII letters do not differ.
    pub any_case: bool,
    /// `/login;x=1` is `/login`: a segment ends at the first semicolon, as in servlets.
    pub parameters: bool,
}

impl Spelling {
    /// [`normal`], for a server of this kind.
    pub fn normal(self, target: &[u8]) -> Cow<'_, [u8]> {
        let mut path = if self.parameters && target.contains(&b';') {
            // A semicolon that is written as %3B begins no parameter.
            Cow::Owned(normal(&without_parameters(target)).into_owned())
        } else {
            normal(target)
        };
        if self.any_case && path.iter().any(u8::is_ascii_uppercase) {
            path.to_mut().make_ascii_lowercase();
        }
        path
    }
}

fn without_parameters(target: &[u8]) -> Vec<u8> {
    let end = target.iter().position(|&byte| byte == b'?' || byte == b'#').unwrap_or(target.len());
    let (path, rest) = target.split_at(end);
    let mut out = Vec::with_capacity(target.len());
    for (n, segment) in path.split(|&byte| byte == b'/').enumerate() {
        if n > 0 {
            out.push(b'/');
        }
        out.extend(segment.iter().take_while(|&&byte| byte != b';'));
    }
    out.extend_from_slice(rest);
    out
}

/// The path of a request as rules see it, so that another spelling of a path does not get around a
/// rule: without scheme, host, query and fragment, with `%XX` decoded once, and without empty
/// segments, `.` and `..`.
pub fn normal(target: &[u8]) -> Cow<'_, [u8]> {
    let mut path = target;
    if !path.starts_with(b"/") {
        // "http://host/path", as proxies are asked.
        if let Some(at) = path.windows(3).position(|window| window == b"://") {
            let rest = &path[at + 3..];
            path = rest
                .iter()
                .position(|&byte| matches!(byte, b'/' | b'?' | b'#'))
                .map_or(b"/", |at| &rest[at..]);
        }
    }
    let end = path.iter().position(|&byte| byte == b'?' || byte == b'#').unwrap_or(path.len());
    let path = &path[..end];
    let is_plain = path.starts_with(b"/")
        && !path.contains(&b'%')
        && !path.windows(2).any(|pair| pair == b"//" || pair == b"/.");
    if is_plain {
        return Cow::Borrowed(path);
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(&byte) = path.get(at) {
        let hex = |n: usize| path.get(at + n).and_then(|&byte| char::from(byte).to_digit(16));
        match (byte, hex(1), hex(2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    let mut out: Vec<u8> = Vec::with_capacity(decoded.len() + 1);
    for segment in decoded.split(|&byte| byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                let end = out.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                out.truncate(end);
            }
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
    }
    if out.is_empty() {
        out.push(b'/');
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    #[test]
    fn patterns_match() {
        for (text, paths, others) in [
            ("/login", &["/login", "/login/"][..], &["/", "/login/x", "/Login", "/logins"][..]),
            ("/api/**", &["/api", "/api/", "/api/a", "/api/a/b"], &["/apis", "/"]),
            (
                "/users/:id/avatar",
                &["/users/7/avatar"],
                &["/users/avatar", "/users/7/8/avatar", "/users/7"],
            ),
            ("/static/*", &["/static/x"], &["/static", "/static/x/y"]),
            ("/**", &["/", "/x", "/x/y"], &[]),
            ("/", &["/"], &["/x"]),
        ] {
            let pattern = pattern(text);
            paths.iter().for_each(|path| {
                assert!(pattern.matches(&normal(path.as_bytes())), "{text} {path}")
            });
            others.iter().for_each(|path| {
                assert!(!pattern.matches(&normal(path.as_bytes())), "{text} {path}")
            });
        }
        for (text, at) in [
            ("login", 0),
            ("/a//b", 3),
            ("/a/**/b", 6),
            ("/a*", 1),
            ("/:", 1),
            ("/:a/:a", 4),
            ("/a?b", 2),
            ("/%61", 1),
        ] {
            assert_eq!(Pattern::parse(text).map_err(|(at, _)| at), Err(at), "{text}");
        }
    }

    #[test]
    fn other_spellings_are_the_same_path() {
        for target in [
            "/login",
            "//login",
            "/./login",
            "/x/../login",
            "/%6cogin",
            "/%6Cogin?x=/y",
            "/login#f",
            "http://host/login",
            "/x/%2e%2e/login",
            "/login/.",
        ] {
            assert_eq!(normal(target.as_bytes()), &b"/login"[..], "{target}");
        }
        for (target, path) in [
            ("", "/"),
            ("*", "/*"),
            ("/..", "/"),
            ("/%", "/%"),
            ("/%4", "/%4"),
            ("/%2541", "/%41"),
            ("http://host", "/"),
            ("http://host?x", "/"),
        ] {
            assert_eq!(normal(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }

    /// B7: a servlet container serves `/login;x=1` as `/login`, and some servers `/LOGIN`.
    #[test]
    fn spellings_of_other_servers() {
        let of = |any_case, parameters| Spelling { any_case, parameters };
        for (target, spelling, path) in [
            ("/login;x=1", of(false, false), "/login;x=1"),
            ("/login;x=1", of(false, true), "/login"),
            ("/a;x/login;y=/b?c;d", of(false, true), "/a/login/b"),
            ("/login%3Bx", of(false, true), "/login;x"),
            ("/..;/login", of(false, true), "/login"),
            ("/x/..;a=b/login", of(false, true), "/login"),
            ("/;/login;", of(false, true), "/login"),
            ("/LogIn", of(false, true), "/LogIn"),
            ("/LogIn", of(true, false), "/login"),
            ("/%4CogIn;X", of(true, true), "/login"),
            ("http://host/A;b", of(true, true), "/a"),
        ] {
            assert_eq!(
                spelling.normal(target.as_bytes()),
                path.as_bytes(),
                "{target} {spelling:?}"
            );
        }
        assert!(pattern("/Users/:Id/**").in_lower_case().matches(b"/users/7"));
    }

    /// Against all paths of up to three segments out of an alphabet of two and a stranger.
    #[test]
    fn overlaps_and_covers_say_what_matches_does() {
        let parts = ["a", "b", "*"];
        let mut texts = vec!["/".to_owned(), "/**".to_owned()];
        for one in parts {
            texts.extend([format!("/{one}"), format!("/{one}/**")]);
            texts.extend(
                parts.iter().flat_map(|two| [format!("/{one}/{two}"), format!("/{one}/{two}/**")]),
            );
        }
        let words = ["a", "b", "c"];
        let mut paths = vec!["/".to_owned()];
        for one in words {
            paths.push(format!("/{one}"));
            for two in words {
                paths.push(format!("/{one}/{two}"));
                paths.extend(words.iter().map(|three| format!("/{one}/{two}/{three}")));
            }
        }
        for one in texts.iter().map(|text| pattern(text)) {
            for two in texts.iter().map(|text| pattern(text)) {
                let (mut both, mut covered) = (false, true);
                for path in &paths {
                    let (a, b) = (one.matches(path.as_bytes()), two.matches(path.as_bytes()));
                    both |= a && b;
                    covered &= a || !b;
                }
                assert_eq!(
                    (one.overlaps(&two), one.covers(&two)),
                    (both, covered),
                    "{} {}",
                    one.text,
                    two.text
                );
            }
        }
    }

    #[test]
    fn literal_segments_are_narrower() {
        let order = ["/**", "/:a/**", "/:a", "/a/**", "/a", "/a/:b", "/a/b"];
        for pair in order.windows(2) {
            assert!(pattern(pair[0]).narrowness() < pattern(pair[1]).narrowness(), "{pair:?}");
        }
    }
}
