//! A session: the commands and replies of one connection, without its socket.
//!
//! The caller moves the bytes: from [`Session::output`] to the socket, and from the socket to
//! [`Session::input`]. The session writes commands, and matches replies to them by their order: a
//! server replies in the order of the commands.
//!
//! ```text
//! begin ─▶ AUTH, SELECT, CLIENT SETNAME, SCRIPT LOAD … ─▶ is_ready ─▶ call … next …
//! ```

use super::answer::Answer;
use super::buffer::Buffer;
use super::expect::Expect;
use super::fault::Fault;
pub use super::resp::Full;
use super::resp::{decode, Reply, Writer};
use super::secret::Secret;
use super::text::Text;
use super::url::Url;

/// The most scripts of a session.
pub const SCRIPTS_MOST: usize = 16;

/// A Lua script.
#[derive(Debug)]
pub struct Script {
    /// The script's name, for debugging.
    pub name: &'static str,
    /// The source, which the session sends to the server once for each connection.
    pub source: &'static str,
}

/// An argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg<'a> {
    /// A number, sent in decimal.
    Int(i64),
    /// Bytes, sent as they are.
    Bytes(&'a [u8]),
}

/// The allocator has no memory for the buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// A conversation with a server. It does no input or output and never blocks; see the module. The
/// exception is a password in a file, which [`Session::begin`] reads.
pub struct Session {
    out: Buffer,
    input: Buffer,
    /// The expected replies in order, each a byte of [`Expect`].
    expected: Buffer,
    scripts: &'static [Script],
    /// The digests by which the server calls the scripts, in the scripts' order.
    shas: [[u8; SHA]; SCRIPTS_MOST],
    loads: [Load; SCRIPTS_MOST],
    /// Replies to the handshake that have not come.
    greeting: usize,
    /// Calls without a reply.
    calls: usize,
    user: Text<128>,
    password: Text<512>,
    /// What the password's file has. `password` then is its path.
    secret: Option<Secret>,
    db: u32,
    begun: bool,
    /// Why the conversation has ended. `None`: it goes on.
    over: Option<Fault>,
    /// Whether [`Session::next`] has returned `over`.
    reported: bool,
    error: Text<144>,
    /// The command that the error answers; `None` if it answers none.
    failed: Option<Expect>,
}

const SHA: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// The server has answered SCRIPT LOAD with the digest, and no call has found the script
    /// missing since.
    Done,
    /// SCRIPT LOAD is queued or sent, and not answered.
    Asked,
    /// SCRIPT LOAD had no room. The next call queues it first.
    Needed,
}

impl Session {
    /// Makes a session that has not begun, and takes its memory: `out_bytes` for commands, or more
    /// if the handshake needs it, and `in_bytes` for replies, at least 4 KiB. A longer reply ends
    /// the conversation. Only the first [`SCRIPTS_MOST`] of `scripts` are used.
    ///
    /// At most `out_bytes / 16` calls, and at least 64, can be without a reply at a time.
    pub fn new(
        url: &Url,
        scripts: &'static [Script],
        out_bytes: usize,
        in_bytes: usize,
    ) -> Result<Session, NoMemory> {
        const INPUT_LEAST: usize = 4 << 10;
        let scripts = scripts.get(..SCRIPTS_MOST).unwrap_or(scripts);
        let secret = match url.is_password_file {
            true => Some(Secret::new().ok_or(NoMemory)?),
            false => None,
        };
        // 64 bytes frame each script's command; 2 KiB hold user, password and the other commands.
        let least = 2048 + if secret.is_some() { Secret::most() } else { 0 };
        let greeting = scripts
            .iter()
            .fold(least, |sum, script| sum.saturating_add(script.source.len()).saturating_add(64));
        Ok(Session {
            out: Buffer::new(out_bytes.max(greeting)).ok_or(NoMemory)?,
            input: Buffer::new(in_bytes.max(INPUT_LEAST)).ok_or(NoMemory)?,
            expected: Buffer::new((out_bytes / 16).max(64)).ok_or(NoMemory)?,
            scripts,
            shas: [[0; SHA]; SCRIPTS_MOST],
            loads: [Load::Done; SCRIPTS_MOST],
            greeting: 0,
            calls: 0,
            user: url.user,
            password: url.password,
            secret,
            db: url.db,
            begun: false,
            over: None,
            reported: false,
            error: Text::new(),
            failed: None,
        })
    }

