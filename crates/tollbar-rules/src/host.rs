//! The hosts of a rule, and the host of a request.

/// A host, or all hosts below a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// In lower case, without a dot at its end. Of `*.example.com` it is `.example.com`.
    name: String,
}

impl Host {
    /// Reads `admin.example.com`, or `*.example.com` for all hosts below that domain.
    ///
    /// # Errors
    /// The offset of the wrong character, and what is expected there.
    pub fn parse(text: &str) -> Result<Host, (usize, &'static str)> {
        let (skipped, rest) = match text.strip_prefix("*.") {
            Some(rest) => (2, rest),
            None => (0, text),
        };
        let is_address = skipped == 0 && rest.starts_with('[') && rest.ends_with(']');
        let is_wrong = |c: char| match is_address {
            true => !(c.is_ascii_hexdigit() || "[]:.".contains(c)),
            false => !(c.is_ascii_alphanumeric() || "-_.".contains(c)),
        };
        if let Some(at) = rest.find(is_wrong) {
            return Err((
                skipped + at,
                "a host without a port, such as admin.example.com, or *.example.com",
            ));
        }
        let name = rest.trim_end_matches('.').to_ascii_lowercase();
        if name.is_empty() || name.starts_with('.') {
            return Err((skipped, "a host such as admin.example.com, or *.example.com"));
        }
        Ok(Host { name: if skipped > 0 { format!(".{name}") } else { name } })
    }

    /// Whether the rule is for a host of `bare`.
    pub fn matches(&self, host: &[u8]) -> bool {
        match self.domain() {
            Some(domain) => {
                host.len() > domain.len()
                    && host[host.len() - domain.len()..].eq_ignore_ascii_case(domain.as_bytes())
            }
            None => host.eq_ignore_ascii_case(self.name.as_bytes()),
        }
    }

    /// Whether it is one host, not all those below a domain.
    pub fn is_one(&self) -> bool {
        self.domain().is_none()
    }

    /// Whether every request that `other` matches matches this one too.
    pub fn covers(&self, other: &Host) -> bool {
        match self.domain() {
            Some(domain) => other.name.len() >= domain.len() && other.name.ends_with(domain),
            None => self.name == other.name,
        }
    }

    fn domain(&self) -> Option<&str> {
        self.name.starts_with('.').then_some(&self.name)
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.is_one() { "" } else { "*" }, self.name)
    }
}

/// A host without its port and without a dot at its end.
pub fn bare(host: &[u8]) -> &[u8] {
    let host = host.trim_ascii();
    let end = match host.first() {
        // An IPv6 address stands in brackets, because it has colons of its own.
        Some(b'[') => host.iter().position(|&byte| byte == b']').map_or(host.len(), |at| at + 1),
        _ => host.iter().position(|&byte| byte == b':').unwrap_or(host.len()),
    };
    let host = &host[..end];
    host.strip_suffix(b".").unwrap_or(host)
}

/// The host of a target that has one: `http://host/path`.
pub fn of_target(target: &[u8]) -> Option<&[u8]> {
    if target.starts_with(b"/") {
        return None;
    }
    let at = target.windows(3).position(|window| window == b"://")?;
    let rest = &target[at + 3..];
    let end =
        rest.iter().position(|&byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let host = &rest[..end];
    Some(host.iter().rposition(|&byte| byte == b'@').map_or(host, |at| &host[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_no_case_no_port_and_no_dot_at_its_end() {
        for (pattern, host, matches) in [
            ("admin.example.com", "admin.example.com", true),
            ("Admin.example.com.", "ADMIN.example.com:8443", true),
            ("admin.example.com", "admin.example.com.", true),
            ("admin.example.com", "x.admin.example.com", false),
            ("admin.example.com", "admin.example.com.evil.org", false),
            ("*.example.com", "a.b.example.com:80", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "badexample.com", false),
            ("[2001:db8::1]", "[2001:DB8::1]:443", true),
            ("localhost", "", false),
        ] {
            let host_of_rule = Host::parse(pattern).unwrap_or_else(|error| panic!("{error:?}"));
            assert_eq!(host_of_rule.matches(bare(host.as_bytes())), matches, "{pattern} {host}");
        }
        for (text, at) in [("", 0), ("*.", 2), ("a b", 1), ("a:80", 1), ("*", 0), ("a.*.b", 2)] {
            assert_eq!(Host::parse(text).map_err(|(at, _)| at), Err(at), "{text}");
        }
    }

    #[test]
    fn hosts_cover_each_other() {
        let host = |text| Host::parse(text).unwrap_or_else(|error| panic!("{error:?}"));
        for (one, other, covers) in [
            ("*.a.b", "x.a.b", true),
            ("*.a.b", "*.x.a.b", true),
            ("*.a.b", "*.a.b", true),
            ("*.a.b", "a.b", false),
            ("x.a.b", "*.a.b", false),
            ("a.b", "a.b", true),
        ] {
            assert_eq!(host(one).covers(&host(other)), covers, "{one} {other}");
        }
    }

    #[test]
    fn a_target_may_name_its_host() {
        for (target, host) in [
            ("http://a.b/c", Some("a.b")),
            ("http://user@a.b:80?x", Some("a.b:80")),
            ("/http://a.b/c", None),
            ("*", None),
        ] {
            assert_eq!(of_target(target.as_bytes()), host.map(str::as_bytes), "{target}");
        }
    }
}
