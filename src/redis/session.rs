//! One connection's conversation, without the connection.
//!
//! The caller moves bytes: [`Session::output`] to the socket, what the socket has to [`Session::input`]. In between the session
//! writes commands and tells replies apart by the order in which they come, which is that of the commands.
//!
//! ```text
//! begin ─▶ AUTH, SELECT, CLIENT SETNAME, INFO server, SCRIPT LOAD … ─▶ is_ready ─▶ call … next …
//! ```

use super::answer::Answer;
use super::buffer::Buffer;
use super::expect::Expect;
use super::fault::Fault;
pub use super::resp::Full;
use super::resp::{decode, Reply, Writer};
use super::text::Text;
use super::url::Url;

/// The most scripts that a session may have.
pub const SCRIPTS_MOST: usize = 16;

/// A Lua script.
#[derive(Debug)]
pub struct Script {
    /// For messages.
    pub name: &'static str,
    /// What is sent to the server, once for each connection.
    pub source: &'static str,
}

/// An argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg<'a> {
    /// In decimal.
    Int(i64),
    /// As it is.
    Bytes(&'a [u8]),
}

/// No memory for the buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// A conversation. See the module.
pub struct Session {
    out: Buffer,
    input: Buffer,
    /// What the replies to come belong to, a byte each: see [`Expect`].
    expected: Buffer,
    scripts: &'static [Script],
    /// Names that the server has given the scripts, in the same order.
    shas: [[u8; SHA]; SCRIPTS_MOST],
    loads: [Load; SCRIPTS_MOST],
    /// Replies to the handshake that have not come.
    greeting: usize,
    calls: usize,
    run_id: Text<40>,
    user: Text<128>,
    password: Text<512>,
    db: u32,
    begun: bool,
    /// Why the conversation is over.
    over: Option<Fault>,
    told: bool,
    error: Text<200>,
}

const SHA: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Done,
    /// Asked for, and not answered.
    Asked,
    /// To be asked for when there is room.
    Needed,
}

impl Session {
    /// A conversation that has not begun. Takes its memory: `out_bytes` for commands (more, if the handshake needs it), `in_bytes` for
    /// replies (16 KiB at least, which the server's description of itself can need). A single reply that is longer than that
    /// ends the conversation. Of `scripts` the first [`SCRIPTS_MOST`] count.
    ///
    /// At most as many calls as `out_bytes / 16`, and 64 at least, can be without a reply at a time.
    pub fn new(url: &Url, scripts: &'static [Script], out_bytes: usize, in_bytes: usize) -> Result<Session, NoMemory> {
        const INPUT_LEAST: usize = 16 << 10;
        let scripts = scripts.get(..SCRIPTS_MOST).unwrap_or(scripts);
        // Each script with its command's frame; names, passwords and the rest.
        let greeting =
            scripts.iter().fold(2048_usize, |sum, script| sum.saturating_add(script.source.len()).saturating_add(64));
        Ok(Session {
            out: Buffer::new(out_bytes.max(greeting)).ok_or(NoMemory)?,
            input: Buffer::new(in_bytes.max(INPUT_LEAST)).ok_or(NoMemory)?,
            expected: Buffer::new((out_bytes / 16).max(64)).ok_or(NoMemory)?,
            scripts,
            shas: [[0; SHA]; SCRIPTS_MOST],
            loads: [Load::Done; SCRIPTS_MOST],
            greeting: 0,
            calls: 0,
            run_id: Text::new(),
            user: url.user,
            password: url.password,
            db: url.db,
            begun: false,
            over: None,
            told: false,
            error: Text::new(),
        })
    }

    /// A fresh connection: forgets everything, calls without a reply too, and queues the handshake. Each script's name is learned from
    /// the reply that loads it.
    pub fn begin(&mut self) {
        self.out.clear();
        self.input.clear();
        self.expected.clear();
        (self.calls, self.over, self.told) = (0, None, false);
        (self.run_id, self.error) = (Text::new(), Text::new());
        self.begun = true;
        let (user, password) = (self.user, self.password);
        let mut room = true;
        if !user.is_empty() {
            room &= self.send(Expect::Fine, &[b"AUTH", user.as_bytes(), password.as_bytes()]);
        } else if !password.is_empty() {
            room &= self.send(Expect::Fine, &[b"AUTH", password.as_bytes()]);
        }
        if self.db != 0 {
            let mut digits = [0; 20];
            let db = super::resp::decimal(i64::from(self.db), &mut digits);
            room &= self.send(Expect::Fine, &[b"SELECT", db]);
        }
        // Neither is needed, and a user may not be allowed to do them.
        room &= self.send(Expect::Anything, &[b"CLIENT", b"SETNAME", b"tollbar"]);
        room &= self.send(Expect::Info, &[b"INFO", b"server"]);
        for number in 0..self.scripts.len() {
            room &= self.load(number);
        }
        self.greeting = self.expected.used().len();
        if !room {
            // The buffers are made large enough for it; said rather than waited for.
            self.over = Some(Fault::Protocol);
        }
    }

