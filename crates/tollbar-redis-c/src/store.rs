//! Decisions that the store makes, asked by the program's own Redis client.

use core::ffi::{c_char, c_void, CStr};
use core::mem::{align_of, size_of};
use tollbar_c::boundary::*;
use tollbar_c::check::answer_to;
use tollbar_c::decision::tollbar_decision;
use tollbar_c::policy::{policy, tollbar_policy_spec};
use tollbar_c::status::*;
use tollbar_redis::store::{LimitError, StoreAsk, StoreError, StoreLimit, StoreQuestion, KEY_MOST};

/// tollbar_store_ask: takes `cost` permits, or none.
pub const TOLLBAR_STORE_CHECK: u32 = 0;
/// The decision of TOLLBAR_STORE_CHECK, which takes nothing.
pub const TOLLBAR_STORE_PEEK: u32 = 1;
/// Takes as many permits as are left, up to `cost`. TOLLBAR_ALLOWED if it took any, otherwise
/// TOLLBAR_DENIED.
pub const TOLLBAR_STORE_UP_TO: u32 = 2;
/// Forgets the key.
pub const TOLLBAR_STORE_RESET: u32 = 3;

/// The longest key, in bytes.
pub const TOLLBAR_STORE_KEY_MAX: usize = 512;

/// A limit that a store decides. Any number of threads may use it at once, in all calls but
/// tollbar_store_limit_free.
pub struct tollbar_store_limit {
    limit: StoreLimit,
}

/// A call of a script, about one key. It may be copied. Start from TOLLBAR_STORE_QUESTION_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_store_question {
    /// sizeof(tollbar_store_question), as the caller's compiler sees it.
    pub struct_size: u32,
    /// A TOLLBAR_STORE_ number.
    pub ask: u32,
    /// The permits that are asked for.
    pub cost: u64,
    /// The script, in Lua. It returns an array of whole numbers. NULL: no call is needed, and the
    /// reply is empty.
    pub script: *const c_char,
    /// Its arguments, in decimal at most 2^53 each.
    pub args: [u64; 7],
    /// The number of arguments.
    pub arg_count: u32,
    /// The bytes of the key.
    pub key_length: u32,
    /// The only key of the script. It is not NUL-terminated, and may have any bytes.
    pub key: [u8; 592],
}

// SAFETY: repr(C), u32 first, fields without holes.
unsafe impl Growable for tollbar_store_question {
    const FIRST_SIZE: usize = size_of::<tollbar_store_question>();
}

const _: () = assert!(
    TOLLBAR_STORE_KEY_MAX == KEY_MOST
        && StoreQuestion::KEY_MOST == 592
        && StoreQuestion::ARGS_MOST == 7
);
const _: () = assert!(size_of::<tollbar_store_question>() % align_of::<u64>() == 0);

/// Compiles a policy for a store: gcra, interval, fixed-window, weighted-window, sliding-log or an
/// aligned sliding-window, without `borrow`, `ban`, `init`, `reserve` and a second rate. `name`
/// tells limits apart: 1 to 64 visible ASCII characters without braces (TOLLBAR_E_LEASE_NAME). The
/// caller frees `*out` with tollbar_store_limit_free.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_store_limit_new(
    name: *const c_char,
    length: usize,
    spec: *const tollbar_policy_spec,
    out: *mut *mut tollbar_store_limit,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, name, policy) = unsafe { (place(out)?, bytes(name, length)?, policy(spec)?) };
        let name = core::str::from_utf8(name).map_err(|_| TOLLBAR_E_LEASE_NAME)?;
        let limit = StoreLimit::new(name, &policy).map_err(limit_code)?;
        out.write(boxed(tollbar_store_limit { limit })?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Frees a limit that no call is using. With NULL the call does nothing.
///
/// # Safety
/// `limit` is NULL or has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_store_limit_free(limit: *mut tollbar_store_limit) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(limit) };
}

