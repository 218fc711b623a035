//! A policy written as text.

use super::knots;
use super::names::{Name, SECOND, TIMES, WEEKDAYS};
use crate::policy::{
    zone, Anchor, Kind, Mode, Opt, Policy, Span, Unit, COLD_DEFAULT, SEGMENTS_DEFAULT,
};
use crate::writer::Writer;

/// Writes the canonical text of `policy`, which leaves out defaults, and returns its length in
/// bytes. [`parse`](super::parse) reads a valid policy back as it was. The text stops at the end of
/// `out`; no valid policy needs more than [`TEXT_MOST`](super::TEXT_MOST) bytes.
pub fn print(policy: &Policy, out: &mut [u8]) -> usize {
    let most = out.len();
    let mut w = PolicyWriter(Writer::new(out));
    let forever = policy.kind.is_forever();
    if forever {
        w.number(policy.limit);
        w.text("/forever");
    } else if let (Kind::Calendar, Some(span)) = (policy.kind, policy.span()) {
        w.calendar(policy, span);
    } else {
        w.rate(policy.limit, policy.period, policy.burst);
    }
    let bands = policy.kind.takes(Opt::Refill) && !policy.knots.is_none();
    let implied =
        forever || policy.kind == Kind::Calendar || bands || policy.kind.takes(Opt::Curve);
    if policy.kind != Kind::Gcra && !implied {
        w.text(" algo ");
        w.text(policy.kind.name());
    }
    let init = if policy.borrow { 0 } else { policy.burst };
    if policy.init != init {
        w.option("init", policy.init);
    }
    if policy.borrow {
        w.text(" borrow");
    }
    if policy.anchor == Anchor::First {
        w.text(" anchor first");
    }
    if policy.kind.takes(Opt::Segments) && policy.segments != SEGMENTS_DEFAULT {
        w.option("segments", u64::from(policy.segments));
    }
    match policy.mode {
        Mode::N => {}
        Mode::Strict => w.text(" mode strict"),
        Mode::Interpolated => w.text(" mode interpolated"),
    }
    if policy.slack != 0 {
        w.option("slack", policy.slack);
    }
    if policy.kind.takes(Opt::Warm) {
        w.text(" warm ");
        w.time(policy.warm_up, false);
        if policy.cold != COLD_DEFAULT {
            w.option("cold", u64::from(policy.cold));
        }
    }
    if policy.ban != 0 {
        w.text(" ban ");
        w.time(policy.ban, false);
        if policy.ban_after != 1 {
            w.option("after", u64::from(policy.ban_after));
        }
    }
    if policy.kind.takes(Opt::Curve) {
        w.text(" curve");
        match knots::name_of(&policy.knots) {
            Some(name) => {
                w.text(" ");
                w.name(name);
            }
            None => knots::print(&mut w.0, &policy.knots, true),
        }
    }
    if bands {
        w.text(" refill");
        knots::print(&mut w.0, &policy.knots, false);
    }
    if policy.count_rejected {
        w.text(" count rejected");
    }
    if !policy.classes.is_empty() {
        w.text(" reserve");
        policy.classes.iter().for_each(|(class, reserve)| w.option(class, reserve));
    }
    let unit = if policy.unit == Unit::Bytes { " unit bytes" } else { "" };
    w.text(unit);
    if let Some(second) = policy.second {
        w.text("; ");
        w.rate(second.limit, second.period, second.burst);
        w.text(unit);
    }
    w.0.length.min(most)
}

/// [`Writer`] with the words of policies.
struct PolicyWriter<'a>(Writer<'a>);

impl PolicyWriter<'_> {
    fn text(&mut self, text: &str) {
        self.0.text(text);
    }

    fn number(&mut self, n: u64) {
        self.0.number(n);
    }

    fn rate(&mut self, limit: u64, period: u64, burst: u64) {
        self.number(limit);
        self.text("/");
        self.time(period, true);
        if burst != limit {
            self.option("burst", burst);
        }
    }

    fn name(&mut self, name: &Name) {
        name.iter().take_while(|byte| **byte != 0).for_each(|byte| self.0.byte(*byte));
    }

    /// The limit, the windows and the options of a calendar.
    fn calendar(&mut self, policy: &Policy, span: Span) {
        self.number(policy.limit);
        self.text(match span {
            Span::Day => "/day",
            Span::Week => "/week",
            Span::Month => "/month",
            Span::Year => "/year",
        });
        let (from, utc) = (policy.from, policy.zone.is_utc());
        // A month or year, a first day and a zone each say that it is a calendar.
        if matches!(span, Span::Day | Span::Week) && from == 0 && utc {
            self.text(" algo calendar");
        }
        if from != 0 {
            self.text(" from ");
            match span {
                Span::Week => WEEKDAYS
                    .iter()
                    .filter(|(_, day)| *day == from)
                    .for_each(|(name, _)| self.name(name)),
                Span::Year => {
                    self.number(u64::from(from / 32) + 1);
                    self.text("-");
                    self.number(u64::from(from % 32) + 1);
                }
                Span::Day | Span::Month => self.number(u64::from(from) + 1),
            }
        }
        if !utc {
            self.text(" zone ");
            zone::text::print(&policy.zone, &mut self.0);
        }
    }

    fn option(&mut self, name: &str, value: u64) {
        self.text(" ");
        self.text(name);
        self.text(" ");
        self.number(value);
    }

    /// Writes a time in the first unit that divides it. `bare` leaves out a number that is 1.
    fn time(&mut self, nanos: u64, bare: bool) {
        for (name, unit) in TIMES {
            if nanos.checked_rem(unit) == Some(0) && (nanos != 0 || unit == SECOND) {
                if nanos != unit || !bare {
                    self.number(nanos.checked_div(unit).unwrap_or(0));
                }
                self.name(&name);
                return;
            }
        }
    }
}
