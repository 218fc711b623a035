//! Rules in a file.

use crate::report::{print, report};
use ::tollbar_rules::{metrics, Answer, Field, Options, ResetError, Rules};
use core::ffi::{c_char, CStr};
use core::mem::size_of;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use tollbar::http;
use tollbar_c::boundary::*;
use tollbar_c::metrics::format_of;
use tollbar_c::status::*;
use tollbar_c::table::table_code;

/// For tollbar_rules_options.flags: the states are in memory that this process shares with the
/// processes that it forks later. Then only this process can reload.
pub const TOLLBAR_RULES_SHARED: u32 = 1;

/// Rules in force. Any number of threads may check requests while another one reloads.
pub struct tollbar_rules {
    pub(crate) rules: Rules,
}

/// How rules are opened. Start from TOLLBAR_RULES_OPTIONS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_rules_options {
    /// sizeof(tollbar_rules_options), as the caller's compiler sees it.
    pub struct_size: u32,
    /// TOLLBAR_RULES_ flags.
    pub flags: u32,
    /// Keys that can have a debt at one time: a key counts once for each of its limits.
    pub keys: u64,
    /// The most segments of a sliding window, or permits of a sliding log, for which each key has
    /// room (tollbar_table_options.room). A reload may then change such a limit to any other, and
    /// any other to it, and keys keep the permits that they have left. 0: none, and such a limit
    /// begins anew if its policy changes.
    pub room: u32,
    /// Must be 0.
    pub reserved: u32,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_rules_options {
    const FIRST_SIZE: usize = 16;
}

const _: () = assert!(size_of::<tollbar_rules_options>() == 24);

/// A field of a request. The names ":method", ":path" and ":address" are the request's method, its
/// target as the client sent it, and the address of the connection's other end. Any other name that
/// begins with a colon is a word of the server, for `key = "field NAME"`. All other fields are
/// headers; their names have no case.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_rules_field {
    /// The name.
    pub name: *const c_char,
    /// Its length in bytes.
    pub name_length: usize,
    /// The value.
    pub value: *const c_char,
    /// Its length in bytes.
    pub value_length: usize,
}

/// The decision on a request. Start from TOLLBAR_RULES_ANSWER_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_rules_answer {
    /// sizeof(tollbar_rules_answer), as the caller's compiler sees it.
    pub struct_size: u32,
    /// TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER.
    pub verdict: u32,
    /// A TOLLBAR_REASON_ number.
    pub reason: u32,
    /// The HTTP status to answer; 200 for a request that may pass.
    pub status: u32,
    /// Permits that are left of the rule with the fewest.
    pub remaining: u64,
    /// Nanoseconds until the same request would pass; TOLLBAR_NO_TIME if waiting does not help.
    pub retry_after_ns: u64,
    /// Nanoseconds until all limits are as good as fresh.
    pub reset_after_ns: u64,
    /// The number of the set of rules that decided: each reload that succeeds adds 1.
    pub generation: u64,
    /// The name of the rule that refuses or, in an admission, has the fewest permits left. Empty if
    /// no rule matches.
    pub rule: [c_char; 64],
    /// The body to answer; empty for a request that may pass.
    pub body: [c_char; 256],
    /// Permits per period of the limit that binds, in three numbers as tollbar_http_fields wants a
    /// policy's.
    pub limit: u64,
    /// Its period in nanoseconds. 0: no limit took part in the decision.
    pub period_ns: u64,
    /// The most permits that it lets a key take at once.
    pub burst: u64,
    /// For tollbar_rules_settle: when the request took its estimates, on the scale of
    /// tollbar_rules_now. 0 if no cost of the rules is that of an answer.
    pub taken_at_ns: u64,
    /// For tollbar_rules_settle: a bit for each shadow that has taken nothing.
    pub refused_shadows: u64,
}

// SAFETY: repr(C), u32 first, integers and chars without holes.
unsafe impl Growable for tollbar_rules_answer {
    const FIRST_SIZE: usize = 368;
}

const _: () = assert!(size_of::<tollbar_rules_answer>() == 408);

