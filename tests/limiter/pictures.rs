//! The pictures of docs/algorithms.md: what the library admits over time under each policy, and
//! what limits in flight, queues, meters and hierarchies do. The test draws them anew and compares.
//! `TOLLBAR_WRITE_PICTURES=1 cargo test --package tollbar --test limiter pictures` writes them into
//! the document.

use crate::common::{DAY, MIN, MS, SEC};
use tollbar::algorithm::worst_case;
use tollbar::clock::{Manual, Source};
use tollbar::hierarchy::{ClassId, Hierarchy};
use tollbar::in_flight::{Adaptive, InFlight, Ticket};
use tollbar::meter::{Color, Meter, MeterState, Rate};
use tollbar::policy::schedule::Schedule;
use tollbar::policy::Keep;
use tollbar::queue::Queue;
use tollbar::table::{self, OnFull, PolicyId, Table};
use tollbar::{in_flight, Kind, Limiter, Policy, State};

/// 2026-11-23 00:00 UTC, a Monday.
const MONDAY: u64 = 1_795_392_000 * SEC;
/// The columns of a picture.
const COLUMNS: u64 = 24;
const WRITTEN: &str =
    "written by TOLLBAR_WRITE_PICTURES=1 cargo test --package tollbar --test limiter pictures";

/// A row: what one wants to protect and how, the policy, and the time that a column has. The client
/// asks for a permit each hundredth of a column, from column 2 to column 22, and stops for the
/// columns 12 and 13.
const ROWS: [(&str, &str, u64); 20] = [
    ("a server from one client: a rate, and a burst after a rest", "100/min burst 20", MIN / 10),
    (
        "a promise: never more than 100 in any minute, and no permit lost",
        "100/min algo sliding-log",
        MIN / 10,
    ),
    ("the same in less memory", "100/min algo sliding-window mode strict", MIN / 10),
    (
        "a login from guesses: the 200th refusal shuts a client out",
        "100/min burst 20 ban 30s after 200",
        MIN / 10,
    ),
    ("a day's budget besides: two rates at once", "100/min burst 20; 200/h", MIN / 10),
    ("a customer's quota of each day", "300/day algo calendar", DAY / 8),
    ("a trial or a voucher: permits once", "300/forever", MIN / 10),
    ("a service behind you: even departures", "100/min algo pacer", MIN / 10),
    ("a service that is cold: a slow start", "100/min algo warm-up warm 60s", MIN / 10),
    (
        "urgent requests: standard ones leave them 60 permits",
        "100/min reserve standard 60",
        MIN / 10,
    ),
    ("a day's work: less in business hours", "10/h, 09:00-18:00 3/h", DAY / 24),
    (
        "large requests from waiting: they pass, and later ones pay",
        "100/min burst 20 borrow",
        MIN / 10,
    ),
    (
        "a backend that clients drain: a slower refill of an empty bucket",
        "100/min burst 60 refill 0:25% 50%:100%",
        MIN / 10,
    ),
    ("a budget of each minute, most of it early", "100/min curve ln", MIN / 10),
    ("a budget of each minute, a quarter at a time", "100/min curve step", MIN / 10),
    ("as a quota does: permits come back all together", "100/min algo interval", MIN / 10),
    ("as another system's counter does", "100/min algo fixed-window", MIN / 10),
    ("as a sliding window does", "100/min algo sliding-window", MIN / 10),
    ("as a sliding window about does, in one word", "100/min algo weighted-window", MIN / 10),
    ("what nobody may use", "0/min", MIN / 10),
];

/// Whether the client sends nothing in a column.
fn rests(column: u64) -> bool {
    !(2..22).contains(&column) || (12..14).contains(&column)
}

