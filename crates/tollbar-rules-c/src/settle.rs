//! Costs that answers tell.

use crate::rules::*;
use ::tollbar_rules::Taken;
use core::ffi::c_char;
use tollbar_c::boundary::*;
use tollbar_c::status::*;
use tollbar_c::table::request_code;

/// Charges what the answer to an admitted request has cost, under rules with
/// `cost = "answer NAME"`. `answer` is that of tollbar_rules_check, and `fields` are those of the
/// request again, with the words of the answer (":NAME") among them. A cost above the estimate
/// makes a debt, which later requests of the key wait for. Of a cost below it the rest goes back to
/// the key, without what the key has regained since.
///
/// Returns TOLLBAR_YES, or TOLLBAR_NO if the words lack a cost or have one that is no whole number:
/// there the estimate stays. Call this once for each admission, because a second call would give
/// back twice. After a reload that changes which requests a rule is for, or their key or cost, the
/// estimates of before stay under that rule.
///
///     tollbar_rules_field with_tokens[3] = {request[0], request[1], {":tokens", 7, "1700", 4}};
///     tollbar_rules_settle(rules, with_tokens, 3, &answer);
///
/// # Safety
/// Pointers are NULL or as said; the fields' pointers have as many bytes as their lengths say.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_settle(
    rules: *const tollbar_rules,
    fields: *const tollbar_rules_field,
    count: usize,
    answer: *const tollbar_rules_answer,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { settle(rules, fields, count, answer, None) })
}

/// tollbar_rules_settle at the caller's time, on the scale of tollbar_rules_now.
///
/// # Safety
/// As tollbar_rules_settle.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_settle_at(
    rules: *const tollbar_rules,
    fields: *const tollbar_rules_field,
    count: usize,
    answer: *const tollbar_rules_answer,
    now_ns: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { settle(rules, fields, count, answer, Some(now_ns)) })
}

/// Writes the name of a word of answers that tells costs, as `tokens` of `cost = "answer tokens"`,
/// with a NUL. The words of the rules in force are numbered from 0 on, each once. A server asks for
/// them when it reads its configuration, and says which it cannot give.
///
/// Returns TOLLBAR_YES, TOLLBAR_NO if there are no more words, or TOLLBAR_E_BUFFER_TOO_SMALL.
///
/// # Safety
/// `rules` is NULL or open, `word` is NULL or has `size` writable bytes.
#[no_mangle]
pub unsafe extern "C" fn tollbar_rules_word_of_answers(
    rules: *const tollbar_rules,
    number: usize,
    word: *mut c_char,
    size: usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let set = unsafe { reference(rules) }?.rules.set();
        let words = set.file().words_of_answers();
        let Some(text) = words.get(number) else { return Ok(TOLLBAR_NO) };
        if word.is_null() {
            return Err(TOLLBAR_E_NULL);
        }
        if text.len() >= size {
            return Err(TOLLBAR_E_BUFFER_TOO_SMALL);
        }
        // SAFETY: `word` has more bytes than the text by the caller's promise.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr(), word.cast::<u8>(), text.len());
            word.add(text.len()).write(0);
        }
        Ok(TOLLBAR_YES)
    })
}

unsafe fn settle(
    rules: *const tollbar_rules,
    fields: *const tollbar_rules_field,
    count: usize,
    answer: *const tollbar_rules_answer,
    now: Option<u64>,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let rules = unsafe { &reference(rules)?.rules };
    if answer.is_null() {
        return Err(TOLLBAR_E_NULL);
    }
    // SAFETY: not NULL, so as said by the caller's promise.
    let answer = unsafe { read(answer) }?;
    let taken = Taken {
        generation: answer.generation,
        at: answer.taken_at_ns,
        refused_shadows: answer.refused_shadows,
    };
    // SAFETY: by the caller's promise.
    let settled = unsafe {
        with_fields(fields, count, |request| match now {
            Some(now) => rules.settle_at(&taken, request, now),
            None => rules.settle(&taken, request),
        })
    }?;
    match settled {
        Ok(true) => Ok(TOLLBAR_YES),
        Ok(false) => Ok(TOLLBAR_NO),
        Err(error) => Err(request_code(error)),
    }
}
