//! Messages of the domain name system (RFC 1035): a question in each message, and the part of an
//! answer that a stub resolver needs.
//!
//! The server recurses, so its answer has the addresses at the end of all aliases, and the aliases'
//! names do not matter. The reader goes through a message once, forwards, and follows no
//! compression pointer, so it always ends.

/// The longest question in bytes: a header, a name of 255 bytes with its lengths, a type and a
/// class.
pub(super) const QUESTION_MOST: usize = HEADER + 257 + 4;
/// The longest answer in bytes. A server cuts a longer answer, unless the question allows more, and
/// this resolver's questions do not.
pub(super) const ANSWER_MOST: usize = 512;

const HEADER: usize = 12;
const CLASS_IN: u16 = 1;
/// The header's flag "recursion desired".
const RECURSE: u16 = 0x0100;

/// The kind of address to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Kind {
    /// IPv4.
    A = 1,
    /// IPv6.
    Aaaa = 28,
}

/// The outcome of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DnsAnswer {
    /// The datagram does not answer this question.
    Foreign,
    /// The server reports a failure, or its answer is malformed.
    Failed,
    /// The name does not exist.
    Absent,
    /// The name exists. It may have no address of this kind.
    Addresses,
}

impl Kind {
    const fn octets(self) -> usize {
        match self {
            Kind::A => 4,
            Kind::Aaaa => 16,
        }
    }
}

/// Writes the question for `name` and returns its length. `None`: the name is empty, too long, or
/// has an empty or too long label.
pub(super) fn question(
    name: &[u8],
    kind: Kind,
    id: u16,
    into: &mut [u8; QUESTION_MOST],
) -> Option<usize> {
    let name = name.strip_suffix(b".").unwrap_or(name);
    if name.is_empty() || name.len() > 253 {
        return None;
    }
    let mut out = DnsWriter { bytes: into, at: 0 };
    for word in [id, RECURSE, 1, 0, 0, 0] {
        out.put(&word.to_be_bytes())?;
    }
    for label in name.split(|byte| *byte == b'.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        out.put(&[length])?;
        out.put(label)?;
    }
    out.put(&[0])?;
    out.put(&(kind as u16).to_be_bytes())?;
    out.put(&CLASS_IN.to_be_bytes())?;
    Some(out.at)
}

/// Reads `message` as the answer to `question`, and gives each address in it to `found`.
pub(super) fn answer(
    message: &[u8],
    question: &[u8],
    kind: Kind,
    mut found: impl FnMut(&[u8]),
) -> DnsAnswer {
    let mut reader = DnsReader { rest: message };
    let asked = question.get(HEADER..).unwrap_or_default();
    let Some([id, flags, questions, answers, _, _]) = reader.header() else {
        return DnsAnswer::Foreign;
    };
    let is_answer = flags & 0x8000 != 0 && flags & 0x7800 == 0;
    let repeated = reader.take(asked.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(asked));
    if Some(&id.to_be_bytes()[..]) != question.get(..2) || !is_answer || questions != 1 || !repeated
    {
        return DnsAnswer::Foreign;
    }
    match flags & 15 {
        0 => {}
        3 => return DnsAnswer::Absent,
        _ => return DnsAnswer::Failed,
    }
    for _ in 0..answers {
        let Some((record, data)) = reader.record() else {
            // The server cut a long answer and set the flag "truncated". The records before the cut
            // are valid.
            return if flags & 0x0200 != 0 { DnsAnswer::Addresses } else { DnsAnswer::Failed };
        };
        if record == [kind as u16, CLASS_IN] && data.len() == kind.octets() {
            found(data);
        }
    }
    DnsAnswer::Addresses
}

struct DnsWriter<'a> {
    bytes: &'a mut [u8; QUESTION_MOST],
    at: usize,
}

impl DnsWriter<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at.checked_add(bytes.len())?;
        self.bytes.get_mut(self.at..end)?.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        self.at = end;
        Some(())
    }
}

struct DnsReader<'a> {
    rest: &'a [u8],
}

impl<'a> DnsReader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let taken = self.rest.get(..n)?;
        self.rest = self.rest.get(n..)?;
        Some(taken)
    }

    fn word(&mut self) -> Option<u16> {
        match self.take(2)? {
            &[high, low] => Some(u16::from_be_bytes([high, low])),
            _ => None,
        }
    }

    fn header(&mut self) -> Option<[u16; 6]> {
        let mut words = [0; 6];
        for word in &mut words {
            *word = self.word()?;
        }
        Some(words)
    }

    /// A record's type and class, and its data.
    fn record(&mut self) -> Option<([u16; 2], &'a [u8])> {
        self.skip_name()?;
        let kind = [self.word()?, self.word()?];
        self.take(4)?;
        let length = self.word()?;
        Some((kind, self.take(usize::from(length))?))
    }

    /// Skips a name. Each turn consumes at least a byte, so the loop ends.
    fn skip_name(&mut self) -> Option<()> {
        loop {
            match self.take(1)? {
                [0] => return Some(()),
                // A compression pointer of two bytes ends the name here.
                [0xc0..=0xff] => return self.take(1).map(drop),
                &[length @ ..=63] => drop(self.take(usize::from(length))?),
                _ => return None,
            }
        }
    }
}
