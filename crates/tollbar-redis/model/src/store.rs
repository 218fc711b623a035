//! The store: the shipped arithmetic, one key, and a server's clock.

use crate::world::Fault;
use tollbar_redis::lease::ask::{Ask, Requester};
use tollbar_redis::lease::bucket::{self, Grant};
use tollbar_redis::lease::change::Stored;
use tollbar_redis::lease::record::Record;
use tollbar_redis::lease::Terms;

/// What the server holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Store {
    record: Option<Record>,
    /// The key's TAT, and the time of the server's clock at which it expires.
    tat: Option<(u64, u64)>,
    /// The name of the next data.
    fresh: u64,
}

impl Store {
    /// A server that has just lost everything, for the `fresh`th time.
    pub fn new(fresh: u64) -> Store {
        Store { record: None, tat: None, fresh }
    }

    /// Whether the key has all of its permits when the server's clock says `raw` microseconds.
    pub fn is_full(&self, raw: u64) -> bool {
        let (Some(record), Some((tat, expires))) = (self.record, self.tat) else { return true };
        expires <= raw || tat <= record.now + raw.saturating_sub(record.raw)
    }

    /// What the script answers when the server's clock says `raw` microseconds.
    pub fn execute(
        &mut self,
        terms: &Terms,
        ask: &Ask,
        seen: u64,
        raw: u64,
        fault: Fault,
    ) -> Grant {
        let requester = Requester { seen, fresh: self.fresh, ..Requester::default() };
        let stored = self.tat.filter(|(_, expires)| *expires > raw).map(|(tat, _)| Stored {
            tat,
            version: terms.version,
            until: 0,
        });
        let early = fault == Fault::ChargedEarly;
        let asked = Ask { life: if early { 0 } else { ask.life }, ..*ask };
        let (record, mut grant, _) =
            bucket::execute(self.record, stored, terms, &asked, &requester, raw);
        if early {
            grant.life = ask.life;
        }
        self.record = Some(record);
        if grant.tat > grant.now {
            self.tat = Some((grant.tat, grant.tat - grant.now + raw + record.margin));
        }
        grant
    }
}
