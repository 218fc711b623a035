//! Changes a limit while machines use it.

use super::bell::sleep;
use super::layout::is_name;
use super::terms::{Options, Terms, TermsError};
use super::wire::{ask_record, Recorded, TermsText, SCRIPTS};
use crate::redis::Url;
use crate::store::{Connection, StoreError};
use core::fmt;
use tollbar::clock::{Clock, Monotonic};
use tollbar::policy::Policy;

/// Why [`set`] has not changed a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetError {
    /// The policy or the name cannot be leased.
    Terms(TermsError),
    /// The store does not answer, or refuses. After [`StoreError::may_have_charged`] it may have
    /// changed the limit.
    Store(StoreError),
    /// The store has no such limit. The first machine that uses a limit makes it.
    Missing,
    /// The limit has this version, and not the expected one: somebody else has changed it.
    Version(u64),
    /// The allocator has no memory for a connection.
    NoMemory,
}

/// Nanoseconds between two tries, while the store still waits for machines to learn the last
/// change.
const PAUSE: u64 = 100_000_000;

/// Gives the limit `name` in the store at `url` another policy. Every machine that asks the store
/// knows it within half a second. Keys keep the permits that they have used. The number of
/// machines and the other options stay as they are, and the overdraft and the life follow the
/// policy, unless the options gave them.
///
/// With `if_version` the call changes the limit only if it has that version. The call waits at most
/// `timeout` nanoseconds. A change within two seconds after another one waits for those seconds.
/// Returns the terms in force; [`Terms::version`] is one more than before. If the limit has the
/// policy already, nothing changes.
pub fn set(
    url: &Url,
    name: &str,
    policy: &Policy,
    if_version: Option<u64>,
    timeout: u64,
) -> Result<Terms, SetError> {
    if !is_name(name) {
        return Err(SetError::Terms(TermsError::Name));
    }
    let name = name.as_bytes();
    let mut connection = Connection::new(url, SCRIPTS).map_err(|_| SetError::NoMemory)?;
    let deadline = Monotonic.now().saturating_add(timeout);
    let Recorded::Other(old) = ask_record(&mut connection, name, b"", deadline)? else {
        return Err(SetError::Missing);
    };
    if if_version.is_some_and(|version| version != old.version) {
        return Err(SetError::Version(old.version));
    }
    let new = Terms { version: old.version + 1, ..Terms::new(policy, &old.options())? };
    new.reserve()?;
    if new.counts_as(&old) {
        return Ok(old);
    }
    loop {
        let text = TermsText::new(&new);
        match ask_record(&mut connection, name, text.bytes(), deadline)? {
            Recorded::Same => return Ok(new),
            Recorded::Other(terms) if terms.version == new.version && terms.counts_as(&new) => {
                return Ok(terms);
            }
            Recorded::Other(terms) if terms.version != old.version => {
                return Err(SetError::Version(terms.version));
            }
            Recorded::Missing => return Err(SetError::Missing),
            // Machines still learn the last change.
            Recorded::Other(_) if Monotonic.now().saturating_add(PAUSE) < deadline => {
                sleep(PAUSE);
            }
            Recorded::Other(_) => return Err(SetError::Store(StoreError::TimedOut)),
        }
    }
}

impl Terms {
    /// The options by which these terms were made. `capacity` and `fallback` are the defaults.
    fn options(&self) -> Options {
        use super::terms::{OnLoss, EXACT, LIFE_GIVEN, OVERDRAFT_GIVEN};
        let given = |flag| self.flags & flag != 0;
        Options {
            life: if given(LIFE_GIVEN) { self.life } else { 0 },
            overdraft: match given(OVERDRAFT_GIVEN) {
                true => self.overdraft,
                false => Options::OVERDRAFT_DEFAULT,
            },
            exact: given(EXACT),
            on_loss: if self.refills() { OnLoss::Refill } else { OnLoss::Full },
            ..Options::new(u32::try_from(self.nodes).unwrap_or(u32::MAX))
        }
    }

    /// Whether both count alike, whatever their versions.
    fn counts_as(&self, other: &Terms) -> bool {
        let numbers = |terms: &Terms| Terms {
            version: 0,
            overdraft_before: terms.overdraft,
            since: 0,
            fallback: 0,
            ..*terms
        };
        numbers(self) == numbers(other)
    }
}

impl From<StoreError> for SetError {
    fn from(error: StoreError) -> SetError {
        SetError::Store(error)
    }
}

impl From<TermsError> for SetError {
    fn from(error: TermsError) -> SetError {
        SetError::Terms(error)
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::Terms(error) => error.fmt(f),
            SetError::Store(error) => error.fmt(f),
            SetError::Missing => f.write_str(
                "the store has no such limit: the first machine that uses a limit makes it",
            ),
            SetError::Version(version) => {
                write!(f, "the limit has version {version}: somebody else has changed it")
            }
            SetError::NoMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for SetError {}
