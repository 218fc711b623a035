//! Comma-separated values, a record a line; the first line has the columns' names.

use super::client;
use super::fields::{Named, Role, ROLES};
use super::request::{origin_form, Key, Request, WrongLine};
use crate::civil;
use csv_core::{ReadFieldResult, Reader};
use std::borrow::Cow;

pub struct Csv {
    named: Named,
    /// The column of each role, once the first line has been read.
    columns: Option<[Option<usize>; ROLES]>,
    /// The name of the key's column.
    key: String,
}

/// Whether a log's first line looks like the names of columns: one of them is a usual name of a
/// time.
pub fn is_header(line: &[u8]) -> bool {
    line.contains(&b',')
        && columns(line, &Named::default()).is_some_and(|columns| {
            columns[Role::Time as usize].is_some() && columns[Role::Key as usize].is_some()
        })
}

impl Csv {
    pub fn new(named: Named) -> Csv {
        Csv { named, columns: None, key: String::new() }
    }

    pub fn parse<'a>(
        &mut self,
        line: &'a [u8],
        cut: bool,
    ) -> Result<Option<Request<'a>>, WrongLine> {
        if cut {
            return Err(Cow::Borrowed("longer than a mebibyte"));
        }
        let Some(wanted) = self.columns else {
            let found = columns(line, &self.named).unwrap_or_default();
            for role in [Role::Time, Role::Key] {
                if found[role as usize].is_none() {
                    return Err(Named::missing(role, &self.named.names()));
                }
            }
            self.columns = Some(found);
            fields(line, |n, field| {
                if found[Role::Key as usize] == Some(n) {
                    self.key = String::from_utf8_lossy(field.trim_ascii()).into_owned();
                }
            });
            return Ok(None);
        };
        let mut values: [Vec<u8>; ROLES] = Default::default();
        let mut count = 0;
        fields(line, |n, field| {
            count = n + 1;
            if let Some(role) = wanted.iter().position(|&column| column == Some(n)) {
                values[role] = field.to_vec();
            }
        });
        let [time, key, cost, path, agent, method, class] = values;
        if wanted.iter().flatten().any(|&column| column >= count) {
            return Err(Cow::Owned(format!(
                "{count} columns, expected {} or more",
                wanted.iter().flatten().max().unwrap_or(&0) + 1
            )));
        }
        let time = civil::any(time.trim_ascii()).map_err(Cow::Borrowed)?;
        let key = match self.named.takes_text(&self.key) {
            true => client::any(Cow::Owned(key.trim_ascii().to_vec()), &self.key)?,
            false => Key::Address(client::address(key.trim_ascii(), &self.key)?),
        };
        let cost = match wanted[Role::Cost as usize] {
            None => 1,
            Some(_) => super::trace::number(
                cost.trim_ascii(),
                "the cost is not a whole number",
                "the cost does not fit 64 bits",
            )
            .map_err(Cow::Borrowed)?,
        };
        let own = Cow::Owned;
        let class = own(class.trim_ascii().to_vec());
        let path = own(origin_form(&path).to_vec());
        Ok(Some(Request { time, key, cost, class, path, agent: own(agent), method: own(method) }))
    }
}

/// The columns whose names the line has.
fn columns(line: &[u8], named: &Named) -> Option<[Option<usize>; ROLES]> {
    let names = named.names();
    let mut best: [Option<(usize, usize)>; ROLES] = [None; ROLES];
    fields(line, |n, field| {
        let field = field.trim_ascii();
        if let Some(rank) =
            names.iter().position(|(_, name)| field.eq_ignore_ascii_case(name.as_bytes()))
        {
            let place = &mut best[names[rank].0 as usize];
            if place.is_none_or(|(other, _)| rank < other) {
                *place = Some((rank, n));
            }
        }
    });
    best.iter().any(Option::is_some).then(|| best.map(|found| found.map(|(_, column)| column)))
}

/// Calls `each` with every field of one record. A line feed in quotes ends the record all the same,
/// because lines are cut before.
fn fields(line: &[u8], mut each: impl FnMut(usize, &[u8])) {
    let mut reader = Reader::new();
    let mut out = vec![0; line.len() + 1];
    let (mut at, mut written, mut n) = (0, 0, 0);
    let mut is_last = false;
    loop {
        let (result, took, put) = reader.read_field(&line[at..], &mut out[written..]);
        at += took;
        written += put;
        match result {
            ReadFieldResult::Field { record_end } => {
                each(n, &out[..written]);
                (written, n) = (0, n + 1);
                if record_end {
                    return;
                }
            }
            // Empty input ends the record.
            ReadFieldResult::InputEmpty if !is_last => is_last = true,
            ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull | ReadFieldResult::End => {
                return
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_by_name_in_any_order() {
        let mut csv = Csv::new(Named::default());
        assert!(csv
            .parse(b"Path,\"ip\",status,Time,user_agent", false)
            .expect("a header")
            .is_none());
        let line = b"\"/a,\"\"b\"\"\",192.0.2.1:80,200,2015-05-17T10:05:03Z,x";
        let request = csv.parse(line, false).expect("a request").expect("a request");
        assert_eq!(request.time, 1_431_857_103_000_000_000);
        assert_eq!(request.key, Key::Address([192, 0, 2, 1].into()));
        assert_eq!(
            (&*request.path, &*request.agent, request.cost),
            (&b"/a,\"b\""[..], &b"x"[..], 1)
        );
        assert!(csv
            .parse(b"/,192.0.2.1,200", false)
            .expect_err("too short")
            .contains("3 columns, expected 5"));
        assert!(csv
            .parse(b"/,,200,1431857103,", false)
            .expect_err("no key")
            .contains("no client: ip is"));
        assert!(csv.parse(b"/,\"unclosed,200,1431857103,", false).is_err());
    }

    #[test]
    fn a_header_differs_from_a_log_line() {
        assert!(is_header(b"time,client,path"));
        assert!(!is_header(
            b"192.0.2.1 - - [17/May/2015:10:05:03 +0000] \"GET /time,client HTTP/1.1\" 200 1"
        ));
        let mut named = Named::default();
        named.add("cost=bytes").expect("a field");
        named.add("key=who").expect("a field");
        let mut csv = Csv::new(named);
        assert!(csv.parse(b"ip,who,bytes,ts", false).expect("a header").is_none());
        let request = csv.parse(b"a,b,7,1431857103", false).expect("a request").expect("a request");
        assert_eq!((request.key, request.cost), (Key::Text(Cow::Borrowed(b"b")), 7));
    }
}
