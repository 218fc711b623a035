//! W3C extended log format: IIS, Amazon CloudFront and others that name their fields in a line
//! `#Fields:`.

use super::client;
use super::fields::{Named, Role};
use super::request::{Key, Request, WrongLine};
use crate::civil;
use std::borrow::Cow;

pub struct W3c {
    named: Named,
    /// The columns, once a line has named them.
    columns: Option<Columns>,
}

/// Whether a log's first line is one of this format's directives.
pub fn is_directive(line: &[u8]) -> bool {
    [&b"#Fields:"[..], b"#Version:", b"#Software:", b"#Date:", b"#Remark:"]
        .iter()
        .any(|name| line.starts_with(name))
}

/// Which field is in which column, from 0 on.
struct Columns {
    time: Time,
    key: usize,
    /// What messages call the key.
    name: String,
    cost: Option<usize>,
    class: Option<usize>,
    method: Option<usize>,
    path: Option<usize>,
    query: Option<usize>,
    agent: Option<usize>,
}

enum Time {
    /// A date and a time of day, in UTC.
    Two(usize, usize),
    One(usize),
}

impl Columns {
    fn new(names: &[u8], named: &Named) -> Result<Columns, WrongLine> {
        let at =
            |name: &str| cells(names).position(|cell| cell.eq_ignore_ascii_case(name.as_bytes()));
        let find = |role, usual: &str| match named.of(role) {
            Some(name) => at(name)
                .map(Some)
                .ok_or_else(|| Cow::Owned(format!("#Fields: has no field {name}"))),
            None => Ok(at(usual)),
        };
        let time = match named.of(Role::Time) {
            Some(name) => Time::One(
                at(name).ok_or_else(|| Cow::Owned(format!("#Fields: has no field {name}")))?,
            ),
            None => match (at("date"), at("time")) {
                (Some(date), Some(time)) => Time::Two(date, time),
                _ => {
                    return Err(Cow::Borrowed(
                        "#Fields: has no date and time (--field time=NAME names another field)",
                    ))
                }
            },
        };
        let no_key =
            || Cow::Borrowed("#Fields: has no c-ip (--field key=NAME names another field)");
        Ok(Columns {
            time,
            key: find(Role::Key, "c-ip")?.ok_or_else(no_key)?,
            name: named.of(Role::Key).unwrap_or("c-ip").to_owned(),
            cost: find(Role::Cost, "")?,
            class: find(Role::Class, "")?,
            method: find(Role::Method, "cs-method")?,
            path: find(Role::Path, "cs-uri-stem")?,
            query: if named.of(Role::Path).is_none() { at("cs-uri-query") } else { None },
            agent: find(Role::Agent, "cs(User-Agent)")?,
        })
    }
}

impl W3c {
    pub fn new(named: Named) -> W3c {
        W3c { named, columns: None }
    }

    pub fn parse<'a>(
        &mut self,
        line: &'a [u8],
        cut: bool,
    ) -> Result<Option<Request<'a>>, WrongLine> {
        if cut {
            return Err(Cow::Borrowed("longer than a mebibyte"));
        }
        if line.starts_with(b"#") {
            if let Some(names) = line.strip_prefix(b"#Fields:") {
                self.columns = None;
                self.columns = Some(Columns::new(names.trim_ascii(), &self.named)?);
            }
            return Ok(None);
        }
        let columns = self
            .columns
            .as_ref()
            .ok_or(Cow::Borrowed("no line #Fields: with the fields' names is before it"))?;
        let cells: Vec<&[u8]> = cells(line).collect();
        let cell = |at: Option<usize>| match at.and_then(|at| cells.get(at).copied()) {
            Some(b"-") | None => &b""[..],
            Some(cell) => cell,
        };
        let time = match columns.time {
            Time::One(at) => civil::any(cell(Some(at))),
            Time::Two(date, time) => {
                civil::rfc3339(&[cell(Some(date)), b"T", cell(Some(time)), b"Z"].concat())
            }
        };
        let key = cell(Some(columns.key));
        let key = match self.named.takes_text(&columns.name) {
            true => client::any(Cow::Borrowed(key), &columns.name)?,
            false => Key::Address(client::address(key, &columns.name)?),
        };
        let cost = match columns.cost {
            None => 1,
            at => super::trace::number(
                cell(at),
                "the cost is not a whole number",
                "the cost does not fit 64 bits",
            )
            .map_err(Cow::Borrowed)?,
        };
        let path = match (cell(columns.path), cell(columns.query)) {
            (path, []) => Cow::Borrowed(path),
            (path, query) => Cow::Owned([path, b"?", query].concat()),
        };
        Ok(Some(Request {
            time: time.map_err(Cow::Borrowed)?,
            key,
            cost,
            class: Cow::Borrowed(cell(columns.class)),
            path,
            agent: Cow::Borrowed(cell(columns.agent)),
            method: Cow::Borrowed(cell(columns.method)),
        }))
    }
}