    /// Begins a conversation on a new connection. It drops all buffered bytes and outstanding
    /// calls, and queues the handshake, which loads the scripts.
    pub fn begin(&mut self) {
        self.out.clear();
        self.input.clear();
        self.expected.clear();
        (self.calls, self.over, self.reported) = (0, None, false);
        (self.error, self.failed) = (Text::new(), None);
        self.begun = true;
        let mut room = self.authenticate();
        if self.db != 0 {
            let mut digits = [0; 20];
            let db = super::resp::decimal(i64::from(self.db), &mut digits);
            room &= self.send(Expect::Select, &[b"SELECT", db]);
        }
        // An error is ignored: an ACL user may lack the right to it.
        room &= self.send(Expect::Anything, &[b"CLIENT", b"SETNAME", b"tollbar"]);
        for number in 0..self.scripts.len() {
            room &= self.load(number);
        }
        self.greeting = self.expected.used().len();
        if !room {
            // This cannot happen, because `new` makes the buffers large enough. If it did, the
            // handshake would never end without this error.
            self.over = Some(Fault::Protocol);
        }
    }

    /// Queues AUTH, if there is a user or a password; `false` if there is no room.
    fn authenticate(&mut self) -> bool {
        let (user, password, mut secret) = (self.user, self.password, self.secret.take());
        let room = match secret
            .as_mut()
            .map_or(Ok(password.as_bytes()), |secret| secret.read(&password))
        {
            Ok(b"") if user.is_empty() => true,
            Ok(password) if user.is_empty() => self.send(Expect::Auth, &[b"AUTH", password]),
            Ok(password) => self.send(Expect::Auth, &[b"AUTH", user.as_bytes(), password]),
            Err(errno) => {
                self.over = Some(Fault::Credentials);
                self.error = Text::printable(b"errno ");
                let mut digits = [0; 20];
                let errno = super::resp::decimal(i64::from(errno), &mut digits);
                self.error.append(core::str::from_utf8(errno).unwrap_or_default());
                true
            }
        };
        self.secret = secret;
        room
    }

    /// Whether the handshake is done: calls can be made.
    pub fn is_ready(&self) -> bool {
        self.begun && self.greeting == 0 && self.over.is_none()
    }

    /// Why the conversation has ended: the server refused the handshake, or sent bytes that are not
    /// a reply. The caller closes the connection, and [`Session::begin`] begins a new conversation
    /// on another.
    pub fn fault(&self) -> Option<Fault> {
        self.over
    }

    /// The text of the server's last error: at most 144 printable bytes; empty if there was none
    /// since [`Session::begin`].
    pub fn error_text(&self) -> &str {
        self.error.as_str()
    }

