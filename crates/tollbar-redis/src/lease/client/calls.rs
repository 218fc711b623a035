//! Questions that the program's own Redis client carries to the store.

use super::call::{Limits, Put, BYTES_MOST, FOLLOWER};
use super::member::Member;
use super::refusal::{append_trouble, TROUBLE_MOST};
use crate::lease::bell::{sleep, sleep_until_rung};
use crate::lease::node::Node;
use crate::lease::stats::Circuit;
use crate::lease::NodeError;
use crate::redis::resp::{decode, Items, Reply, Writer};
use crate::redis::{Buffer, Fault, Text};
use core::ops::Deref;
use tollbar::clock::{Clock, Monotonic};

/// A [`Client`](super::Client) without a connection: it says which call of a script
/// ([`CALL_SCRIPT`](crate::lease::CALL_SCRIPT)) to make, and the program makes the call with the
/// Redis client that it has. So a limit works wherever that client does: behind TLS, with Sentinel,
/// in a cluster, with tokens that end.
///
/// ```text
/// turn ─▶ a call ─▶ the program's client ─▶ answered | refused | lost ─▶ turn …
///      └▶ a pause ─▶ wait ─▶ turn …
/// ```
///
/// Each call is about one limit, so all its keys are in one slot of a cluster. The program makes
/// one call at a time. It makes a call at once, because the life of its leases begins at
/// [`Calls::turn`]. It does not repeat a call that fails, and reports it by [`Calls::lost`]. A node
/// whose call takes longer than its [patience](crate::lease::Terms::patience) follows its fallback
/// meanwhile.
///
/// Each process of a machine may have a `Calls` for the same node, or a client; one of them asks at
/// a time. One thread at a time may use it.
pub struct Calls<N> {
    limits: Limits<N>,
    me: Member,
    call: Buffer,
    /// How many keys the call has that waits for its reply; 0: none waits.
    keys: usize,
    is_closing: bool,
    /// Why the last call had no reply; `None`: the store has answered since.
    lost: Option<Text<144>>,
}

/// What to do now.
#[derive(Clone, Copy, Debug)]
pub enum Turn<'a> {
    /// To make this call.
    Call(Call<'a>),
    /// To wait for so many milliseconds, or until [`Calls::wait`] returns. 0 after
    /// [`Calls::hurry`]: the store knows everything.
    Pause(u32),
}

/// A call of [`CALL_SCRIPT`](crate::lease::CALL_SCRIPT).
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    keys: usize,
    parts: Items<'a>,
}

impl<'a> Call<'a> {
    /// The most keys and arguments of a call.
    pub const PARTS_MOST: usize = 2 * 64 + 5;

    /// The number of keys: as many of the first parts.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// The keys, and then the arguments. Each is a string of bytes.
    pub fn parts(&self) -> impl Iterator<Item = &'a [u8]> {
        self.parts.map(|part| match part {
            Reply::Bulk(bytes) => bytes,
            _ => &[],
        })
    }
}

impl<N: Deref<Target = Node>> Calls<N> {
    /// Makes calls for no limit. Errors: [`NodeError::NoMemory`], or the system has no random
    /// numbers.
    pub fn new() -> Result<Calls<N>, NodeError> {
        Ok(Calls {
            limits: Limits::new(true).ok_or(NodeError::NoMemory)?,
            me: Member::new()?,
            call: Buffer::new(BYTES_MOST).ok_or(NodeError::NoMemory)?,
            keys: 0,
            is_closing: false,
            lost: None,
        })
    }

    /// [`Client::add`](super::Client::add), with its errors.
    pub fn add(&mut self, node: N) -> Result<(), NodeError> {
        self.limits.enter(node, &mut self.me)
    }