/// Reads the rules file and puts its rules in force. A name that ends in .yaml, .yml or .json is
/// YAML, any other is TOML. `options` may be NULL for the defaults. The caller ends `*out` with
/// tollbar_rules_close.
///
/// Returns TOLLBAR_E_SYNTAX if the file has faults, TOLLBAR_E_OPEN if it cannot be read, or another
/// error. `error` may be NULL. Otherwise the call writes a text of at most `error_size` bytes
/// there, NUL included. The text has one line for each fault, such as
/// `site.toml:3:11: group.a.limit: "r/y" in "5r/y"; expected a limit: a whole number`.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_open(
    path: *const c_char,
    options: *const tollbar_rules_options,
    out: *mut *mut tollbar_rules,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let out = unsafe { place(out) }?;
        if path.is_null() {
            return Err(TOLLBAR_E_NULL);
        }
        let mut wanted = Options::default();
        if !options.is_null() {
            // SAFETY: by the caller's promise.
            let given = unsafe { read(options) }?;
            if given.flags & !TOLLBAR_RULES_SHARED != 0 || given.reserved != 0 {
                return Err(TOLLBAR_E_RESERVED);
            }
            (wanted.keys, wanted.shared) = (given.keys, given.flags & TOLLBAR_RULES_SHARED != 0);
            wanted.room = given.room;
        }
        // SAFETY: not NULL, so a string that ends with NUL by the caller's promise.
        let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
        match Rules::open(path, &wanted) {
            Ok(rules) => {
                out.write(boxed(tollbar_rules { rules })?);
                Ok(TOLLBAR_ALLOWED)
            }
            // SAFETY: by the caller's promise.
            Err(why) => Err(unsafe { report(&why, error, error_size) }),
        }
    })
}

/// Decides on a request, by the tables' clock: takes its cost of all limits of all rules that it
/// matches, or of none.
///
/// Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER, as in `out->verdict`, or an error.
/// With an error nothing has been charged, and the caller says whether the request passes.
///
/// # Safety
/// Pointers are NULL or as said; the fields' pointers have as many bytes as their lengths say.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_check(
    rules: *const tollbar_rules,
    fields: *const tollbar_rules_field,
    count: usize,
    out: *mut tollbar_rules_answer,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { decide(rules, fields, count, None, out) })
}

/// tollbar_rules_check at the caller's time, on the scale of tollbar_rules_now.
///
/// # Safety
/// As tollbar_rules_check.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_check_at(
    rules: *const tollbar_rules,
    fields: *const tollbar_rules_field,
    count: usize,
    now_ns: u64,
    out: *mut tollbar_rules_answer,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { decide(rules, fields, count, Some(now_ns), out) })
}

/// Reads the tables' clock: nanoseconds of UTC since TOLLBAR_TIME_ZERO. Returns 0 for NULL.
///
/// # Safety
/// `rules` is NULL or open.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_now(rules: *const tollbar_rules) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe { reference(rules) }.map_or(0, |rules| rules.rules.now())
}

/// Reads the file again and puts its rules in force as a whole. Keys of rules whose name stays keep
/// their states. With an error the old rules stay in force; `error` is as for tollbar_rules_open.
/// TOLLBAR_E_OWNER: the rules are shared, and another process opened them.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_reload(
    rules: *const tollbar_rules,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        match unsafe { reference(rules) }?.rules.reload() {
            Ok(_) => Ok(TOLLBAR_ALLOWED),
            // SAFETY: by the caller's promise.
            Err(why) => Err(unsafe { report(&why, error, error_size) }),
        }
    })
}

/// tollbar_rules_reload if the file has changed since it was last read. Returns TOLLBAR_YES after a
/// reload, TOLLBAR_NO if the file is the same, or an error, once for each change.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_reload_if_changed(
    rules: *const tollbar_rules,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        match unsafe { reference(rules) }?.rules.reload_if_changed() {
            Ok(Some(_)) => Ok(TOLLBAR_YES),
            Ok(None) => Ok(TOLLBAR_NO),
            // SAFETY: by the caller's promise.
            Err(why) => Err(unsafe { report(&why, error, error_size) }),
        }
    })
}