/// The permits admitted in each column.
fn admitted(text: &str, column: u64) -> Vec<u64> {
    let schedule: Schedule = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
    let mut in_force = schedule.at(MONDAY);
    let limiter = Limiter::with(State::new(&in_force.policy).expect(text), Manual::new(MONDAY));
    let class = (!in_force.policy.classes.is_empty()).then_some("standard");
    let mut columns = vec![0; COLUMNS as usize];
    for (place, count) in (0..).zip(&mut columns) {
        for request in 0..100 {
            let now = MONDAY + place * column + request * column / 100;
            if now >= in_force.until {
                in_force = schedule.at(now);
                limiter.set_policy_at(now, &in_force.policy, Keep::Count).expect(text);
            }
            if rests(place) {
                continue;
            }
            limiter.clock().set(now);
            let decision = match class {
                Some(class) => limiter.check_class(1, class).expect("a class"),
                None => limiter.check(1),
            };
            *count += u64::from(decision.is_allowed());
        }
    }
    columns
}

/// What 24 columns count.
type Columns = [u64; COLUMNS as usize];
const ZEROS: Columns = [0; COLUMNS as usize];

/// The rows of a picture beyond rates: the quantity that a row shows, and its columns.
type Rows = Vec<(&'static str, Columns)>;

/// Which count has the highest bar.
#[derive(Clone, Copy)]
enum Scale {
    /// The most of the row.
    OfRow,
    /// The most of all rows of the picture, because all count the same.
    OfPicture,
}

/// The open requests of eight clients, which begin one column after the other. Each client holds a
/// permit for 1 s, which is four columns, and then asks for the next one.
fn open_requests(limit: u32) -> Columns {
    let flights = InFlight::private(&in_flight::Options::new(10)).expect("a table");
    let mut held: [Option<(u64, Ticket)>; 8] = [None; 8];
    let mut open = ZEROS;
    for (place, open) in (0..).zip(&mut open) {
        for permit in &mut held {
            if let Some((_, ticket)) = permit.take_if(|(until, _)| *until == place) {
                assert!(flights.release(ticket));
            }
        }
        for (client, permit) in (0..).zip(&mut held) {
            if permit.is_none() && place >= 2 + client && !rests(place) {
                *permit = flights.acquire(b"server", limit).ok().map(|ticket| (place + 4, ticket));
            }
        }
        *open = flights.count(b"server");
    }
    open
}

fn in_flight_limit() -> Rows {
    vec![("open requests, limit 8", open_requests(8)), ("open requests, limit 4", open_requests(4))]
}

/// A phase has eight columns. In the three phases the server has all of its capacity, half of it,
/// and all of it again.
fn adaptive_limit() -> Rows {
    let column = |now: u64| (now * COLUMNS / (3 * crate::overload::PHASE)) as usize;
    let (mut limits, mut learned, mut fixed) = (ZEROS, ZEROS, ZEROS);
    crate::overload::run(
        &mut Adaptive::new(&crate::overload::gradient2(crate::overload::WINDOW)),
        |limit, now, in_time| {
            limits[column(now)] = limit.limit().into();
            learned[column(now)] += u64::from(in_time);
        },
    );
    crate::overload::run(&mut crate::overload::Static(150, 0), |_, now, in_time| {
        fixed[column(now)] += u64::from(in_time)
    });
    vec![
        ("the learned limit", limits),
        ("answers in time", learned),
        ("answers in time, limit 150", fixed),
    ]
}

/// A gateway before a backend that takes twice as long from the ninth to the sixteenth column of
/// 3 s.
fn one_decision() -> Rows {
    use crate::latency_step::example::{run, Open, SECONDS};
    let (learned, _) = run(Open::Learned);
    let (any, _) = run(Open::Any);
    let (mut limits, mut ann, mut eve, mut alone) = (ZEROS, ZEROS, ZEROS, ZEROS);
    for second in 0..SECONDS {
        let column = second * COLUMNS as usize / SECONDS;
        limits[column] = learned[second].limit.into();
        ann[column] += learned[second].in_time[0];
        eve[column] += learned[second].in_time[1];
        alone[column] += any[second].in_time.iter().sum::<u64>();
    }
    vec![
        ("the learned limit", limits),
        ("answers in time, ann", ann),
        ("answers in time, eve", eve),
        ("answers in time, rates alone", alone),
    ]
}

/// Fifteen items are offered at once in column 2. A column has 100 ms.
fn queue() -> Rows {
    let policy: Policy = "10/s algo pacer".parse().expect("a policy");
    let queue = Queue::with(&policy, 10, Manual::new(0)).expect("a queue");
    let (mut waiting, mut departed) = (ZEROS, ZEROS);
    for place in 0..COLUMNS {
        let now = place * 100 * MS;
        if place == 2 {
            let accepted = (0..15).filter(|item| queue.offer_at(now, *item).is_ok()).count();
            assert_eq!(accepted, 11);
        }
        departed[place as usize] = std::iter::from_fn(|| queue.take_at(now)).count() as u64;
        waiting[place as usize] = queue.len();
    }
    vec![("departures", departed), ("items that wait", waiting)]
}

/// A hundred packets in each column of 250 ms, with the usual rests.
fn meter() -> Rows {
    let rate = |limit, burst| Rate { limit, period: SEC, burst };
    let meter = Meter::two_rates(rate(100, 50), rate(200, 100)).expect("a meter");
    let state = MeterState::new().expect("a state");
    let mut colors = [ZEROS; 3];
    for place in (0..COLUMNS).filter(|place| !rests(*place)) {
        for packet in 0..100 {
            let now = (place * 100 + packet) * SEC / 400;
            colors[meter.color_at(&state, now, 1, Color::Green) as usize][place as usize] += 1;
        }
    }
    let [green, yellow, red] = colors;
    vec![("green packets", green), ("yellow packets", yellow), ("red packets", red)]
}

/// Three tenants share 100/s. Each asks for 100/s, and only ann rests. A column has 2 s.
fn hierarchy() -> Rows {
    let options = table::Options { on_full: OnFull::Deny, ..table::Options::new(100) };
    let table = Table::private(&options, &[Hierarchy::policy()]).expect("a table");
    let mut tree = Hierarchy::new(PolicyId::FIRST, "100/s", SEC / 2, 4).expect("a hierarchy");
    let mut add = |name: &str, guaranteed, ceiling| {
        tree.add(ClassId::ROOT, name.as_bytes(), guaranteed, ceiling, 1)
    };
    let tenants = [add("ann", "60/s", ""), add("bob", "", ""), add("eve", "", "30/s")]
        .map(|class| class.expect("a class"));
    let mut passed = [ZEROS; 3];
    for request in 0..COLUMNS * 200 * 3 {
        let (place, tenant) = (request / 600, (request % 3) as usize);
        // Ann's rest in the middle has six columns, so that the picture shows how the shares
        // settle.
        if tenant == 0 && (rests(place) || (10..16).contains(&place)) {
            continue;
        }
        let now = 100 * SEC + request * SEC / 300;
        let share = tree.take_at(&table, tenants[tenant], b"", now, 1).expect("an answer");
        passed[tenant][place as usize] += u64::from(share.decision.is_allowed());
    }
    let [ann, bob, eve] = passed;
    vec![("ann, 60/s guaranteed", ann), ("bob", bob), ("eve, at most 30/s", eve)]
}

/// A picture beyond rates: what one wants, what to take, the scale, and the function that makes the
/// rows.
type Picture = (&'static str, &'static str, Scale, fn() -> Rows);

const BEYOND: [Picture; 6] = [
    ("a limit on requests that run at one time", "`in_flight`", Scale::OfPicture, in_flight_limit),
    ("that limit to follow the server", "`Adaptive`, Gradient2", Scale::OfRow, adaptive_limit),
    (
        "a rate, open requests and that limit in one decision",
        "`take_many`",
        Scale::OfRow,
        one_decision,
    ),
    (
        "requests above the rate to wait in order",
        "a queue of 10, `10/s algo pacer`",
        Scale::OfRow,
        queue,
    ),
    ("packets above a rate marked", "`Meter::two_rates`, 100/s and 200/s", Scale::OfPicture, meter),
    ("tenants to share a rate", "a hierarchy of 100/s", Scale::OfPicture, hierarchy),
];

/// A bar for each column. A count of `highest` has the highest bar.
fn bars(columns: &[u64], highest: u64) -> String {
    let bar = |count: &u64| match count {
        0 => '.',
        _ => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(count * 8).div_ceil(highest) as usize - 1],
    };
    columns.iter().map(bar).collect()
}

