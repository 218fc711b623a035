//! A connection on which each call waits for its answer.

use super::StoreError;
use crate::redis::{
    Answer, Arg, Fault, Link, LinkError, NoMemory, Script, Session, Transport, Url,
};
use alloc::boxed::Box;
use tollbar::clock::{Clock, Monotonic};
use tollbar::internal::generation;

/// Calls one script at a time. Deadlines are nanoseconds of [`Monotonic`].
#[derive(Debug)]
pub(crate) struct Connection {
    link: Link,
    session: Session,
    /// The process that made the connection. A process forked from it must not use the connection.
    process: u32,
}

impl Connection {
    /// Takes the memory for a connection. It does not connect yet.
    pub(crate) fn new(url: &Url, scripts: &'static [Script]) -> Result<Connection, NoMemory> {
        let session = Session::new(url, scripts, 4096, 0)?;
        Ok(Connection { link: Link::new(url), session, process: 0 })
    }

    /// Sets what makes TLS of a connection.
    pub(crate) fn secure(&mut self, transport: Box<dyn Transport>) {
        self.link.secure(transport);
    }

    /// Closes the connection, if there is one. The next call connects again.
    pub(crate) fn close(&mut self) {
        self.link.close();
    }

    /// Runs one script and decodes its answer.
    pub(crate) fn call<T>(
        &mut self,
        script: usize,
        keys: &[&[u8]],
        args: &[Arg<'_>],
        deadline: u64,
        read: impl Fn(&Answer<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let reply = self.exchange(script, keys, args, deadline, read);
        if reply.is_err()
            && !matches!(
                reply,
                Err(StoreError::Foreign(_) | StoreError::Unavailable(_) | StoreError::Script(_))
            )
        {
            // The answer may still come. On the same connection the next call would read it as the
            // answer to its own question.
            self.link.close();
        }
        if matches!(reply, Err(StoreError::Unavailable(_))) && self.link.has_others() {
            // A replica, or a server that is loading: the next call asks the next host.
            self.link.reject();
        }
        reply
    }

    fn exchange<T>(
        &mut self,
        script: usize,
        keys: &[&[u8]],
        args: &[Arg<'_>],
        deadline: u64,
        read: impl Fn(&Answer<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.connected(deadline)?;
        let mut tries = 0_u32;
        loop {
            self.session.call(script, keys, args).map_err(|_| StoreError::NoRoom)?;
            match self.answer(deadline, &read)? {
                Ok(reply) => return Ok(reply),
                // The server has forgotten the script, and the session loads it again. If that
                // happens a fourth time, somebody keeps flushing the server's scripts, and the call
                // fails.
                Err(Fault::NoScript) if tries < 3 => tries = tries.saturating_add(1),
                Err(fault) => return Err(StoreError::of(fault, self.session.error_text())),
            }
        }
    }

    /// Makes a connection that is ready for calls, unless there is one.
    fn connected(&mut self, deadline: u64) -> Result<(), StoreError> {
        let process = generation();
        if self.process != process {
            // This closes the child's copy of the descriptor. The parent's connection stays.
            self.link.close();
            self.process = process;
        }
        // The read detects, before the call sends anything, that the server has closed the
        // connection.
        if self.link.is_open()
            && self.session.is_ready()
            && self.receive().is_ok()
            && self.session.next().is_none()
        {
            return Ok(());
        }
        self.link.connect()?;
        while !self.link.advance()? {
            self.wait(deadline)?;
        }
        self.session.begin();
        loop {
            if let Some(reply) = self.session.next() {
                let fault = reply.err().unwrap_or(Fault::Protocol);
                self.link.close();
                return Err(StoreError::of(fault, self.session.error_text()));
            }
            if self.session.is_ready() {
                return Ok(());
            }
            self.turn(deadline)?;
        }
    }

    /// Waits for the answer to the one outstanding call.
    fn answer<T>(
        &mut self,
        deadline: u64,
        read: impl Fn(&Answer<'_>) -> Result<T, StoreError>,
    ) -> Result<Result<T, Fault>, StoreError> {
        loop {
            match self.session.next() {
                Some(Ok(answer)) => return read(&answer).map(Ok),
                Some(Err(fault)) => return Ok(Err(fault)),
                None => {}
            }
            self.turn(deadline)?;
        }
    }

    /// Writes, waits for the socket once, and reads.
    fn turn(&mut self, deadline: u64) -> Result<(), StoreError> {
        if !self.session.output().is_empty() {
            let n = self.link.write(self.session.output())?;
            self.session.wrote(n);
        }
        self.wait(deadline)?;
        self.receive()?;
        Ok(())
    }

    fn receive(&mut self) -> Result<(), LinkError> {
        let n = self.link.read(self.session.input())?;
        self.session.read(n);
        Ok(())
    }

    fn wait(&mut self, deadline: u64) -> Result<(), StoreError> {
        let left = deadline.saturating_sub(Monotonic.now());
        if left == 0 {
            return Err(StoreError::TimedOut);
        }
        self.link.wait(!self.session.output().is_empty(), left)?;
        Ok(())
    }
}
