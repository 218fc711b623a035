//! Meters against the texts of RFC 2697 and RFC 2698.

use crate::common::{rounds, Rng, SEC};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tollbar::meter::{Color, Meter, MeterState, Rate};
use tollbar::policy::PolicyError;

const COLORS: [Color; 3] = [Color::Green, Color::Yellow, Color::Red];

/// A bucket of the RFCs, in whole tokens.
#[derive(Clone, Copy)]
struct Tokens {
    count: u64,
    size: u64,
}

impl Tokens {
    fn full(size: u64) -> Tokens {
        Tokens { count: size, size }
    }

    /// "… is incremented by one": whether the token had room.
    fn add(&mut self) -> bool {
        let has_room = self.count < self.size;
        self.count += u64::from(has_room);
        has_room
    }
}

/// The instants at which a rate adds a token: the k-th at k/rate.
#[derive(Clone, Copy)]
struct Ticks {
    rate: Rate,
    next: u128,
}

impl Ticks {
    fn new(rate: Rate) -> Ticks {
        Ticks { rate, next: 1 }
    }

    /// Whether a tick is due at `now`, which then is over.
    fn due(&mut self, now: u64) -> bool {
        let due = self.next * u128::from(self.rate.period)
            <= u128::from(now) * u128::from(self.rate.limit);
        self.next += u128::from(due);
        due
    }
}

/// The meters as the RFCs describe them, token by token.
enum Rfc {
    Single { ticks: Ticks, c: Tokens, e: Tokens },
    Two { committed: Ticks, c: Tokens, peak: Ticks, p: Tokens },
}

impl Rfc {
    fn new(meter: &Meter) -> Rfc {
        match *meter {
            Meter::SingleRate(rate, excess) => Rfc::Single {
                ticks: Ticks::new(rate),
                c: Tokens::full(rate.burst),
                e: Tokens::full(excess),
            },
            Meter::TwoRates { committed, peak } => Rfc::Two {
                committed: Ticks::new(committed),
                c: Tokens::full(committed.burst),
                peak: Ticks::new(peak),
                p: Tokens::full(peak.burst),
            },
        }
    }

    fn color(&mut self, now: u64, bytes: u64, before: Color) -> Color {
        match self {
            Rfc::Single { ticks, c, e } => {
                while ticks.due(now) {
                    // "If Tc is less than CBS, Tc is incremented by one, else if Te is less than
                    // EBS, Te is incremented by one."
                    let _ = c.add() || e.add();
                }
                if before == Color::Green && c.count >= bytes {
                    c.count -= bytes;
                    Color::Green
                } else if before != Color::Red && e.count >= bytes {
                    e.count -= bytes;
                    Color::Yellow
                } else {
                    Color::Red
                }
            }
            Rfc::Two { committed, c, peak, p } => {
                while committed.due(now) {
                    c.add();
                }
                while peak.due(now) {
                    p.add();
                }
                if before == Color::Red || p.count < bytes {
                    Color::Red
                } else if before == Color::Yellow || c.count < bytes {
                    p.count -= bytes;
                    Color::Yellow
                } else {
                    p.count -= bytes;
                    c.count -= bytes;
                    Color::Green
                }
            }
        }
    }
}

fn random_rate(rng: &mut Rng) -> Rate {
    let period = [7, 1_000, 1_000_003, SEC][rng.below(4) as usize];
    Rate { limit: rng.below(period.min(500)) + 1, period, burst: rng.below(60) + 1 }
}

/// Every packet of random meters has the RFC's colour, with and without colours of an earlier
/// meter, also between two ticks.
#[test]
fn every_packet_has_the_color_of_the_rfc() {
    let mut rng = Rng(2697);
    let mut seen = [[0_u64; 3]; 2];
    for _ in 0..rounds(4_000) {
        let committed = random_rate(&mut rng);
        let single = rng.one_in(2);
        let meter = if single {
            Meter::single_rate(committed, rng.below(80)).unwrap()
        } else {
            let peak = Rate {
                limit: committed.limit + rng.below(400.min(15 * committed.period)),
                ..committed
            };
            Meter::two_rates(committed, Rate { burst: rng.below(90) + 1, ..peak }).unwrap()
        };
        let (state, mut rfc) = (MeterState::new().unwrap(), Rfc::new(&meter));
        let is_aware = rng.one_in(2);
        let mut now = rng.below(1_000);
        for _ in 0..60 {
            let before = if is_aware { COLORS[rng.below(3) as usize] } else { Color::Green };
            let bytes = if rng.one_in(10) { 0 } else { rng.below(committed.burst + 20) };
            let want = rfc.color(now, bytes, before);
            assert_eq!(
                meter.color_at(&state, now, bytes, before),
                want,
                "{meter:?}: {bytes} bytes, {before:?}, at {now}"
            );
            seen[usize::from(single)][want as usize] += 1;
            // Up to 60 tokens, at a tick, just before one or between two.
            let tokens = rng.below(60);
            let wait = tokens * committed.period / committed.limit;
            now += [wait, wait.saturating_sub(1), wait + 1, 0, rng.below(wait + 1)]
                [rng.below(5) as usize];
        }
    }
    assert!(seen.iter().flatten().all(|count| *count > 1_000), "{seen:?}");
}

