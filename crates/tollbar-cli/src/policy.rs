//! `tollbar policy`: explains a policy in words, with its worst case and a chart, and checks
//! whether texts are policies.

use crate::chart::{chart_row, local_time, WIDTH};
use crate::problem::{Problem, Result};
use crate::schedule;
use crate::text::{grouped, span};
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};
use tollbar::algorithm::calendar::Calendar;
use tollbar::algorithm::worst_case;
use tollbar::limiter::Shared;
use tollbar::policy::text::parse_checked;
use tollbar::policy::{Opt, Span};
use tollbar::{Kind, Policy, State, Unit};
use tollbar_rules::surprise;

/// Explains and checks policies
#[derive(clap::Subcommand)]
pub enum PolicyCommand {
    /// Says in words what a policy admits, with its worst case and a chart
    Explain {
        /// The policy, such as "100/s burst 20", or a schedule, such as "1000/min, mon-fri
        /// 09:00-18:00 100/min"
        policy: String,
    },
    /// Checks policies and prints each in its shortest form; the first that is wrong ends it with
    /// status 2
    Check {
        /// The policies and schedules
        #[arg(required = true)]
        policies: Vec<String>,
    },
}

/// Runs the command.
pub fn run(command: PolicyCommand) -> Result<()> {
    let text = match command {
        PolicyCommand::Explain { policy } if schedule::has_entries(&policy) => {
            schedule::explain(&schedule::parse(&policy)?, now())?
        }
        PolicyCommand::Explain { policy } => explain(&parse(&policy)?)?,
        PolicyCommand::Check { policies } => {
            policies.iter().map(|policy| shortest(policy)).collect::<Result<String>>()?
        }
    };
    crate::stdout::print(text.as_bytes())
}

/// A policy that a limiter can have, or a message that shows where the text is wrong.
pub fn parse(text: &str) -> Result<Policy> {
    parse_checked(text.as_bytes(), &State::validate)
        .map_err(|error| Problem::syntax("policy", text, &error))
}

/// A policy or a schedule in its shortest form.
fn shortest(text: &str) -> Result<String> {
    match schedule::has_entries(text) {
        true => schedule::parse(text).map(|schedule| format!("{schedule}\n")),
        false => parse(text).map(|policy| format!("{policy}\n")),
    }
}

/// Unix seconds.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs())
}

fn explain(policy: &Policy) -> Result<String> {
    let mut out = format!("{policy}\n\n");
    for sentence in sentences(policy) {
        let _ = writeln!(out, "  {sentence}");
    }
    // A calendar's windows differ in length, and a quota has no period that a chart could show.
    if policy.limit > 0 && policy.kind == Kind::Calendar {
        let _ = write!(out, "\n{}", coming(policy, now() as i64)?);
    } else if policy.limit > 0 && !policy.kind.is_forever() {
        let _ = write!(out, "\n{}", chart(policy)?);
        if let Some(picture) = picture(policy)? {
            let _ = write!(out, "\n{picture}");
        }
    }
    Ok(out)
}

/// `10 permits`, `1 byte`.
fn permits(policy: &Policy, n: u64) -> String {
    let one = if policy.unit == Unit::Bytes { "byte" } else { "permit" };
    crate::text::count(n, one)
}

