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

impl Role {
    const ALL: [Role; ROLES] =
        [Role::Time, Role::Key, Role::Cost, Role::Path, Role::Agent, Role::Method, Role::Class];

    /// The word of the command line.
    const fn name(self) -> &'static str {
        match self {
            Role::Time => "time",
            Role::Key => "key",
            Role::Cost => "cost",
            Role::Path => "path",
            Role::Agent => "agent",
            Role::Method => "method",
            Role::Class => "class",
        }
    }
}

/// Names that servers give, the best of a role first. A name with points is a path into nested
/// objects.
const USUAL: [(Role, &[&str]); 5] = [
    (
        Role::Time,
        &[
            "time_iso8601",
            "start_time",
            "StartUTC",
            "EdgeStartTimestamp",
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
            "ClientIP",
            "ClientHost",
            "ClientAddr",
            "httpRequest.remoteIp",
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
    (
        Role::Path,
        &[
            "request_uri",
            "request.uri",
            "uri",
            "path",
            "url",
            "x_envoy_origin_path",
            "ClientRequestURI",
            "ClientRequestPath",
            "RequestPath",
            "httpRequest.requestUrl",
            "request",
        ],
    ),
    (
        Role::Agent,
        &[
            "http_user_agent",
            "user_agent",
            "request.headers.User-Agent",
            "agent",
            "ClientRequestUserAgent",
            "request_User-Agent",
            "httpRequest.userAgent",
        ],
    ),
    (
        Role::Method,
        &[
            "request_method",
            "request.method",
            "method",
            "verb",
            "ClientRequestMethod",
            "RequestMethod",
            "httpRequest.requestMethod",
        ],
    ),
];

/// The names that the caller gave in place of the usual ones.
#[derive(Clone, Debug, Default)]
pub struct Named {
    given: Vec<(Role, String)>,
}

impl Named {
    /// `time=NAME`, `key=NAME`, `cost=NAME`, `class=NAME`, `path=NAME`, `agent=NAME` or
    /// `method=NAME`.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let wrong = || {
            let roles =
                "time=NAME, key=NAME, cost=NAME, class=NAME, path=NAME, agent=NAME or method=NAME";
            format!("--field is {roles}, not '{text}'")
        };
        let (role, name) =
            text.split_once('=').filter(|(_, name)| !name.is_empty()).ok_or_else(wrong)?;
        let role = Role::ALL.into_iter().find(|of| of.name() == role).ok_or_else(wrong)?;
        self.given.push((role, name.to_owned()));
        Ok(())
    }

    /// All names with their roles, the best first.
    pub fn names(&self) -> Vec<(Role, Cow<'static, str>)> {
        let mut names: Vec<_> =
            self.given.iter().map(|(role, name)| (*role, Cow::Owned(name.clone()))).collect();
        for (role, usual) in USUAL {
            if !self.given.iter().any(|(given, _)| *given == role) {
                names.extend(usual.iter().map(|&name| (role, Cow::Borrowed(name))));
            }
        }
        names
    }

    /// The number, from 1 on, of the word that is the key in lines without names, if `key=NUMBER`
    /// is all that the caller gave.
    pub fn word(&self, format: &str) -> Result<Option<usize>, String> {
        let wrong = |role: &str| {
            format!(
                "--field for {format} is key=N, the number of the word that is the key, not {role}"
            )
        };
        match &self.given[..] {
            [] => Ok(None),
            [(Role::Key, number)] => match number.parse() {
                Ok(number @ 1..) => Ok(Some(number)),
                _ => Err(wrong(&format!("key={number}"))),
            },
            [(role, name), ..] => Err(wrong(&format!("{}={name}", role.name()))),
        }
    }

    /// Refuses any names, for a format whose lines have fixed places.
    pub fn none(&self, format: &str) -> Result<(), String> {
        match self.given.first() {
            None => Ok(()),
            Some((role, name)) => {
                Err(format!("--field {}={name}: {format} has no names of fields", role.name()))
            }
        }
    }

    /// The name that the caller gave to a role.
    pub fn of(&self, role: Role) -> Option<&str> {
        self.given.iter().find(|(given, _)| *given == role).map(|(_, name)| &**name)
    }

    /// Whether the field of that name may hold a key that is no address: if the caller has named
    /// it, or if it does not say what it holds.
    pub fn takes_text(&self, name: &str) -> bool {
        let is_text = |text: &str| name.eq_ignore_ascii_case(text);
        is_text("key")
            || is_text("user")
            || self.given.iter().any(|(role, given)| *role == Role::Key && is_text(given))
    }

    /// What a message says is missing.
    pub fn missing(role: Role, names: &[(Role, Cow<'static, str>)]) -> Cow<'static, str> {
        let what = match role {
            Role::Time => "time",
            Role::Key => "client's address",
            _ => "field",
        };
        let tried: Vec<&str> =
            names.iter().filter(|(of, _)| *of == role).map(|(_, name)| &**name).collect();
        Cow::Owned(format!(
            "no {what}: none of {} is there (--field names another)",
            tried.join(", ")
        ))
    }
}
