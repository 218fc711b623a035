//! The encoding of a policy and its [`Keep`] as the words of a version's record.

use super::knots::{knots_of_words, words_of_knots, KNOT_WORDS};
use super::terms::Terms;
use super::Keep;
use crate::policy::{
    Anchor, Classes, Kind, Knots, Mode, Policy, Rate, Unit, Zone, CLASSES_MOST, CLASS_NAME_MOST,
};
use crate::table::memory::layout::RECORD_WORDS;

/// The value of the word of [`Policy::count_rejected`] that means a second rate. The second rate is
/// in the words of `slack`, `warm_up` and `ban`.
const SECOND: u64 = 2;
/// If that word has this value, the record has a curve by knots (`knots.rs`). They are in the words
/// of `slack`, `warm_up`, `ban` and `ban_after`, and then in those of the classes.
const KNOTS: u64 = 3;
/// The value of that word that means a calendar. The zone is in the words of `borrow`, `slack`,
/// `warm_up`, `ban` and `ban_after`, and the first day in that of `segments`.
const CALENDAR: u64 = 4;

/// Words before those of the classes.
const FIRST_WORDS: usize = 14;
/// Words of a class: two of its name, and its reserve.
const CLASS_WORDS: usize = 3;
const _: () =
    assert!(CLASS_NAME_MOST + 1 == 16 && FIRST_WORDS + CLASSES_MOST * CLASS_WORDS <= RECORD_WORDS);
const _: () = assert!(4 + RECORD_WORDS - FIRST_WORDS == KNOT_WORDS);

/// The words of a policy. Word 6 holds the anchor in its lowest bit and the mode above. Word 7
/// holds `segments` in its lower half and `cold` in its upper half. Word 13 holds the unit in its
/// lowest bit, [`Keep`] in the next two and above them whether the version is an override's. The
/// classes follow, and then words that are 0.
pub(crate) fn encode(policy: &Policy, terms: Terms) -> [u64; RECORD_WORDS] {
    let Policy {
        limit,
        period,
        burst,
        kind,
        init,
        borrow,
        anchor,
        segments,
        mode,
        slack,
        warm_up,
        cold,
        ban,
        ban_after,
        count_rejected,
        unit,
        classes,
        from,
        zone,
        second,
        knots,
    } = *policy;
    // A second rate, knots and a calendar exclude each other, and the options whose words they use.
    let (borrow, ban_after) = (u64::from(borrow), u64::from(ban_after));
    let ([borrow, slack, warm_up, ban, ban_after], flags) = match second {
        Some(rate) => ([borrow, rate.limit, rate.period, rate.burst, ban_after], SECOND),
        None if kind == Kind::Calendar => (zone.to_words(), CALENDAR),
        None if !knots.is_none() => {
            let [a, b, c, d, ..] = words_of_knots(kind, &knots);
            ([borrow, a, b, c, d], KNOTS)
        }
        None => ([borrow, slack, warm_up, ban, ban_after], u64::from(count_rejected)),
    };
    let segments = if kind == Kind::Calendar { from } else { segments };
    let first: [u64; FIRST_WORDS] = [
        limit,
        period,
        burst,
        kind as u64,
        init,
        borrow,
        anchor as u64 | (mode as u64) << 1,
        u64::from(segments) | u64::from(cold) << 32,
        slack,
        warm_up,
        ban,
        ban_after,
        flags,
        unit as u64 | (terms.keep as u64) << 1 | u64::from(terms.is_override) << 3,
    ];
    let mut words = [0; RECORD_WORDS];
    let (head, tail) = words.split_at_mut(FIRST_WORDS);
    head.iter_mut().zip(first).for_each(|(to, word)| *to = word);
    if flags == KNOTS {
        tail.iter_mut()
            .zip(words_of_knots(kind, &knots).iter().skip(4))
            .for_each(|(to, word)| *to = *word);
    }
    if !classes.is_empty() {
        for (to, (name, reserve)) in tail.chunks_exact_mut(CLASS_WORDS).zip(classes.to_raw()) {
            let name = u128::from_ne_bytes(name);
            to.iter_mut()
                .zip([name as u64, (name >> 64) as u64, reserve])
                .for_each(|(to, word)| *to = word);
        }
    }
    words
}

/// The policy and [`Keep`] of these words; `None` if no policy has such words.
pub(crate) fn decode(words: &[u64; RECORD_WORDS]) -> Option<(Policy, Terms)> {
    let [limit, period, burst, kind, init, mut borrow, choices, counts, mut slack, mut warm_up, mut ban, mut ban_after, flags, last, classes @ ..] =
        *words;
    let kind = *Kind::ALL.get(usize::try_from(kind).ok()?)?;
    let (mut segments, mut from, mut zone) = (counts as u32, 0, Zone::UTC);
    if (flags == CALENDAR) != (kind == Kind::Calendar) {
        return None;
    }
    if flags == CALENDAR {
        zone = Zone::from_words([borrow, slack, warm_up, ban, ban_after])?;
        (borrow, slack, warm_up, ban, ban_after) = (0, 0, 0, 0, 0);
        (segments, from) = (0, segments);
    }
    let (mut second, mut knots) = (None, Knots::NONE);
    if flags == SECOND {
        second = Some(Rate { limit: slack, period: warm_up, burst: ban });
        (slack, warm_up, ban) = (0, 0, 0);
    }
    if flags == KNOTS {
        let mut all = [0; KNOT_WORDS];
        let words = [slack, warm_up, ban, ban_after].into_iter().chain(classes);
        all.iter_mut().zip(words).for_each(|(to, word)| *to = word);
        knots = knots_of_words(kind, &all)?;
        (slack, warm_up, ban, ban_after) = (0, 0, 0, 0);
    }
    let flag = |word: u64| match word {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    let keep = [Keep::Count, Keep::Time, Keep::Reset]
        .into_iter()
        .find(|&keep| keep as u64 == last >> 1 & 3)?;
    let policy = Policy {
        limit,
        period,
        burst,
        kind,
        init,
        borrow: flag(borrow)?,
        anchor: if choices & 1 != 0 { Anchor::First } else { Anchor::Epoch },
        segments,
        mode: match choices >> 1 {
            0 => Mode::N,
            1 => Mode::Strict,
            2 => Mode::Interpolated,
            _ => return None,
        },
        slack,
        warm_up,
        cold: (counts >> 32) as u32,
        ban,
        ban_after: u32::try_from(ban_after).ok()?,
        count_rejected: !matches!(flags, SECOND | KNOTS | CALENDAR) && flag(flags)?,
        unit: if flag(last & 1)? { Unit::Bytes } else { Unit::Permits },
        classes: if flags == KNOTS { Classes::NONE } else { classes_of(&classes)? },
        from,
        zone,
        second,
        knots,
    };
    Some((policy, Terms { keep, is_override: flag(last >> 3)? }))
}

/// The classes of the words that follow those of the other options.
fn classes_of(words: &[u64; RECORD_WORDS - FIRST_WORDS]) -> Option<Classes> {
    let mut raw = Classes::NONE.to_raw();
    if words.iter().all(|word| *word == 0) {
        return Some(Classes::NONE);
    }
    for ((name, reserve), from) in raw.iter_mut().zip(words.chunks_exact(CLASS_WORDS)) {
        let [low, high, kept] = *from else { return None };
        (*name, *reserve) = ((u128::from(low) | u128::from(high) << 64).to_ne_bytes(), kept);
    }
    Classes::of_raw(&raw).ok()
}