fn sentences(policy: &Policy) -> Vec<String> {
    let (limit, period) = (policy.limit, span(policy.period));
    let of = |n| permits(policy, n);
    if limit == 0 {
        return vec!["Refuses every request.".to_owned()];
    }
    if policy.kind.is_forever() {
        let mut all = vec![format!("{}, once. None comes back with time.", of(limit))];
        all.extend(classes(policy));
        all.push(format!("The worst case: at most {} until the key is reset.", of(limit)));
        return all;
    }
    if policy.kind == Kind::Calendar {
        return vec![
            format!(
                "{} in each {}. All are there again when the next begins.",
                of(limit),
                windows(policy)
            ),
            format!(
                "The worst case: at most {} within a short time, around the end of a window.",
                of(limit.saturating_mul(2))
            ),
            "It needs the wall clock: choose `wall` as the clock of the limiter or table."
                .to_owned(),
        ];
    }
    let pace = format!("one every {}", span(policy.period / limit));
    let mut all = vec![match policy.kind {
        Kind::Gcra => format!(
            "A bucket of {} that gains {} per {period}: {pace}.",
            of(policy.burst),
            of(limit)
        ),
        Kind::Interval => format!(
            "A bucket of {} that gains {} at once, every {period}.",
            of(policy.burst),
            of(limit)
        ),
        Kind::FixedWindow => {
            format!(
                "{} in each window of {period}. All are there again when the next window begins.",
                of(limit)
            )
        }
        Kind::WeightedWindow => {
            format!("{} in each window of {period}, less what the window before had, weighted by how much of it still counts.", of(limit))
        }
        Kind::SlidingWindow => {
            format!(
                "{} in a window of {period} that slides on by {} at a time.",
                of(limit),
                span(policy.period / u64::from(policy.segments))
            )
        }
        Kind::SlidingLog => {
            format!("{} in any window of {period}, each remembered with its time.", of(limit))
        }
        Kind::Pacer => {
            format!(
                "Departures evenly spaced, {pace}; {} may go at once after an idle time.",
                of(policy.slack + 1)
            )
        }
        Kind::WarmUp => format!(
            "{} per {period} when warm; {} times slower when cold, and warm after {} of use.",
            of(limit),
            policy.cold,
            span(policy.warm_up)
        ),
        Kind::Calendar | Kind::Quota => return Vec::new(),
        Kind::Curve => {
            format!(
                "{} in each slice of {period}. They come along a curve, and what is unused at the slice's end is lost.",
                of(limit)
            )
        }
        Kind::LevelRefill => {
            format!(
                "A bucket of {} that gains at most {} per {period}: {pace}, or slower.",
                of(policy.burst),
                of(limit)
            )
        }
    }];
    if policy.kind.takes(Opt::Burst) && !policy.kind.lends() {
        if policy.init < policy.burst {
            all.push(format!("A new key starts with {}.", of(policy.init)));
        } else {
            all.push(format!(
                "A new key may make {} of cost 1 at once.",
                crate::text::count(at_once(policy), "request")
            ));
        }
    }
    if let Some(second) = policy.second {
        all.push(format!(
            "A second bucket of {} gains {} per {}. A request needs both.",
            of(second.burst),
            of(second.limit),
            span(second.period)
        ));
    }
    if policy.borrow {
        all.push("A bucket without debt lets a request of any cost pass; later ones wait until it is paid.".to_owned());
    }
    if policy.kind == Kind::LevelRefill {
        for [level, rate] in policy.knots.pairs() {
            let from = (u128::from(policy.burst) * u128::from(level) / 10_000) as u64;
            let rate = rate / 100;
            all.push(format!("From {} on permits come back at {rate} % of that rate.", of(from)));
        }
    }
    if policy.ban > 0 {
        all.push(format!(
            "The {} refusal shuts a key out for {}.",
            ordinal(policy.ban_after),
            span(policy.ban)
        ));
    }
    all.extend(classes(policy));
    all.push(format!("The worst case: {} in some window of {period}.", worst(policy)));
    all.extend(surprise(policy).map(|most| warning(policy, most)));
    all
}

/// The warning of a policy that admits more in some period than its text says.
fn warning(policy: &Policy, most: u64) -> String {
    let rate = Policy::new(policy.limit, policy.period);
    let has_burst = policy.kind == Kind::Gcra && policy.second.is_none();
    let burst = if has_burst { "A smaller `burst` lowers it. " } else { "" };
    format!(
        "Warning: that is {} more than the limit, and no burst in the text says so. {burst}`{rate} algo sliding-window mode strict` never admits more than {} in a window.",
        permits(policy, most - policy.limit),
        permits(policy, policy.limit)
    )
}

/// How many requests of cost 1 a new key may make at one instant. A limiter says it, because a
/// second bucket, a debt or an algorithm may admit more or fewer than the burst.
fn at_once(policy: &Policy) -> u64 {
    State::new(policy).map_or(0, |state| {
        let first = state.check_at(policy.period.saturating_mul(4), 1);
        first.remaining.saturating_add(u64::from(first.is_allowed()))
    })
}

/// A sentence for each class.
fn classes(policy: &Policy) -> impl Iterator<Item = String> + '_ {
    policy.classes.iter().map(|(class, reserve)| match reserve {
        0 => format!("A request of class {class} leaves no reserve."),
        _ => {
            format!(
                "A request of class {class} passes only if {} or more are left after it.",
                permits(policy, reserve)
            )
        }
    })
}

fn ordinal(n: u32) -> String {
    let end = match (n % 10, n % 100) {
        (1, last) if last != 11 => "st",
        (2, last) if last != 12 => "nd",
        (3, last) if last != 13 => "rd",
        _ => "th",
    };
    format!("{n}{end}")
}

/// The most permits in some window of one period.
fn worst(policy: &Policy) -> String {
    let most = worst_case(policy, policy.period).unwrap_or(u64::MAX);
    let most = format!("at most {}", permits(policy, most));
    match (policy.borrow, policy.kind.lends()) {
        (true, _) => format!("{most} and the largest request besides"),
        (false, true) => format!("{most}, if every request costs 1"),
        (false, false) => most,
    }
}