    /// The command that the last error answers; empty if there was none, or if the server sent it
    /// before any command.
    pub fn failed_command(&self) -> &'static str {
        self.failed.map_or("", Expect::name)
    }

    /// Queues a call of the script with index `script`. [`Full`]: there is no room, no such script,
    /// or the session is not ready; the call was not queued.
    pub fn call(&mut self, script: usize, keys: &[&[u8]], args: &[Arg<'_>]) -> Result<(), Full> {
        self.call_with(script, keys.len(), args.len(), |writer| {
            for key in keys {
                writer.bulk(key);
            }
            for arg in args {
                match arg {
                    Arg::Int(number) => writer.int(*number),
                    Arg::Bytes(bytes) => writer.bulk(bytes),
                };
            }
        })
    }

    /// [`Session::call`] with `keys` keys and then `args` arguments, all of which `write` writes in
    /// this order.
    pub fn call_with(
        &mut self,
        script: usize,
        keys: usize,
        args: usize,
        write: impl FnOnce(&mut Writer<'_>),
    ) -> Result<(), Full> {
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
        writer.command(keys.saturating_add(args).saturating_add(3)).bulk(b"EVALSHA").bulk(&sha);
        writer.int(i64::try_from(keys).unwrap_or(i64::MAX));
        write(&mut writer);
        let written = writer.finish()?;
        self.out.filled(written);
        self.expect(Expect::Call(script as u8));
        self.calls = self.calls.saturating_add(1);
        Ok(())
    }

    /// Bytes of commands for which there is room.
    pub fn room(&mut self) -> usize {
        self.out.room().len()
    }

    /// The bytes to send.
    pub fn output(&self) -> &[u8] {
        self.out.used()
    }

    /// Removes the first `n` bytes of [`Session::output`], which the caller has sent.
    pub fn wrote(&mut self, n: usize) {
        self.out.taken(n);
    }

    /// The room for received bytes. It is empty only if the caller has not called [`Session::next`]
    /// until it returned `None`.
    pub fn input(&mut self) -> &mut [u8] {
        self.input.room()
    }

    /// Takes in the first `n` bytes of [`Session::input`], which the caller has received.
    pub fn read(&mut self, n: usize) {
        self.input.filled(n);
    }

    /// The reply to the oldest outstanding call, or why it has none. `None`: no whole reply has
    /// come.
    ///
    /// After [`Fault::NoScript`] the session loads the script again by itself, and the caller may
    /// repeat the call at once. When the conversation is over, this returns the fault once, however
    /// many calls are lost, and `None` after that; [`Session::fault`] keeps it.
    #[allow(clippy::should_implement_trait)] // its items borrow from it
    pub fn next(&mut self) -> Option<Result<Answer<'_>, Fault>> {
        match self.step()? {
            // The reply is decoded a second time, because `step` cannot return a borrow of the
            // input. The bytes stay in place until a call of `input`.
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

    /// Consumes replies up to and including the next reply to a call. Returns that reply's length
    /// in bytes, which are the last bytes consumed, or its fault.
    fn step(&mut self) -> Option<Result<usize, Fault>> {
        loop {
            if let Some(fault) = self.over {
                return (!core::mem::replace(&mut self.reported, true)).then_some(Err(fault));
            }
            let (reply, len) = match decode(self.input.used()) {
                Ok(Some(found)) => found,
                // The reply is longer than the buffer.
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
            let expected = self.expected.used().first().copied().and_then(Expect::from_byte);
            let fault = match reply {
                Reply::Error(text) => {
                    self.error = Text::printable(text);
                    self.failed = expected;
                    Some(Fault::of(text))
                }
                _ => None,
            };
            let mut over = None;
            match (expected, fault) {
                (Some(Expect::Load(number)), None) => {
                    let number = usize::from(number);
                    over = learn(self.shas.get_mut(number), self.loads.get_mut(number), reply);
                }
                (Some(Expect::Auth | Expect::Select | Expect::Load(_)), Some(fault)) => {
                    over = Some(fault)
                }
                // An error before any command: too many clients, or protected mode.
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
        // Other calls of this script in flight get the same error. Only the first of them finds
        // `Done` and loads the script.
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

    /// Appends an expected reply. The callers have checked that there is room.
    fn expect(&mut self, expect: Expect) {
        if let Some(place) = self.expected.room().first_mut() {
            *place = expect.byte();
            self.expected.filled(1);
        }
    }
}

/// The buffers are left out, because they hold passwords and keys.
impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Session { calls, over, error, .. } = self;
        write!(
            f,
            "Session {{ ready: {}, outstanding: {calls}, fault: {over:?}, error: {error:?} }}",
            self.is_ready()
        )
    }
}

/// Stores the digest that SCRIPT LOAD returned; a fault if the reply is no digest.
fn learn(sha: Option<&mut [u8; SHA]>, load: Option<&mut Load>, reply: Reply<'_>) -> Option<Fault> {
    let (Some(sha), Some(load), Reply::Bulk(name)) = (sha, load, reply) else {
        return Some(Fault::Protocol);
    };
    if name.len() != SHA {
        return Some(Fault::Protocol);
    }
    sha.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
    *load = Load::Done;
    None
}