/// Writes what to ask the store about `cost` permits of a key to `*question`. `ask` is a
/// TOLLBAR_STORE_ number, and the key has 1 to TOLLBAR_STORE_KEY_MAX bytes (TOLLBAR_E_STORE_KEY).
/// The program makes the call by EVALSHA and, if the store does not know the script, by EVAL. A
/// call that may have reached the store may have charged the key.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_store_ask(
    limit: *const tollbar_store_limit,
    ask: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    question: *mut tollbar_store_question,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (limit, key, mut found) =
            unsafe { (reference(limit)?, bytes(key.cast(), length)?, read(question)?) };
        let asked =
            limit.limit.question(ask_of(ask)?, key, cost).map_err(|why| store_code(&why))?;
        (found.ask, found.cost) = (ask, cost);
        found.script = asked.script().map_or(core::ptr::null(), CStr::as_ptr);
        found.args = [0; 7];
        found.args.iter_mut().zip(asked.args()).for_each(|(to, number)| *to = *number);
        found.key.iter_mut().zip(asked.key()).for_each(|(to, byte)| *to = *byte);
        found.arg_count = asked.args().len() as u32;
        found.key_length = asked.key().len() as u32;
        // SAFETY: by the caller's promise; `read` has checked it.
        unsafe { write(question, &found) }?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Reads the `count` numbers that the script returned to `question`, which is of this limit. The
/// result and `out`, which may be NULL, are those of tollbar_table_check; the times are whole
/// microseconds, rounded up. Unless NULL, `*taken` gets the permits that the store has charged.
///
/// TOLLBAR_E_STORE_VALUE: the key has another algorithm's or another program's value, and nothing
/// was charged. Give a limit another name with another algorithm. TOLLBAR_E_STORE_REPLY: the
/// numbers are not a script's, which returns six at most.
///
/// # Safety
/// Pointers are NULL or as said. `reply` has `count` numbers.
#[no_mangle]
pub unsafe extern "C" fn tollbar_store_answer(
    limit: *const tollbar_store_limit,
    question: *const tollbar_store_question,
    reply: *const i64,
    count: usize,
    out: *mut tollbar_decision,
    taken: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (limit, asked) = unsafe { (reference(limit)?, read(question)?) };
        if !out.is_null() {
            size_at(out)?;
        }
        // SAFETY: by the caller's promise.
        let reply = unsafe { numbers(reply, count) }?;
        // The names of keys do not matter to an answer.
        let asked = limit.limit.question(ask_of(asked.ask)?, b"k", asked.cost);
        let answer = asked
            .and_then(|question| limit.limit.answer(&question, reply))
            .map_err(|why| store_code(&why))?;
        if !taken.is_null() {
            // SAFETY: by the caller's promise.
            unsafe { place(taken) }?.write(answer.taken);
        }
        // SAFETY: by the caller's promise; checked above.
        unsafe { answer_to(out, || answer.decision) }
    })
}

/// # Safety
/// Unless `count` is 0 or `reply` is null or misaligned, `reply` has so many numbers.
unsafe fn numbers<'a>(reply: *const i64, count: usize) -> Result<&'a [i64], i32> {
    if count == 0 {
        return Ok(&[]);
    }
    array(reply, count)?;
    // SAFETY: checked above, and by the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(reply, count) })
}

fn ask_of(number: u32) -> Result<StoreAsk, i32> {
    choose(number, &[StoreAsk::Check, StoreAsk::Peek, StoreAsk::UpTo, StoreAsk::Reset])
}

fn limit_code(error: LimitError) -> i32 {
    match error {
        LimitError::Policy(why) => policy_code(why),
        LimitError::Name => TOLLBAR_E_LEASE_NAME,
        LimitError::Fraction | LimitError::TooLarge => TOLLBAR_E_STORE_NUMBERS,
        _ => TOLLBAR_E_STORE_ALGORITHM,
    }
}

fn store_code(error: &StoreError) -> i32 {
    match error {
        StoreError::Key => TOLLBAR_E_STORE_KEY,
        StoreError::Foreign(_) => TOLLBAR_E_STORE_VALUE,
        _ => TOLLBAR_E_STORE_REPLY,
    }
}