/// Lets the keys of a rule begin anew: the one of `key_length` bytes at `key`, as `keys` and
/// `exempt` of the file write it, or all of them if `key` is NULL. Requests go on meanwhile. A
/// reset of all keys reads every slot of the table. Sliding windows and logs get a new table, which
/// processes that were forked before do not see.
///
/// Returns TOLLBAR_YES, or TOLLBAR_NO if the key keeps its debt, because the table has no other
/// slot for it. TOLLBAR_E_NO_SUCH_POLICY if no rule has the name, TOLLBAR_E_ADDRESS if the rule's
/// key is the client's address and `key` is none, TOLLBAR_E_OUT_OF_RANGE if a key of the rule has
/// no text, because it comes from several sources or is that of all requests. TOLLBAR_E_OWNER: all
/// keys of shared rules, which only the process that may reload them can reset. `error` is as for
/// tollbar_rules_open.
///
/// # Safety
/// Pointers are NULL or as said, `rule` ends with NUL.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_reset(
    rules: *const tollbar_rules,
    rule: *const c_char,
    key: *const c_char,
    key_length: usize,
    error: *mut c_char,
    error_size: usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let rules = unsafe { &reference(rules)?.rules };
        if rule.is_null() {
            return Err(TOLLBAR_E_NULL);
        }
        // SAFETY: not NULL, so a string that ends with NUL by the caller's promise.
        let rule = unsafe { CStr::from_ptr(rule) }.to_string_lossy();
        let key = match key.is_null() {
            true => None,
            false => {
                // SAFETY: by the caller's promise.
                let text = unsafe { bytes(key, key_length) }?;
                Some(core::str::from_utf8(text).map_err(|_| TOLLBAR_E_OUT_OF_RANGE)?)
            }
        };
        match rules.reset(&rule, key) {
            Ok(true) => Ok(TOLLBAR_YES),
            Ok(false) => Ok(TOLLBAR_NO),
            Err(why) => {
                // SAFETY: by the caller's promise.
                unsafe { print(&why, error, error_size) };
                Err(match why {
                    ResetError::NoSuchRule(_) => TOLLBAR_E_NO_SUCH_POLICY,
                    ResetError::NotAnAddress(_) => TOLLBAR_E_ADDRESS,
                    ResetError::NoText => TOLLBAR_E_OUT_OF_RANGE,
                    ResetError::OtherProcess(_) => TOLLBAR_E_OWNER,
                    ResetError::Table(error) => table_code(error),
                })
            }
        }
    })
}

/// Makes this process the one that may reload shared rules, after it was forked from the process
/// that could before. That one must not reload any more. It is for a server that reads its
/// configuration, forks, and goes on in the child. Returns 0 or TOLLBAR_E_NULL.
///
/// # Safety
/// `rules` is NULL or open.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_adopt(rules: *const tollbar_rules) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        unsafe { reference(rules) }?.rules.adopt();
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Rules, and the name of their series.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_rules_source {
    /// The value of the label `limit` of their series, in UTF-8. The sources of a call must have
    /// different names.
    pub name: *const c_char,
    /// The bytes of the name.
    pub name_length: usize,
    /// The rules.
    pub rules: *const tollbar_rules,
}

/// Writes the metrics of `count` rules into `buffer`, as tollbar_metrics writes those of limiters
/// and tables:
///
///     tollbar_rule_decisions_total{rule,mode,verdict}        requests by rule: allowed by all rules, refused by this one, missing a key, exempt
///     tollbar_shadow_disagreements_total{rule,of,would}      requests that a shadow would refuse or allow, and that were decided otherwise
///     tollbar_rules_reasons_total{reason}                    refusals by a ban (banned), or for the reserve of other classes (reserve)
///     tollbar_rules_evictions_total                          keys with a debt whose slot a new key took
///     tollbar_rules_generation                               the number of the set of rules in force
///     tollbar_rules_last_reload_failed                       1 if the last reload failed, so that the former rules are in force, else 0
///
/// The label `limit` of each is the source's name, `mode` is enforced or shadow, and no key is a
/// label. Shared rules count the requests of all processes. tollbar_metrics has `format`, `length`,
/// the most of `count`, and the errors.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_metrics(
    sources: *const tollbar_rules_source,
    count: usize,
    format: u32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    call(|| {
        let format = format_of(format)?;
        if count > tollbar_c::metrics::TOLLBAR_METRICS_MOST as usize {
            return Err(TOLLBAR_E_OUT_OF_RANGE);
        }
        array(sources, count)?;
        let source = |n: usize| {
            // SAFETY: below `count`, and the array has as many by the caller's promise.
            let source = unsafe { &*sources.add(n) };
            // SAFETY: by the caller's promise.
            let (name, rules) =
                unsafe { (bytes(source.name, source.name_length)?, reference(source.rules)?) };
            let name = core::str::from_utf8(name).map_err(|_| TOLLBAR_E_OUT_OF_RANGE)?;
            Ok((name, &rules.rules))
        };
        let sources = (0..count).map(source).collect::<Result<Vec<_>, i32>>()?;
        // SAFETY: by the caller's promise.
        unsafe { fill(buffer, capacity, length, |out| metrics(&sources, format, out)) }
    })
}

