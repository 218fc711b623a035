//! Rules in force: one decision on one request, and the reload of the file.

mod answer;

use crate::charge::{Charge, Decided, LimitedRules, Time};
use crate::file::{Format, Place, Problem};
use crate::load::{self, LoadError, Stamps};
use crate::request::Field;
use crate::rule::RuleFile;
use crate::set::{Home, Part, Set};
use crate::store::{Reloaded, Store};
use crate::taken::Taken;
use crate::times;
use arc_swap::ArcSwap;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tollbar::internal::generation;
use tollbar::table::{Missing as TableMissing, Options as TableOptions, Stats, Table};
use tollbar::take_many::ManyError;
use tollbar::{Reason, Verdict};

pub use answer::Answer;

/// The options of [`Rules::open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many keys can have a debt at one time. A key counts once for each of its limits.
    pub keys: u64,
    /// The states are in memory that this process shares with the processes that it forks later.
    /// Then only this process can reload.
    pub shared: bool,
    /// The seed of the tables' hash. `None` is a random seed.
    pub seed: Option<u64>,
    /// The most segments of a sliding window, or permits of a sliding log, for which each key has
    /// room ([`tollbar::table::Options::room`]). A reload may then change such a limit to any
    /// other, and any other to it, and keys keep the permits that they have left. 0: none, and such
    /// a limit begins anew if its policy changes.
    pub room: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { keys: 100_000, shared: false, seed: None, room: 0 }
    }
}

/// Rules in force. Any number of threads may check requests while another one reloads.
///
/// ```
/// use tollbar_rules::{Field, Format, Options, Rules};
///
/// let rules = Rules::from_text("
/// version = 1
/// [route.login]
/// path = '/login'
/// method = 'POST'
/// limit = '2/min'
/// status = 429
/// body = 'too many logins'
/// ", Format::Toml, &Options::default())?;
/// let request: Vec<Field> =
///     [(":method", "POST"), (":path", "/login"), (":address", "192.0.2.1")].iter().map(|(n, v)| Field::from((*n, *v))).collect();
/// assert!(rules.check(&request)?.is_allowed());
/// assert!(rules.check(&request)?.is_allowed());
/// let refused = rules.check(&request)?;
/// assert_eq!((refused.rule(), refused.status(), refused.body()), (Some("login"), 429, "too many logins"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Rules {
    /// The set in force. Readers take it without a lock, and a reload replaces it as a whole.
    set: ArcSwap<Set>,
    /// The table that the rules share (`Store::table`), so that a check needs no lock of `store`.
    table: Arc<Table>,
    /// Only reloads and statistics lock it.
    store: Mutex<Store>,
    path: Option<PathBuf>,
    stamps: Mutex<Stamps>,
    /// Whether the last reload of this process failed.
    reload_failed: AtomicBool,
    /// With a shared table: the process that may reload, as [`this_process`].
    owner: Option<AtomicU64>,
}