fn pictures() -> String {
    let mut out = "| to protect … | write | admitted over time | at most in any minute | bytes of a key |\n|---|---|---|---|---|\n".to_owned();
    for (want, policy, column) in ROWS {
        let columns = admitted(policy, column);
        let most = columns.iter().max().expect("columns");
        let (picture, bound, bytes) = (bars(&columns, *most), bound(policy), bytes_of_key(policy));
        out += &format!("| {want} | `{policy}` | `{picture}` | {bound} | {bytes} |\n");
    }
    out
}

/// The most permits of a key in any minute. A change of the policy adds what the new one admits.
fn bound(text: &str) -> u64 {
    let schedule: Schedule = text.parse().expect(text);
    schedule.policies().map(|policy| worst_case(policy, MIN).expect(text)).sum()
}

/// The bytes by which a table grows for a key.
fn bytes_of_key(text: &str) -> u64 {
    let schedule: Schedule = text.parse().expect(text);
    let policies: Vec<Policy> = schedule.policies().copied().collect();
    let bytes = |keys: u64| {
        let mut options = table::Options::new(keys);
        if policies[0].kind == Kind::Calendar {
            options.clock = Source::Wall;
        }
        Table::bytes_for(&options, &policies).expect(text)
    };
    const KEYS: u64 = 1 << 20;
    (bytes(2 * KEYS) - bytes(KEYS)).div_ceil(KEYS)
}