/// Ends rules that no call is using. NULL is allowed and does nothing.
///
/// # Safety
/// `rules` is NULL or has not been closed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_close(rules: *mut tollbar_rules) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(rules) };
}

/// The most fields of a request that need no memory from the heap.
const USUAL_FIELDS: usize = 64;
/// A request with more fields is refused, because a `count` like that is garbage.
const FIELDS_MOST: usize = 1 << 16;

unsafe fn decide(
    rules: *const tollbar_rules,
    fields: *const tollbar_rules_field,
    count: usize,
    now: Option<u64>,
    out: *mut tollbar_rules_answer,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let rules = unsafe { &reference(rules)?.rules };
    if !out.is_null() {
        // The struct's size is checked before anything is charged.
        size_at(out.cast_const())?;
    }
    // SAFETY: by the caller's promise.
    let answer = unsafe {
        with_fields(fields, count, |request| match now {
            Some(now) => rules.check_at(request, now),
            None => rules.check(request),
        })
    }?;
    // tollbar_rules_open refuses a file under which a request has too many limits. So a table is
    // damaged.
    let answer = answer.map_err(|_| TOLLBAR_E_CORRUPT)?;
    if !out.is_null() {
        // SAFETY: by the caller's promise.
        unsafe { write(out, &of(&answer)) }?;
    }
    Ok(answer.decision().verdict as i32)
}

/// Gives `call` the fields of a request.
///
/// # Safety
/// `fields` has `count` fields, whose pointers have as many bytes as their lengths say.
pub(crate) unsafe fn with_fields<T>(
    fields: *const tollbar_rules_field,
    count: usize,
    call: impl FnOnce(&[Field<'_>]) -> T,
) -> Result<T, i32> {
    array(fields, count)?;
    if count > FIELDS_MOST {
        return Err(TOLLBAR_E_OUT_OF_RANGE);
    }
    let field = |n: usize| {
        // SAFETY: below `count`, and the array has as many by the caller's promise.
        let field = unsafe { &*fields.add(n) };
        // SAFETY: by the caller's promise.
        Ok(unsafe {
            Field::new(
                bytes(field.name, field.name_length)?,
                bytes(field.value, field.value_length)?,
            )
        })
    };
    let mut usual = [Field::default(); USUAL_FIELDS];
    let many: Vec<Field<'_>>;
    let request = match usual.get_mut(..count) {
        Some(usual) => {
            for (n, place) in usual.iter_mut().enumerate() {
                *place = field(n)?;
            }
            &*usual
        }
        None => {
            many = (0..count).map(field).collect::<Result<_, i32>>()?;
            &many
        }
    };
    Ok(call(request))
}

fn of(answer: &Answer) -> tollbar_rules_answer {
    let decision = answer.decision();
    let mut out = tollbar_rules_answer {
        struct_size: size_of::<tollbar_rules_answer>() as u32,
        verdict: decision.verdict as u32,
        reason: decision.reason as u32,
        status: u32::from(answer.status()),
        remaining: decision.remaining,
        retry_after_ns: decision.retry_after,
        reset_after_ns: decision.reset_after,
        generation: answer.generation(),
        rule: [0; 64],
        body: [0; 256],
        limit: 0,
        period_ns: 0,
        burst: 0,
        taken_at_ns: answer.taken().at,
        refused_shadows: answer.taken().refused_shadows,
    };
    if let Some(policy) = answer.policy() {
        // Of a policy with two rates it is the one that bound the decision.
        let bound = http::Limit::new(b"", policy, decision);
        (out.limit, out.period_ns, out.burst) = (bound.limit, bound.period, bound.burst);
    }
    // The reader of the file has refused names above 63 bytes and bodies above 255, so a NUL always
    // follows.
    out.rule
        .iter_mut()
        .zip(answer.rule().unwrap_or("").bytes())
        .for_each(|(to, from)| *to = from as c_char);
    out.body.iter_mut().zip(answer.body().bytes()).for_each(|(to, from)| *to = from as c_char);
    out
}