    /// Whether the handshake is done: calls can be made.
    pub fn is_ready(&self) -> bool {
        self.begun && self.greeting == 0 && self.over.is_none()
    }

    /// Why the conversation is over: the handshake was refused, or what came was no reply. The connection is to be closed; [`Session::begin`]
    /// begins again.
    pub fn fault(&self) -> Option<Fault> {
        self.over
    }

    /// The 40 hexadecimal digits by which the server tells its starts apart; empty if it does not say.
    pub fn run_id(&self) -> &[u8] {
        self.run_id.as_bytes()
    }

    /// The server's text of the last error, printable and cut at 200 bytes; empty if there was none.
    pub fn error_text(&self) -> &str {
        self.error.as_str()
    }

    /// Queues a call of script number `script`. `Full`: not now, for want of room or because the session is not ready; nothing
    /// has been queued.
    pub fn call(&mut self, script: usize, keys: &[&[u8]], args: &[Arg<'_>]) -> Result<(), Full> {
        if !self.is_ready() {
            return Err(Full);
        }
        if self.loads.get(script) == Some(&Load::Needed) && !self.load(script) {
            return Err(Full);
        }
        if self.expected.is_full() {
            return Err(Full);
        }
        let sha = match self.shas.get(script) {
            Some(sha) if script < self.scripts.len() => *sha,
            _ => return Err(Full),
        };
        let mut writer = Writer::new(self.out.room());
        writer.command(keys.len().saturating_add(args.len()).saturating_add(3)).bulk(b"EVALSHA").bulk(&sha);
        writer.int(i64::try_from(keys.len()).unwrap_or(i64::MAX));
        for key in keys {
            writer.bulk(key);
        }
        for arg in args {
            match arg {
                Arg::Int(number) => writer.int(*number),
                Arg::Bytes(bytes) => writer.bulk(bytes),
            };
        }
        let written = writer.finish()?;
        self.out.filled(written);
        self.expect(Expect::Call(script as u8));
        self.calls = self.calls.saturating_add(1);
        Ok(())
    }

    /// The bytes to be sent.
    pub fn output(&self) -> &[u8] {
        self.out.used()
    }

    /// The first `n` bytes of [`Session::output`] have been sent.
    pub fn wrote(&mut self, n: usize) {
        self.out.taken(n);
    }

    /// Where to put received bytes. It is empty only if [`Session::next`] has not been called until it had no more.
    pub fn input(&mut self) -> &mut [u8] {
        self.input.room()
    }

    /// The first `n` bytes of [`Session::input`] have been received.
    pub fn read(&mut self, n: usize) {
        self.input.filled(n);
    }

    /// The reply to the oldest call that has none, or why there will be none. `None`: nothing more has come.
    ///
    /// [`Fault::NoScript`] is dealt with as far as it can be: the script is being loaded again, and the same call may be made again at once.
    /// A conversation that is over is told once here, whatever number of calls is lost with it; from then on ask [`Session::fault`].
    #[allow(clippy::should_implement_trait)] // its items borrow from it
    pub fn next(&mut self) -> Option<Result<Answer<'_>, Fault>> {
        match self.step()? {
            // Decoded once more, since only now it may be borrowed. It stays where it is until there is more input.
            Ok(len) => match decode(self.input.last_taken(len)) {
                Ok(Some((reply, _))) => Some(Ok(Answer::new(reply))),
                _ => None,
            },
            Err(fault) => Some(Err(fault)),
        }
    }

    /// Calls without a reply.
    pub fn outstanding(&self) -> usize {
        self.calls
    }