fn pictures_beyond_rates() -> String {
    let mut out =
        "| I want … | take | a bar shows | over time | at most in a column |\n|---|---|---|---|---|\n".to_owned();
    for (mut want, mut take, scale, rows) in BEYOND {
        let rows = rows();
        let most_of_picture = rows.iter().flat_map(|(_, columns)| columns).max().expect("rows");
        for (shown, columns) in &rows {
            let most = columns.iter().max().expect("columns");
            let highest = match scale {
                Scale::OfRow => most,
                Scale::OfPicture => most_of_picture,
            };
            out += &format!(
                "| {want} | {take} | {shown} | `{}` | {most} |\n",
                bars(columns, *highest)
            );
            (want, take) = ("", "");
        }
    }
    out
}

#[test]
fn the_pictures_are_what_the_library_admits() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/algorithms.md");
    let mut document = std::fs::read_to_string(path).expect(path);
    let writes = std::env::var_os("TOLLBAR_WRITE_PICTURES").is_some();
    for (name, pictures) in
        [("pictures", pictures()), ("pictures beyond rates", pictures_beyond_rates())]
    {
        let (begin, end) =
            (format!("<!-- [{name}] {WRITTEN} -->\n"), format!("<!-- [{name}: end] -->\n"));
        let (before, rest) = document.split_once(&begin).expect(&begin);
        let (drawn, after) = rest.split_once(&end).expect(&end);
        if writes {
            document = format!("{before}{begin}{pictures}{end}{after}");
        } else {
            assert_eq!(drawn, pictures, "draw them anew: TOLLBAR_WRITE_PICTURES=1");
        }
    }
    if writes {
        std::fs::write(path, document).expect(path);
    }
}

/// Every algorithm has a picture.
#[test]
fn each_algorithm_has_a_picture() {
    for kind in Kind::ALL {
        let has = |text: &str| text.parse::<Policy>().is_ok_and(|policy| policy.kind == kind);
        assert!(ROWS.iter().any(|(_, text, _)| has(text)), "{}", kind.name());
    }
}