/// CloudFront puts tabs between fields, and IIS blanks.
fn cells(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let between = if line.contains(&b'\t') { b'\t' } else { b' ' };
    // Several blanks are one; an empty field is `-`.
    line.split(move |&byte| byte == between).filter(|cell| !cell.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        w3c: &mut W3c,
        line: &'static str,
    ) -> Result<Option<(u64, String, String, String)>, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let request = w3c.parse(line.as_bytes(), false).map_err(Cow::into_owned)?;
        Ok(request.map(|request| {
            let key = match request.key {
                Key::Address(address) => address.to_string(),
                Key::Text(key) => text(&key),
            };
            (request.time, key, text(&request.method), text(&request.path))
        }))
    }

    const AT: u64 = 1_728_568_500_000_000_000;

    #[test]
    fn iis_and_cloudfront() {
        let expected =
            |path: &str| Ok(Some((AT, "192.0.2.1".to_owned(), "GET".to_owned(), path.to_owned())));
        let mut iis = W3c::new(Named::default());
        assert!(read(&mut iis, "2024-10-10 13:55:00 192.0.2.1")
            .is_err_and(|why| why.contains("#Fields:")));
        assert_eq!(
            read(&mut iis, "#Software: Microsoft Internet Information Services 10.0"),
            Ok(None)
        );
        assert_eq!(
            read(
                &mut iis,
                "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query c-ip cs(User-Agent)"
            ),
            Ok(None)
        );
        assert_eq!(
            read(&mut iis, "2024-10-10 13:55:00 10.0.0.1 GET /p a=b 192.0.2.1 curl/8"),
            expected("/p?a=b")
        );
        assert_eq!(
            read(&mut iis, "2024-10-10 13:55:00 10.0.0.1 GET /p - 192.0.2.1 -"),
            expected("/p")
        );
        for (line, why) in [
            ("2024-10-10 13:55:00 10.0.0.1 GET /p - - -", "no client: c-ip is"),
            ("2024-10-10 13:55:00", "no client: c-ip is"),
            ("2024-10-10 - 10.0.0.1 GET /p - 192.0.2.1 -", "the hour"),
            ("#Fields: date time cs-method", "no c-ip"),
            ("#Fields: date c-ip", "no date and time"),
        ] {
            assert!(read(&mut iis, line).expect_err(line).contains(why), "{line}");
        }
        // A log that is gone on with names its fields again, perhaps in another order.
        assert_eq!(read(&mut iis, "#Fields:\tc-ip\tdate\ttime\tcs-method\tcs-uri-stem"), Ok(None));
        assert_eq!(read(&mut iis, "192.0.2.1\t2024-10-10\t13:55:00\tGET\t/p"), expected("/p"));
    }

    #[test]
    fn other_fields() {
        let mut named = Named::default();
        named.add("key=cs(Cookie)").expect("a field");
        let mut w3c = W3c::new(named);
        assert_eq!(read(&mut w3c, "#Fields: date time c-ip cs(Cookie) cs-uri-stem"), Ok(None));
        let request = read(&mut w3c, "2024-10-10 13:55:00 192.0.2.1 session=7 /p");
        assert_eq!(request, Ok(Some((AT, "session=7".to_owned(), String::new(), "/p".to_owned()))));
        assert!(read(&mut w3c, "#Fields: date time c-ip")
            .is_err_and(|why| why.contains("no field cs(Cookie)")));
    }
}
