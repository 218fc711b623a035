//! The cost that an answer tells: the request has taken an estimate, and now pays the rest or gets
//! back what it has not used.

use crate::charge::Time;
use crate::cost::number;
use crate::engine::Rules;
use crate::request::{Field, Said, Seen};
use crate::set::{Part, Set};
use crate::taken::Taken;
use tollbar::algorithm::Charge;
use tollbar::table::RequestError;

impl Rules {
    /// Charges what the answer to a request has cost, under rules with `cost = "answer NAME"`. The
    /// caller gives what the decision on the admitted request has taken
    /// ([`Answer::taken`](crate::Answer::taken)), and the request's fields again, with the words
    /// of the answer (`:NAME`) among them. A cost above the estimate makes a debt, which later
    /// requests wait for. Of a cost below it the rest goes back to the key, without what the key
    /// has regained since ([`Table::give_back`](tollbar::table::Table::give_back) lists the
    /// algorithms that give back).
    ///
    /// Returns whether the words had a whole number for each such cost. The estimate stays where
    /// one is missing. Call this once for each admission: a second call would give back twice.
    /// After a reload that changes which requests a rule is for, or their key or cost, the
    /// estimates of before stay under that rule.
    ///
    /// ```
    /// use tollbar_rules::{Field, Format, Options, Rules};
    ///
    /// let rules = Rules::from_text("
    /// version = 1
    /// [group.tokens]
    /// key = 'header Authorization'
    /// limit = '90000/h'
    /// cost = 'answer tokens'
    /// estimate = 500
    /// ", Format::Toml, &Options::default())?;
    /// let mut request = vec![Field::from((":path", "/v1/chat")), Field::from(("Authorization", "ann"))];
    /// let answer = rules.check(&request)?;
    /// assert_eq!((answer.is_allowed(), answer.decision().remaining), (true, 89_500));
    /// // … the answer took 1,700 tokens
    /// request.push(Field::from((":tokens", "1700")));
    /// assert!(rules.settle(&answer.taken(), &request)?);
    /// assert!(rules.check(&request)?.decision().remaining < 88_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RequestError`]: a table is damaged.
    pub fn settle(&self, taken: &Taken, request: &[Field<'_>]) -> Result<bool, RequestError> {
        self.settle_when(Time::of_tables(taken.at), taken, request, None)
    }

    /// [`Rules::settle`] at the caller's time, on the scale of [`Rules::now`].
    ///
    /// # Errors
    /// As [`Rules::settle`].
    pub fn settle_at(
        &self,
        taken: &Taken,
        request: &[Field<'_>],
        now: u64,
    ) -> Result<bool, RequestError> {
        self.settle_when(Time::of_tables(taken.at), taken, request, Some(Time::of_tables(now)))
    }

    /// [`Rules::settle`] after [`Rules::check_at_unix`], at the caller's Unix time.
    ///
    /// # Errors
    /// As [`Rules::settle`].
    pub fn settle_at_unix(
        &self,
        taken: &Taken,
        request: &[Field<'_>],
        unix: u64,
    ) -> Result<bool, RequestError> {
        self.settle_when(Time::of_unix(taken.at), taken, request, Some(Time::of_unix(unix)))
    }

    fn settle_when(
        &self,
        at: Time,
        taken: &Taken,
        request: &[Field<'_>],
        now: Option<Time>,
    ) -> Result<bool, RequestError> {
        let set = self.set();
        if !set.has_answers {
            return Ok(true);
        }
        let seen = set.see(request);
        let matching = set.matching(&seen, at.unix());
        let mut all = true;
        for &rule in matching.rules() {
            for &n in std::iter::once(&rule).chain(set.shadows_of(rule)) {
                if set.since[n] <= taken.generation && taken.has_charged(&set, n) {
                    all &= self.settle_rule(&set, n, matching.route, &seen, (at, now))?;
                }
            }
        }
        Ok(all)
    }

    fn settle_rule(
        &self,
        set: &Set,
        rule: usize,
        route: Option<usize>,
        seen: &Seen<'_>,
        (at, now): (Time, Option<Time>),
    ) -> Result<bool, RequestError> {
        let Some(word) = &set.cost(rule, route).answer else { return Ok(true) };
        let mut key = Vec::new();
        let Part::Limited(_, estimate) = set.part(rule, route, seen, &mut key) else {
            return Ok(true);
        };
        let said = match seen.field(word) {
            Said::One(value) => number(value),
            Said::Nothing | Said::Several => None,
        };
        let Some(cost) = said else { return Ok(false) };
        for (home, limit) in set.homes[rule].iter().zip(&set.rules()[rule].limits) {
            if limit.when.as_ref().is_some_and(|times| !times.hold(at.unix())) {
                continue;
            }
            let (table, id) = home.table(self.table());
            let now = now.map(|now| now.of(home));
            if cost > estimate {
                table.try_charge(id, &key, now, cost - estimate)?;
            } else {
                let charge = Charge { at: at.of(home), cost: estimate };
                let now = now.unwrap_or_else(|| table.now());
                table.give_back_at(id, &key, now, charge, estimate - cost)?;
            }
        }
        Ok(true)
    }
}