    /// Reads the callers' messages, and returns the call that is due. A call before that has no
    /// reply yet counts as lost.
    pub fn turn(&mut self) -> Turn<'_> {
        if self.me.has_forked() {
            // The debts, and a call that waits, are the parent's.
            self.keys = 0;
            self.limits.after_fork(&mut self.me);
        }
        let found = self.limits.elect(&self.me);
        if self.keys != 0 {
            self.lost(b"the call before it had no reply");
        }
        if found.has_lost {
            self.limits.displaced();
        }
        self.limits.collect();
        if self.is_closing && self.has_confirmed_all() {
            return Turn::Pause(0);
        }
        if !found.leads {
            return Turn::Pause(FOLLOWER);
        }
        let pause = self.limits.pause(Monotonic.now());
        if self.make().is_none() {
            self.keys = 0;
        }
        self.limits.wake();
        if self.keys != 0 {
            self.limits.wait();
        }
        match decode(self.call.used()) {
            Ok(Some((Reply::Array(parts), _))) if self.keys != 0 => {
                Turn::Call(Call { keys: self.keys, parts })
            }
            _ => Turn::Pause(pause),
        }
    }

    /// Makes the call that is due; `None` if there is none.
    fn make(&mut self) -> Option<()> {
        let Calls { limits, me, call, keys, is_closing, .. } = self;
        if !limits.may_call() || !*is_closing && !limits.is_due() {
            return None;
        }
        call.clear();
        let mut put: Put<'_> = &mut |count, args, write| {
            let mut writer = Writer::new(call.room());
            writer.command(count.saturating_add(args));
            write(&mut writer);
            let written = writer.finish()?;
            call.filled(written);
            *keys = count;
            Ok(())
        };
        limits.call(me.random(), 0, &mut put)?.then_some(())
    }

    /// Takes the reply: the string in the array that the script returned.
    pub fn answered(&mut self, reply: &[u8]) {
        if self.reply() {
            self.lost = None;
            self.limits.answered(0, &|n| (n == 0).then_some(reply));
            self.limits.wake();
        }
    }

    /// Takes the store's error in place of a reply: its text, such as `OOM command not allowed`.
    /// The store has not run the script.
    pub fn refused(&mut self, error: &[u8]) {
        if self.reply() {
            self.lost = None;
            let fault = match Fault::of(error) {
                // Only a program that does not load the script passes it on.
                Fault::NoScript => Fault::Script,
                fault => fault,
            };
            self.limits.refused(0, fault, error);
            self.limits.wake();
        }
    }

    /// Says that the call has no reply, and why. The store may have run the script.
    pub fn lost(&mut self, why: &[u8]) {
        if self.reply() {
            self.lost = Some(Text::printable(why));
            self.limits.dropped();
            self.limits.wake();
        }
    }

    /// Whether a call waits for its reply. It waits no longer.
    fn reply(&mut self) -> bool {
        self.limits.refresh();
        core::mem::take(&mut self.keys) != 0
    }

    /// Waits for `millis` milliseconds, or until a caller's message cannot wait.
    pub fn wait(&mut self, millis: u32) {
        let nanos = u64::from(millis) * 1_000_000;
        let led = self.limits.iter().filter(|limit| limit.leads);
        if led.clone().next().is_none() {
            return sleep(nanos);
        }
        sleep_until_rung(led.map(|limit| (limit.node.header(), limit.bell)), nanos);
    }

    /// Makes the next calls say at once what the store does not know yet, if `hurry`.
    pub fn hurry(&mut self, hurry: bool) {
        self.is_closing = hurry;
    }

    fn has_confirmed_all(&self) -> bool {
        self.limits.has_confirmed(None)
    }

    /// Lets other clients ask. Returns whether the store has confirmed all debts. The nodes
    /// may spend their leases until those end.
    pub fn close(&mut self) -> bool {
        if self.me.has_forked() {
            return false;
        }
        self.reply();
        self.limits.displaced();
        self.limits.resign(&self.me)
    }

    /// The circuit of all limits: open if any is, closed if all are.
    pub fn circuit(&self) -> Circuit {
        self.limits.circuit()
    }

    /// [`Client::trouble`](super::Client::trouble).
    pub fn trouble(&self) -> Text<TROUBLE_MOST> {
        let mut text = Text::new();
        if let Some(why) = self.lost {
            text.append("the program's Redis client failed: ");
            text.add(why.as_bytes());
        } else if !append_trouble(&self.limits, None, &mut text) && self.circuit() == Circuit::Open
        {
            text.append("the store does not answer in time");
        }
        text
    }
}

impl<N: Deref<Target = Node>> core::fmt::Debug for Calls<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Calls").field("circuit", &self.circuit()).finish()
    }
}