impl Rules {
    /// Reads the rules file and puts its rules in force. A name that ends in `.yaml`, `.yml` or
    /// `.json` is YAML, any other is TOML.
    ///
    /// # Errors
    /// [`LoadError`]: the file cannot be read, has problems, or no table can be made for it.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Rules, LoadError> {
        let path = path.as_ref();
        let mut stamps = Stamps::new();
        let mut rules = Rules::of(load::file(path, &mut stamps)?, path, options)?;
        (rules.path, rules.stamps) = (Some(path.to_owned()), Mutex::new(stamps));
        Ok(rules)
    }

    /// Puts the rules of a text in force.
    ///
    /// # Errors
    /// As [`Rules::open`].
    pub fn from_text(text: &str, format: Format, options: &Options) -> Result<Rules, LoadError> {
        let name = Path::new("rules");
        Rules::of(load::text(text, format, name)?, name, options)
    }

    fn of(file: RuleFile, name: &Path, options: &Options) -> Result<Rules, LoadError> {
        let mut table = TableOptions::new(options.keys);
        table.missing = TableMissing::Report;
        table.seed = options.seed;
        table.room = options.room;
        // C5: room for twice as many, so that a reload can bring new ones. A file has at most half
        // of what a table can have.
        table.overrides = (2 * file.policies_of_keys()).max(OVERRIDES_LEAST) as _;
        let wrong = |error| LoadError::table(name, error);
        let mut store = Store::open(&table, options.shared).map_err(wrong)?;
        let (set, _) = store.change(file, None).map_err(wrong)?;
        Ok(Rules {
            set: ArcSwap::from_pointee(set),
            table: Arc::clone(store.table()),
            store: Mutex::new(store),
            path: None,
            stamps: Mutex::new(Stamps::new()),
            reload_failed: AtomicBool::new(false),
            owner: options.shared.then(|| AtomicU64::new(this_process())),
        })
    }

    /// Decides on a request by the tables' clock.
    ///
    /// # Errors
    /// [`ManyError`]: a table is damaged. The call has charged nothing, and its caller decides
    /// whether the request passes.
    pub fn check(&self, request: &[Field<'_>]) -> Result<Answer, ManyError> {
        self.decide(request, None)
    }

    /// [`Rules::check`] at the caller's time, on the scale of [`Rules::now`].
    ///
    /// # Errors
    /// As [`Rules::check`].
    pub fn check_at(&self, request: &[Field<'_>], now: u64) -> Result<Answer, ManyError> {
        self.decide(request, Some(Time::of_tables(now)))
    }

    /// [`Rules::check`] at the caller's Unix time in nanoseconds, which may be before
    /// [`TIME_ZERO`](tollbar::clock::TIME_ZERO): for the replay of a log. Each limit decides as it
    /// would at that time by [`Rules::check`]. Rules that are checked by this call must be checked
    /// by this call only, because their tables count from another zero.
    ///
    /// # Errors
    /// As [`Rules::check`].
    pub fn check_at_unix(&self, request: &[Field<'_>], unix: u64) -> Result<Answer, ManyError> {
        self.decide(request, Some(Time::of_unix(unix)))
    }

    /// The time of the tables' clock: nanoseconds of UTC since
    /// [`TIME_ZERO`](tollbar::clock::TIME_ZERO).
    pub fn now(&self) -> u64 {
        self.table.now()
    }

    /// The set of rules in force.
    pub fn set(&self) -> Arc<Set> {
        self.set.load_full()
    }

    fn decide(&self, request: &[Field<'_>], now: Option<Time>) -> Result<Answer, ManyError> {
        let set = self.set.load();
        let mut keys = KEYS.take();
        keys.clear();
        let mut taken = Taken { generation: set.generation(), at: 0, refused_shadows: 0 };
        if set.has_answers {
            // Before the limits read their clocks, because permits that come back before the charge
            // must not be given back.
            taken.at = now.map_or_else(|| self.now(), Time::tables);
        }
        let decided = self.decide_by(&set, request, now, &mut keys, &mut taken);
        KEYS.set(keys);
        decided.map(|decided| Answer { set, decided, taken })
    }

    fn decide_by(
        &self,
        set: &Set,
        request: &[Field<'_>],
        now: Option<Time>,
        keys: &mut Vec<u8>,
        to_settle: &mut Taken,
    ) -> Result<Decided, ManyError> {
        let seen = set.see(request);
        let unix = match now {
            Some(now) => now.unix(),
            None if set.has_times => times::wall_clock(),
            None => 0,
        };
        let matching = set.matching(&seen, unix);
        let mut parts = LimitedRules::default();
        let mut uncharged = None;
        for &rule in matching.rules() {
            let part = set.part(rule, matching.route, &seen, keys);
            set.tally(rule, &part);
            match part {
                Part::Limited(key, cost) => {
                    parts.push(rule, key, set.class(rule, &seen, keys), cost)
                }
                Part::MissingDenied | Part::Ambiguous => {
                    return Ok(Decided::without(Verdict::Denied, Reason::MissingKey, Some(rule)))
                }
                Part::Exempt => uncharged = uncharged.or(Some((Reason::Exempt, rule))),
                Part::MissingAllowed => uncharged = uncharged.or(Some((Reason::MissingKey, rule))),
                Part::NoLimit => {}
            }
        }
        let charge = Charge { set, shared: &self.table, now, unix };
        let mut taken = charge.take(&parts, keys)?;
        if let Some(taken) = taken.as_mut().filter(|_| set.has_times) {
            set.bound_wait(&matching, unix, &mut taken.decision);
        }
        let refusing = taken.and_then(|taken| taken.refusing());
        for &rule in matching.rules() {
            let shadows = set.shadows_of(rule);
            // A shadow decides on the requests that all other rules than its own admit: those that
            // would reach its limit in that rule's place. Without shadows nothing is asked.
            let reaches = !shadows.is_empty()
                && (refusing.is_none()
                    || refusing == Some(rule)
                        && charge.admits_without(rule, &parts, keys).unwrap_or(false));
            for &shadow in shadows.iter().filter(|_| reaches) {
                let part = set.part(shadow, matching.route, &seen, keys);
                set.tally(shadow, &part);
                if let Part::Limited(key, cost) = part {
                    let mut alone = LimitedRules::default();
                    alone.push(shadow, key, set.class(shadow, &seen, keys), cost);
                    // A shadow's decision does not change the answer. The table counts it. An error
                    // is left out, because the shadow refuses nothing.
                    if let Ok(Some(by_shadow)) = charge.take(&alone, keys) {
                        let admits = by_shadow.decision.is_allowed();
                        set.compare(refusing, rule, shadow, admits);
                        if !admits {
                            to_settle.note_refused_shadow(set, shadow);
                        }
                    }
                }
            }
        }
        Ok(match (taken, uncharged) {
            (Some(taken), _) => taken,
            (None, Some((reason, rule))) => Decided::without(Verdict::Allowed, reason, Some(rule)),
            (None, None) => Decided::without(Verdict::Allowed, Reason::Admitted, None),
        })
    }

    /// Reads the file again and puts its rules in force, all at once. Keys of rules whose name
    /// stays keep their states: under another policy they keep the permits that they have left.
    /// The exception is a change from or to a sliding window or log that needs more memory a key
    /// than [`Options::room`] gives: there the keys begin with all permits.
    ///
    /// Each request is matched either by the old set or by the new one. The table gets a changed
    /// policy a moment before the new set is in force, so a request that the old set matches may be
    /// decided under the new policy.
    ///
    /// # Errors
    /// [`LoadError`]. The rules in force stay as they were.
    pub fn reload(&self) -> Result<Reloaded, LoadError> {
        let Some(path) = &self.path else { return Err(LoadError::NoFile) };
        let mut store = self.lock_store().map_err(LoadError::OtherProcess)?;
        let mut stamps = Stamps::new();
        let file = load::file(path, &mut stamps);
        // Also after a fault, so that `reload_if_changed` reads files with faults only once.
        *self.stamps.lock().unwrap_or_else(PoisonError::into_inner) = stamps;
        let reloaded = file.and_then(|file| self.change(&mut store, file, path));
        // Relaxed, because nothing else is read by it.
        self.reload_failed.store(reloaded.is_err(), Ordering::Relaxed);
        reloaded
    }

    /// Whether the last [`Rules::reload`] of this process failed, so that other rules are in force
    /// than those of the file.
    pub fn has_failed_to_reload(&self) -> bool {
        self.reload_failed.load(Ordering::Relaxed)
    }

    /// [`Rules::reload`] if the file, or one that it includes, has changed since it was last read:
    /// another file in its place, as after a change of a symbolic link, another length, or another
    /// time.
    ///
    /// # Errors
    /// As [`Rules::reload`], once for each change.
    pub fn reload_if_changed(&self) -> Result<Option<Reloaded>, LoadError> {
        if self.path.is_none() {
            return Err(LoadError::NoFile);
        }
        if !load::have_changed(&self.stamps.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(None);
        }
        self.reload().map(Some)
    }

    /// Puts the rules of a text in force, as [`Rules::reload`] does.
    ///
    /// # Errors
    /// As [`Rules::reload`].
    pub fn replace(&self, text: &str, format: Format) -> Result<Reloaded, LoadError> {
        let mut store = self.lock_store().map_err(LoadError::OtherProcess)?;
        let name = Path::new("rules");
        self.change(&mut store, load::text(text, format, name)?, name)
    }

    /// Makes this process the one that may reload shared rules. It is for a server that reads its
    /// configuration, forks, and goes on in the child: the process that could reload before must
    /// not do so any more, nor end the rules.
    pub fn adopt(&self) {
        if let Some(owner) = &self.owner {
            // Relaxed, because only this process reads the number: a forked process has a copy of
            // its own.
            owner.store(this_process(), Ordering::Relaxed);
        }
    }

    /// Puts a set in force. The caller has locked the store, so that no other reload comes between.
    pub(crate) fn put_in_force(&self, set: Set) {
        self.set.store(Arc::new(set));
    }

    /// The table that the rules share.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Locks the store. If the rules are shared, only the process that opened them may; the error
    /// is that process's number.
    pub(crate) fn lock_store(&self) -> Result<MutexGuard<'_, Store>, u32> {
        match self.owner.as_ref().map(|owner| owner.load(Ordering::Relaxed)) {
            Some(owner) if owner != this_process() => Err(owner as u32),
            // If a thread panicked in a reload, the mutex is poisoned and the old set is in force,
            // so the lock can be used.
            _ => Ok(self.store.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    fn change(
        &self,
        store: &mut Store,
        file: RuleFile,
        name: &Path,
    ) -> Result<Reloaded, LoadError> {
        let keys = file.policies_of_keys();
        if keys > store.overrides() {
            let most = store.overrides();
            let rule = file.rules.iter().max_by_key(|rule| rule.keys.len());
            let files = if file.files.is_empty() { vec![name.to_owned()] } else { file.files };
            return Err(LoadError::Problems(
                files,
                vec![Problem {
                    place: rule.map_or(Place::default(), |rule| rule.place),
                    field: rule.map_or(String::new(), |rule| format!("{}.keys", rule.name)),
                    found: format!("{keys} policies of keys"),
                    expected: format!("at most {most}, for which the rules have had room since they were opened; a restart makes more"),
                }],
            ));
        }
        let old = self.set.load_full();
        let (set, reloaded) =
            store.change(file, Some(&old)).map_err(|error| LoadError::table(name, error))?;
        self.put_in_force(set);
        Ok(reloaded)
    }

    /// How many keys the tables of the rules in force have forgotten, because they had no slot for
    /// another one.
    pub fn evicted(&self) -> u64 {
        self.sum(|stats| stats.evicted)
    }

    /// How many requests the rules in force have refused because their key is banned.
    pub fn banned(&self) -> u64 {
        self.sum(|stats| stats.reasons.banned)
    }

    /// How many requests the rules in force have refused for the permits that they leave to other
    /// classes.
    pub fn reserved(&self) -> u64 {
        self.sum(|stats| stats.reasons.reserve)
    }

    /// The sum of a statistic over the tables of the rules in force.
    fn sum(&self, of: impl Fn(&Stats) -> u64) -> u64 {
        let set = self.set.load();
        let own =
            set.homes.iter().flatten().filter_map(|home| Some(of(&home.own_table()?.stats())));
        of(&self.table.stats()) + own.sum::<u64>()
    }

    /// The decisions of each rule since it was added. A limit whose keys have begun anew
    /// ([`Reloaded::anew`]) counts from then on.
    pub fn counts(&self) -> Vec<RuleCounts> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let set = self.set.load();
        let rules = set.rules().iter().enumerate().map(|(n, rule)| {
            let mut counts = RuleCounts { rule: rule.name.clone(), ..RuleCounts::default() };
            for (limit, home) in set.homes[n].iter().enumerate() {
                let (table, id) = home.table(&self.table);
                let all = table.counts(id).unwrap_or_default();
                let before = match home {
                    Home::Shared(id) => {
                        store.counted.get(&id.number()).copied().unwrap_or_default()
                    }
                    Home::Own(_) | Home::Calendar(_) => Default::default(),
                };
                // A request counts as admitted at each of its limits, and as refused at one of
                // them.
                if limit == 0 {
                    counts.allowed = all.allowed - before.allowed;
                }
                counts.refused += (all.denied - before.denied) + (all.never - before.never);
            }
            (counts.missing, counts.exempt) = set.tallies[n].unlimited();
            (counts.would_refuse, counts.would_allow) = set.tallies[n].disagreements();
            counts
        });
        rules.collect()
    }
}

/// The least number of policies of keys for which a table has room.
const OVERRIDES_LEAST: usize = 1024;

/// Counts of one rule's decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// The rule.
    pub rule: String,
    /// Requests that all rules admitted; of a shadow, those that it would have admitted.
    pub allowed: u64,
    /// Requests that this rule refused; of a shadow, those that it would have refused.
    pub refused: u64,
    /// Requests without a key. The other counts do not include them.
    pub missing: u64,
    /// Requests of exempt keys and networks. The other counts do not include them.
    pub exempt: u64,
    /// Of a shadow: requests that it would have refused, and that all rules admitted.
    pub would_refuse: u64,
    /// Of a shadow: requests that it would have admitted, and that its rule refused.
    pub would_allow: u64,
}

/// This process: its number in the lower half, and in the upper half what tells it from a child
/// that has the same number in another PID namespace.
fn this_process() -> u64 {
    u64::from(generation()) << 32 | u64::from(std::process::id())
}

thread_local! {
    /// The bytes of a request's keys. A thread allocates them once.
    static KEYS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}