/// The windows of a calendar, in words.
fn windows(policy: &Policy) -> String {
    let from = policy.from;
    let zone = if policy.zone.is_utc() { "UTC" } else { "its zone" };
    match Span::ALL.into_iter().find(|span| span.nanos() == policy.period) {
        Some(Span::Week) => {
            let days =
                ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
            format!("week of {zone}, from {}", days[from as usize % 7])
        }
        Some(Span::Month) if from >= 28 => {
            format!(
                "month of {zone}, from the {} or the last day of a shorter month",
                ordinal(from + 1)
            )
        }
        Some(Span::Month) if from > 0 => format!("month of {zone}, from the {}", ordinal(from + 1)),
        Some(Span::Month) => format!("month of {zone}"),
        Some(Span::Year) if from > 0 => {
            format!("year of {zone}, from {:02}-{:02}", from / 32 + 1, from % 32 + 1)
        }
        Some(Span::Year) => format!("year of {zone}"),
        Some(Span::Day) | None => format!("day of {zone}"),
    }
}

/// The window of `now` (Unix seconds) and the three after it: local begin, offset and length.
fn coming(policy: &Policy, now: i64) -> Result<String> {
    let calendar =
        Calendar::new(policy).map_err(|error| Problem::io(format!("{policy}: {error}")))?;
    let mut out = "  The windows from now on, by local time:\n".to_owned();
    let first = calendar.window(now);
    for window in first..first + 4 {
        let (start, end) = (calendar.start(window), calendar.start(window + 1));
        let length = span((end - start).unsigned_abs() * 1_000_000_000);
        let _ = writeln!(out, "  {} {length:>16}", local_time(&policy.zone, start));
    }
    Ok(out)
}

/// The bars of the chart for each period.
const PARTS: u64 = 10;

/// What the library gives a new key that takes all it can, [`PARTS`] times a period, for two
/// periods.
fn chart(policy: &Policy) -> Result<String> {
    let state = State::new(policy).map_err(|error| Problem::io(format!("{policy}: {error}")))?;
    // Windows begin at multiples of the period.
    let begin = policy.period.saturating_mul(4);
    let parts: Vec<(u64, u64)> = (0..2 * PARTS)
        .map(|part| {
            let now = begin.saturating_add(
                (u128::from(policy.period) * u128::from(part) / u128::from(PARTS)) as u64,
            );
            (now - begin, state.take_up_to_at(now, u64::MAX))
        })
        .collect();
    let most = parts.iter().map(|&(_, taken)| taken).max().unwrap_or(0).max(1);
    let mut out =
        format!("  A new key that takes all it can, ten times per {}:\n", span(policy.period));
    for (time, taken) in parts {
        let bar = (u128::from(taken) * u128::from(WIDTH)).div_ceil(u128::from(most)) as usize;
        chart_row(&mut out, &span(time), &grouped(taken), bar);
    }
    Ok(out)
}

/// A bar chart of permits over time, from peeks at [`PARTS`] times: for a curve over one slice, for
/// a level-dependent refill until an empty bucket is full. `None` for other algorithms, whose
/// permits come evenly or all at once.
fn picture(policy: &Policy) -> Result<Option<String>> {
    let state = State::new(policy).map_err(|error| Problem::io(format!("{policy}: {error}")))?;
    let begin = policy.period.saturating_mul(4);
    let (title, length) = if policy.kind.takes(Opt::Curve) {
        (
            format!("The permits that have come in a slice of {}:", span(policy.period)),
            policy.period - 1,
        )
    } else if policy.kind.takes(Opt::Refill) {
        state.take_up_to_at(begin, u64::MAX);
        let full = state.peek_at(begin, 0).reset_after;
        (format!("An empty bucket fills in {}:", span(full)), full)
    } else {
        return Ok(None);
    };
    let mut out = format!("  {title}\n");
    for part in 0..=PARTS {
        let after = (u128::from(length) * u128::from(part)).div_ceil(u128::from(PARTS)) as u64;
        let has = state.peek_at(begin.saturating_add(after), 0).remaining;
        let bar = (u128::from(has) * u128::from(WIDTH) / u128::from(policy.burst)) as usize;
        // The curve ends with the last nanosecond of its slice.
        let time = if part == PARTS && after < policy.period && policy.kind == Kind::Curve {
            format!("before {}", span(policy.period))
        } else {
            span(after)
        };
        chart_row(&mut out, &time, &grouped(has), bar);
    }
    Ok(Some(out))
}

#[cfg(test)]
mod tests;