/// The examples of each text: two packets of the committed burst, one of the excess burst, and a
/// red one.
#[test]
fn bursts_and_refills() {
    let committed = Rate { limit: 1_000, period: SEC, burst: 3_000 };
    let (single, state) =
        (Meter::single_rate(committed, 1_500).unwrap(), MeterState::new().unwrap());
    let at = |now, bytes| single.color_at(&state, now, bytes, Color::Green);
    assert_eq!([at(0, 3_000), at(0, 1_500), at(0, 1)], [Color::Green, Color::Yellow, Color::Red]);
    // Three seconds fill C, and only then E gets tokens.
    assert_eq!(at(3 * SEC, 0), Color::Green);
    assert_eq!(
        [at(4 * SEC, 3_000), at(4 * SEC, 1_001), at(4 * SEC, 1_000), at(4 * SEC, 1)],
        [Color::Green, Color::Red, Color::Yellow, Color::Red]
    );
    let peak = Rate { limit: 2_000, period: SEC, burst: 4_000 };
    let (two, state) = (Meter::two_rates(committed, peak).unwrap(), MeterState::new().unwrap());
    let at = |now, bytes| two.color_at(&state, now, bytes, Color::Green);
    assert_eq!([at(0, 3_000), at(0, 1_000), at(0, 1)], [Color::Green, Color::Yellow, Color::Red]);
    assert_eq!(
        [at(SEC, 1_000), at(SEC, 1_000), at(SEC, 1)],
        [Color::Green, Color::Yellow, Color::Red]
    );
}

/// Threads at one instant: together they get the bursts, to the byte.
#[test]
fn threads_share_the_bursts_exactly() {
    let committed = Rate { limit: 1_000, period: SEC, burst: 6_000 };
    let peak = Rate { limit: 2_000, period: SEC, burst: 9_000 };
    for meter in
        [Meter::single_rate(committed, 3_000).unwrap(), Meter::two_rates(committed, peak).unwrap()]
    {
        for _ in 0..rounds(20) {
            let (state, counts) = (MeterState::new().unwrap(), [const { AtomicU64::new(0) }; 3]);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..3_000 {
                            counts[meter.color_at(&state, 0, 1, Color::Green) as usize]
                                .fetch_add(1, Relaxed);
                        }
                    });
                }
            });
            assert_eq!(counts.map(AtomicU64::into_inner), [6_000, 3_000, 3_000], "{meter:?}");
        }
    }
}

#[test]
fn numbers_that_no_meter_can_have() {
    let rate = Rate { limit: 10, period: SEC, burst: 10 };
    let single = |rate, excess| Meter::single_rate(rate, excess).err();
    assert_eq!(single(Rate { burst: 0, ..rate }, 1), None);
    assert_eq!(single(rate, 0), None);
    assert_eq!(single(Rate { burst: 0, ..rate }, 0), Some(PolicyError::BurstZero));
    assert_eq!(single(Rate { period: 0, ..rate }, 0), Some(PolicyError::PeriodZero));
    assert_eq!(single(Rate { limit: 16, period: 1, ..rate }, 0), Some(PolicyError::RateTooHigh));
    assert_eq!(single(Rate { limit: 15, period: 1, ..rate }, 0), None);
    assert_eq!(single(rate, (1 << 62) + 1), Some(PolicyError::BurstTooLarge));
    assert_eq!(single(Rate { burst: (1 << 62) + 1, ..rate }, 0), Some(PolicyError::BurstTooLarge));
    let two = |committed, peak| Meter::two_rates(committed, peak).err();
    assert_eq!(two(rate, rate), None);
    assert_eq!(two(rate, Rate { limit: 9, ..rate }), Some(PolicyError::RateTooHigh));
    assert_eq!(two(rate, Rate { limit: 1, period: SEC / 10, ..rate }), None);
    assert_eq!(two(rate, Rate { burst: 0, ..rate }), Some(PolicyError::BurstZero));
    assert_eq!(two(Rate { burst: 0, ..rate }, rate), Some(PolicyError::BurstZero));
}

/// The largest numbers, late clocks and any words of a damaged state: an answer, and no overflow.
#[test]
fn the_largest_numbers_overflow_nothing() {
    let mut rng = Rng(2698);
    let largest = [0, 1, 1 << 61, (1 << 61) - 2, (1 << 62) - 1, 1 << 62, u64::MAX - 1, u64::MAX];
    let fast = Rate { limit: 15, period: 1, burst: 1 << 62 };
    for meter in [Meter::single_rate(fast, 1 << 62).unwrap(), Meter::two_rates(fast, fast).unwrap()]
    {
        for _ in 0..rounds(20_000) {
            let mut pick = || largest[rng.below(8) as usize];
            let (words, now, bytes) = ([pick(), pick()], pick(), pick());
            // SAFETY: a state is two words of 64 bits, all of whose values are states.
            let state: MeterState = unsafe { std::mem::transmute(words) };
            meter.color_at(&state, now, bytes, Color::Green);
        }
        let state = MeterState::new().unwrap();
        assert_eq!(
            meter.color_at(&state, u64::MAX, 1, Color::Green),
            Color::Red,
            "after the last time"
        );
        assert_eq!(meter.color_at(&state, 1 << 40, 1 << 62, Color::Green), Color::Green);
        assert_ne!(
            meter.color_at(&state, 0, 1, Color::Green),
            Color::Green,
            "a late clock finds an empty bucket"
        );
    }
}

/// The C face asks with each packet whether the processor has the 16-byte swap. CPUID would take a
/// virtual machine 5 us each time. The quickest round counts, because a busy machine interrupts
/// the others. (Without a virtual machine CPUID is quick, and this test shows nothing.)
#[test]
fn the_processor_is_asked_once() {
    let round = || {
        let begin = Instant::now();
        for _ in 0..1_000 {
            black_box(MeterState::supported()).unwrap();
        }
        begin.elapsed()
    };
    let quickest = (0..50).map(|_| round()).min().unwrap();
    assert!(quickest < Duration::from_millis(1), "{quickest:?} for 1,000 questions");
}
