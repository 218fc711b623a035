//! Which field of a JSON object, or column of a CSV file, says what.

use std::borrow::Cow;

/// What a field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Time,
    Key,
    Cost,
    Path,
    Agent,
    Method,
    Class,
}

/// All of them, for arrays by role.
pub const ROLES: usize = 7;

/// Names that servers give, the best of a role first. A name with points is a path into nested objects.
const USUAL: [(Role, &[&str]); 5] = [
    (
        Role::Time,
        &[
            "time_iso8601",
            "start_time",
            "ts",
            "time",
            "timestamp",
            "@timestamp",
            "msec",
            "time_local",
            "datetime",
            "date",
        ],
    ),
    (
        Role::Key,
        &[
            "request.client_ip",
            "request.remote_ip",
            "client_ip",
            "remote_addr",
            "remote_ip",
            "downstream_remote_address",
            "request.remote_addr",
            "x_forwarded_for",
            "clientip",
            "client",
            "ip",
            "address",
            "key",
            "user",
        ],
    ),
    (Role::Path, &["request_uri", "request.uri", "uri", "path", "url", "x_envoy_origin_path", "request"]),
    (Role::Agent, &["http_user_agent", "user_agent", "request.headers.User-Agent", "agent"]),
    (Role::Method, &["request_method", "request.method", "method", "verb"]),
];

/// The names that the caller gave in place of the usual ones.
#[derive(Clone, Debug, Default)]
pub struct Named {
    given: Vec<(Role, String)>,
}

impl Named {
    /// `time=NAME`, `key=NAME`, `cost=NAME`, `class=NAME`, `path=NAME`, `agent=NAME` or `method=NAME`.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let wrong = || {
            let roles = "time=NAME, key=NAME, cost=NAME, class=NAME, path=NAME, agent=NAME or method=NAME";
            format!("--field is {roles}, not '{text}'")
        };
        let (role, name) = text.split_once('=').filter(|(_, name)| !name.is_empty()).ok_or_else(wrong)?;
        let role = match role {
            "time" => Role::Time,
            "key" => Role::Key,
            "cost" => Role::Cost,
            "path" => Role::Path,
            "agent" => Role::Agent,
            "method" => Role::Method,
            "class" => Role::Class,
            _ => return Err(wrong()),
        };
        self.given.push((role, name.to_owned()));
        Ok(())
    }

    /// All names with their roles, the best first.
    pub fn names(&self) -> Vec<(Role, Cow<'static, str>)> {
        let mut names: Vec<_> = self.given.iter().map(|(role, name)| (*role, Cow::Owned(name.clone()))).collect();
        for (role, usual) in USUAL {
            if !self.given.iter().any(|(given, _)| *given == role) {
                names.extend(usual.iter().map(|&name| (role, Cow::Borrowed(name))));
            }
        }
        names
    }

    /// What a message says is missing.
    pub fn missing(role: Role, names: &[(Role, Cow<'static, str>)]) -> Cow<'static, str> {
        let what = match role {
            Role::Time => "time",
            Role::Key => "client's address",
            _ => "field",
        };
        let tried: Vec<&str> = names.iter().filter(|(of, _)| *of == role).map(|(_, name)| &**name).collect();
        Cow::Owned(format!("no {what}: none of {} is there (--field names another)", tried.join(", ")))
    }
}

/// An address without its port: `192.0.2.1:5432` and `[2001:db8::1]:5432`, which Caddy and Envoy write.
pub fn without_port(address: &[u8]) -> &[u8] {
    if let Some(inside) = address.strip_prefix(b"[") {
        if let Some(end) = inside.iter().position(|&byte| byte == b']') {
            return &inside[..end];
        }
    }
    let mut colons = address.iter().enumerate().filter(|(_, &byte)| byte == b':').map(|(at, _)| at);
    match (colons.next(), colons.next()) {
        (Some(at), None) if at > 0 && address[at + 1..].iter().all(u8::is_ascii_digit) => &address[..at],
        _ => address,
    }
}

/// The last address of an X-Forwarded-For list: the one that the nearest proxy has added.
pub fn last_hop(list: &[u8]) -> &[u8] {
    list.rsplit(|&byte| byte == b',').next().unwrap_or(list).trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_hops() {
        for (given, address) in [
            ("192.0.2.1:5432", "192.0.2.1"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:db8::1]:80", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("user:name", "user:name"),
            (":1", ":1"),
        ] {
            assert_eq!(without_port(given.as_bytes()), address.as_bytes());
        }
        assert_eq!(last_hop(b"198.51.100.1, 192.0.2.7 "), b"192.0.2.7");
    }
}
