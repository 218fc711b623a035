//! What collectors of logs put in front of a server's line: containers' runtimes, Kubernetes and
//! syslog.

use crate::civil;

/// The prefixes that one line may have: docker compose's, a time and syslog's.
const MOST: usize = 3;

/// The line behind the prefixes of collectors; all of it if it has none.
///
/// ```text
/// web-1  | LINE                                    docker compose
/// [pod/web-0/nginx] LINE                           kubectl logs --prefix
/// 2024-10-10T13:55:00.1Z stdout F LINE             the files of containerd and CRI-O
/// 2024-10-10T13:55:00.1Z LINE                      docker logs --timestamps
/// <190>Oct 10 13:55:00 host nginx[123]: LINE       syslog, journalctl
/// 2024-10-10T13:55:00.1+02:00 host nginx: LINE     rsyslog
/// <190>1 2024-10-10T13:55:00.1Z host nginx 1 - - LINE
/// ```
pub fn behind(line: &[u8]) -> &[u8] {
    let mut line = line.trim_ascii_start();
    for _ in 0..MOST {
        match behind_one(line) {
            Some(rest) => line = rest,
            None => break,
        }
    }
    line
}

fn behind_one(line: &[u8]) -> Option<&[u8]> {
    if let Some(pod) = line.strip_prefix(b"[pod/") {
        return pod
            .iter()
            .position(|&byte| byte == b']')
            .map(|end| pod[end + 1..].trim_ascii_start());
    }
    if let Some(rest) = line.strip_prefix(b"<") {
        let end = rest.iter().take(4).position(|&byte| byte == b'>')?;
        let rest = rest[..end].iter().all(u8::is_ascii_digit).then(|| &rest[end + 1..])?;
        return Some(behind_rfc5424(rest).unwrap_or(rest));
    }
    let (first, rest) = word(line)?;
    if let Some(line) = rest.strip_prefix(b"|") {
        let is_name =
            first.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
        return is_name.then(|| line.trim_ascii_start());
    }
    if civil::rfc3339(first).is_ok() {
        return Some(match word(rest) {
            Some((b"stdout" | b"stderr", rest)) => match word(rest) {
                Some((b"F", line)) => line,
                // A part of a long line: it is no request.
                _ => return None,
            },
            _ => behind_tag(rest).unwrap_or(rest),
        });
    }
    // `Oct 10 13:55:00 host tag: `
    let (day, rest) = word(rest)?;
    let (time, rest) = word(rest)?;
    let is_time = civil::is_month(first)
        && day.len() <= 2
        && day.iter().all(u8::is_ascii_digit)
        && matches!(time, [_, _, b':', _, _, b':', _, _]);
    if is_time {
        behind_tag(rest)
    } else {
        None
    }
}

/// Behind `host nginx[123]: `.
fn behind_tag(text: &[u8]) -> Option<&[u8]> {
    let (_, rest) = word(text)?;
    let (tag, rest) = word(rest)?;
    tag.ends_with(b":").then_some(rest)
}

/// Behind `1 TIME host app process message - `. Structured data in brackets ends with the last
/// bracket that a blank follows.
fn behind_rfc5424(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text.strip_prefix(b"1 ")?;
    for _ in 0..5 {
        rest = word(rest)?.1;
    }
    match rest.strip_prefix(b"- ") {
        Some(line) => Some(line.trim_ascii_start()),
        None => {
            let data = rest.strip_prefix(b"[")?;
            let end = data.windows(2).position(|pair| pair == b"] ")?;
            Some(data[end + 2..].trim_ascii_start())
        }
    }
}

/// The first word, and what follows it and the blanks behind it.
pub fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|&byte| byte == b' ' || byte == b'\t')?;
    Some((&text[..end], text[end..].trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_collectors() {
        const LINE: &str = "192.0.2.1 - - [10/Oct/2024:13:55:00 +0000] \"GET /p HTTP/1.1\" 200 17";
        for prefix in [
            "",
            "web-1  | ",
            "web-1  | 2024-10-10T13:55:00.123456789Z ",
            "2024-10-10T13:55:00.1Z stdout F ",
            "2024-10-10T13:55:00.1Z ",
            "[pod/web-0/nginx] ",
            "Oct 10 13:55:00 web1 nginx: ",
            "Oct  1 13:55:00 web1 nginx[17]: ",
            "<190>Oct 10 13:55:00 web1 nginx: ",
            "2024-10-10T13:55:00.1+02:00 web1 nginx[17]: ",
            "<190>1 2024-10-10T13:55:00.1Z web1 nginx 17 - - ",
            "<190>1 2024-10-10T13:55:00.1Z web1 nginx 17 access [a@1 b=\"c\"] ",
        ] {
            let line = format!("{prefix}{LINE}");
            assert_eq!(String::from_utf8_lossy(behind(line.as_bytes())), LINE, "{prefix}");
        }
        for line in [
            "2024-10-10T13:55:00.1Z stdout P 192.0.2.1 - -",
            "web | 1 | 2",
            "<1234>Oct 10 13:55:00 web1 nginx: a",
            "Foo 10 13:55:00 web1 nginx: a",
            "<",
            "",
        ] {
            let got = behind(line.as_bytes());
            assert!(line.as_bytes().ends_with(got), "{line}");
            assert!(!got.starts_with(b"192"), "{line}");
        }
    }
}