    /// Takes all up to and with the next reply to a call. If that is an answer, it is how many bytes of it were taken last.
    fn step(&mut self) -> Option<Result<usize, Fault>> {
        loop {
            if let Some(fault) = self.over {
                return (!core::mem::replace(&mut self.told, true)).then_some(Err(fault));
            }
            let (reply, len) = match decode(self.input.used()) {
                Ok(Some(found)) => found,
                // A reply that does not fit.
                Ok(None) if self.input.is_full() => {
                    self.over = Some(Fault::Protocol);
                    continue;
                }
                Ok(None) => return None,
                Err(_) => {
                    self.error = Text::printable(self.input.used());
                    self.over = Some(Fault::Protocol);
                    continue;
                }
            };
            let fault = match reply {
                Reply::Error(text) => {
                    self.error = Text::printable(text);
                    Some(Fault::of(text))
                }
                _ => None,
            };
            let expected = self.expected.used().first().copied().and_then(Expect::from_byte);
            let mut over = None;
            match (expected, fault) {
                (Some(Expect::Info), None) => self.run_id = run_id(reply),
                (Some(Expect::Load(number)), None) => {
                    let number = usize::from(number);
                    over = learn(self.shas.get_mut(number), self.loads.get_mut(number), reply);
                }
                (Some(Expect::Fine | Expect::Load(_)), Some(fault)) => over = Some(fault),
                // Before the first command: too many clients, protected mode.
                (None, Some(fault)) => over = Some(fault),
                (None, None) => over = Some(Fault::Protocol),
                _ => {}
            }
            self.input.taken(len);
            self.expected.taken(1);
            self.greeting = self.greeting.saturating_sub(1);
            self.over = over;
            if let Some(Expect::Call(number)) = expected {
                self.calls = self.calls.saturating_sub(1);
                let Some(fault) = fault else { return Some(Ok(len)) };
                if fault == Fault::NoScript {
                    self.reload(usize::from(number));
                }
                return Some(Err(fault));
            }
        }
    }

    fn reload(&mut self, number: usize) {
        // Calls that were sent with it fail the same way, and one load is enough for all.
        if self.loads.get(number) == Some(&Load::Done) && !self.load(number) {
            if let Some(load) = self.loads.get_mut(number) {
                *load = Load::Needed;
            }
        }
    }

    /// Queues a SCRIPT LOAD; `false` if there is no room.
    fn load(&mut self, number: usize) -> bool {
        let Some(script) = self.scripts.get(number) else { return false };
        if !self.send(Expect::Load(number as u8), &[b"SCRIPT", b"LOAD", script.source.as_bytes()]) {
            return false;
        }
        if let Some(load) = self.loads.get_mut(number) {
            *load = Load::Asked;
        }
        true
    }

    fn send(&mut self, expect: Expect, parts: &[&[u8]]) -> bool {
        if self.expected.is_full() {
            return false;
        }
        let mut writer = Writer::new(self.out.room());
        writer.command(parts.len());
        for part in parts {
            writer.bulk(part);
        }
        let Ok(written) = writer.finish() else { return false };
        self.out.filled(written);
        self.expect(expect);
        true
    }

    /// There is room for it.
    fn expect(&mut self, expect: Expect) {
        if let Some(place) = self.expected.room().first_mut() {
            *place = expect.byte();
            self.expected.filled(1);
        }
    }
}

/// Without what is said in it, since that has passwords and keys.
impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Session { calls, over, error, .. } = self;
        write!(f, "Session {{ ready: {}, outstanding: {calls}, fault: {over:?}, error: {error:?} }}", self.is_ready())
    }
}

/// Keeps what a SCRIPT LOAD has returned, or says that it is not what it returns.
fn learn(sha: Option<&mut [u8; SHA]>, load: Option<&mut Load>, reply: Reply<'_>) -> Option<Fault> {
    let (Some(sha), Some(load), Reply::Bulk(name)) = (sha, load, reply) else { return Some(Fault::Protocol) };
    if name.len() != SHA {
        return Some(Fault::Protocol);
    }
    sha.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
    *load = Load::Done;
    None
}

/// `run_id:0123…` of the server's description; empty if there is none.
fn run_id(reply: Reply<'_>) -> Text<40> {
    let mut found = Text::new();
    let Reply::Bulk(text) = reply else { return found };
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(b"run_id:") = line.get(..7) {
            let id = line.get(7..).unwrap_or_default().trim_ascii_end();
            if id.len() == 40 && id.iter().all(u8::is_ascii_hexdigit) {
                id.iter().for_each(|digit| _ = found.push(*digit));
            }
        }
    }
    found
}
