package tollbar

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tollbar/tollbar/bindings/go/cell"
)

// Algorithm is the algorithm of a policy.
type Algorithm uint32

// [lists: algorithms] written by cargo xtask lists

// The algorithms; docs/algorithms.md compares them.
const (
	// GCRA: the generic cell rate algorithm: a token bucket, and a leaky bucket as a meter.
	GCRA Algorithm = 0
	// Interval: all permits of a period come back at its end.
	Interval Algorithm = 1
	// FixedWindow: a counter for each window.
	FixedWindow Algorithm = 2
	// WeightedWindow: the previous window's count fades while the current one's grows.
	WeightedWindow Algorithm = 3
	// SlidingWindow: a ring of sub-windows.
	SlidingWindow Algorithm = 4
	// SlidingLog: the time of every admission, exact.
	SlidingLog Algorithm = 5
	// Pacer: evenly spaced departures.
	Pacer Algorithm = 6
	// WarmUp: a rate that grows from cold to its limit.
	WarmUp Algorithm = 7
	// Quota: a lifetime quota: LIMIT/forever, which no time refills.
	Quota Algorithm = 8
	// Curve: permits come along a curve within each slice of one period.
	Curve Algorithm = 9
	// LevelRefill: a token bucket whose refill depends on how empty it is.
	LevelRefill Algorithm = 10
	// Calendar: a counter for each day, week, month or year of a time zone.
	Calendar Algorithm = 11
)

var algorithmNames = [...]string{
	"gcra",
	"interval",
	"fixed-window",
	"weighted-window",
	"sliding-window",
	"sliding-log",
	"pacer",
	"warm-up",
	"quota",
	"curve",
	"level-refill",
	"calendar",
}

// Of each algorithm that lends the bit of its number.
const lending = 1<<Pacer | 1<<WarmUp

// Of each algorithm that books ahead the bit of its number.
const bookAhead = 1<<GCRA | 1<<Interval | 1<<Pacer | 1<<WarmUp

// [lists: end]

// String is the algorithm's name in a policy's text.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return "algorithm " + strconv.Itoa(int(a))
}

// Mode says how a sliding window counts its oldest segment.
type Mode uint32

const (
	// ModeN: as many segments as the policy says, the running one among them.
	ModeN Mode = iota
	// ModeStrict: one more segment counts. Every window of a period then stays within the limit.
	ModeStrict
	// ModeInterpolated: one more segment counts, by the part of it that is still in the window.
	ModeInterpolated
)

// Policy is a policy such as "100/s burst 20". The zero value of a field means that the text does
// not have the option. [ParsePolicy] always sets the first three fields and Burst.
type Policy struct {
	Algorithm Algorithm
	// Limit is permits per Period; 0 denies all.
	Limit uint64
	// Period, from 1 ns on. [Forever] for a Quota. [Day], [Week], [Month] or [Year] for a Calendar.
	Period time.Duration
	// Burst is the most permits at once, from 1 on. Windows and logs: equal to Limit. Pacer,
	// warm-up: the largest cost.
	Burst uint64
	// Init is the permits of a fresh bucket, up to Burst, if HasInit is set. Otherwise it holds
	// Burst, or nothing with Borrow.
	Init    uint64
	HasInit bool
	// Borrow: a bucket without debt lets any cost pass, and later requests wait until that cost is
	// refilled.
	Borrow bool
	// AnchorFirst: windows are aligned to the first request of a fresh state, and not to time 0 of
	// the clock.
	AnchorFirst bool
	// CountRejected: in fixed windows and sliding logs refused requests count too.
	CountRejected bool
	// Bytes: permits are bytes. It changes the text only.
	Bytes bool
	// Slack of a pacer: departures that may leave at once after an idle time.
	Slack uint64
	// WarmUp: the time from cold to warm, with Cold.
	WarmUp time.Duration
	// Cold: the factor by which the rate is lower when cold, 1 to 1000.
	Cold uint32
	// Segments of a sliding window, 1 to 1024.
	Segments uint32
	Mode     Mode
	// Ban: a token bucket without Init and Borrow denies a key everything for this time after
	// BanAfter refusals. 0 for no ban.
	Ban time.Duration
	// BanAfter, with Ban: the refusal that bans, 1 to 1000; 0 stands for 1.
	BanAfter uint32
	// SecondLimit is permits per SecondPeriod of a second bucket, which a request needs and charges
	// as well, as in "10/s; 1000/day". 0 for no second bucket. Only for token buckets without Init,
	// Borrow and Ban.
	SecondLimit  uint64
	SecondPeriod time.Duration
	SecondBurst  uint64
	// Classes of requests, the used ones first. Only for GCRA without Borrow, Interval,
	// FixedWindow, WeightedWindow and Quota.
	Classes [ClassesMost]Class
	// Knots of a Curve, or bands of a LevelRefill.
	Knots Knots
	// From is the first day of a calendar's windows, from 0: the day of the month less 1, the day
	// of the week from Monday, or in a year 32 times the month less 1, plus the day of the month
	// less 1.
	From uint32
	// Zone of a calendar, as [ParsePolicy] reads it from a name or a rule. The zero value is UTC.
	Zone Zone
}

// Keep says what a limiter, or a key of a table, keeps of its state when its policy changes.
type Keep uint32

const (
	// KeepCount: the number of permits that it has left, up to the new burst. No wait becomes
	// longer than the new policy's refill.
	KeepCount Keep = iota
	// KeepTime: the time until the debt is paid.
	KeepTime
	// KeepReset: nothing. The key gets a fresh state.
	KeepReset
)

// ClassesMost is the most classes of a policy.
const ClassesMost = 4

// Class is a class of requests of a policy such as "100/s reserve low 20 high 0", which has low and
// high. A request of low passes only if 20 permits are left after it.
type Class struct {
	// Name is a letter, then letters, digits, - and _, 15 bytes at most. "" is no class.
	Name string
	// Reserve is the permits that a request of the class leaves, below the policy's Burst.
	Reserve uint64
}

// Knots are up to 64 pairs in hundredths of a percent. A pair of zeros ends a shorter list. For a
// Curve each is a time in the slice and a share of Limit, without the first one of 0 and 0; no pair
// is a straight line, and [CurvePolicy] makes the knots of a function. For a LevelRefill each of up
// to 4 is a level as a share of Burst and a rate as a share of the policy's, in whole percents; no
// pair is one rate at all levels.
type Knots [64]Knot

// Knot is a pair of [Knots].
type Knot [2]uint16

// Zone is a time zone, as the rule by which its offset changes. Two are equal if their rules are.
type Zone [5]uint64

// The periods of a calendar. Month and Year are the mean lengths of 400 years; the windows have the
// lengths of their months and years.
const (
	Day   = 24 * time.Hour
	Week  = 7 * Day
	Month = 2629746 * time.Second
	Year  = 12 * Month
)

// ParsePolicy reads one line:
//
//	LIMIT "/" PERIOD [ "burst" N ] [ "algo" NAME ] [ options ] [ ";" another ]
//
// such as "100/s burst 20", "3/min algo interval anchor first" or "250000000/s burst 1mb unit
// bytes". tollbar.h has the grammar. The error is a [*PolicyError] with the column.
func ParsePolicy(text string) (Policy, error) { return parsePolicy(text) }

// CurveFit says how near a curve is to the function that it was made of.
type CurveFit struct {
	// Error is the largest difference that was found, as a share of the limit: 0.001 is a permille.
	Error float64
	// Time is where it was found, as a share of the slice, and Value is the function's value there.
	Time, Value float64
}

// CurveError says why a function is no refill: at Time it gives Value.
type CurveError struct {
	Code Code
	CurveFit
	Expected string
}

func (e *CurveError) Error() string {
	return fmt.Sprintf("tollbar: at time %g of the slice the function gives %g, expected %s", e.Time, e.Value, e.Expected)
}

// Unwrap returns the code.
func (e *CurveError) Unwrap() error { return e.Code }

// CurvePolicy returns a policy whose permits come as a function says: share gets a time in the slice
// from 0 to 1 and returns the share of limit that has come by then, from 0 to 1. It does not fall,
// and ends at 1. A slice of the period admits exactly limit permits.
//
// The function is called 40,001 times and becomes a curve of up to 64 knots. The CurveFit says how
// near the curve is: at most half a permille of the limit for a smooth function of up to twelve
// convex or concave pieces, at most a permille for up to twenty, and more around a jump between two
// hundredths of a percent of the slice.
// The error of a function that breaks a rule is a [*CurveError]. Without the library the error is
// [ErrNeedsLibrary].
func CurvePolicy(limit uint64, period time.Duration, share func(time float64) float64) (Policy, CurveFit, error) {
	shares := make([]float64, curveTimes)
	for i := range shares {
		shares[i] = share(float64(i) / (curveTimes - 1))
	}
	return curvePolicy(limit, uint64(max(period, 0)), shares)
}

// curveTimes is TOLLBAR_CURVE_TIMES.
const curveTimes = 40001

// Check returns nil if a limiter can have the policy, otherwise a [*PolicyError].
func (p Policy) Check() error { return checkPolicy(&p) }

// LastTime returns the last clock reading, in nanoseconds, at which the policy admits a request:
// 2^61 - 2 (73 years) for all but the fastest policies. Calls at later times refuse every request.
// The error is a [*PolicyError].
func (p Policy) LastTime() (uint64, error) { return lastTime(&p) }

// WorstCase returns the most permits of one key that the policy admits in some half-open window of
// that length, by requests that cost 1 and come at the worst times: 239 for "120/min" and a minute,
// which are 120 at once and one each half second after that. A window below 0 is one of 0. The
// error is a [*PolicyError], or says that the program has no library.
func (p Policy) WorstCase(window time.Duration) (uint64, error) {
	return worstCase(&p, uint64(max(window, 0)))
}

// String returns the policy's canonical text. [ParsePolicy] reads it as an equal policy, and
// [NewLimiter] and [NewTable] take it. For an invalid policy it returns a text that they refuse.
func (p Policy) String() string {
	text, err := printPolicy(&p)
	if err != nil {
		return "no policy: " + strings.TrimPrefix(err.Error(), "tollbar: ")
	}
	return text
}

// MarshalText returns String, or the error of an invalid policy.
func (p Policy) MarshalText() ([]byte, error) {
	text, err := printPolicy(&p)
	if err != nil {
		return nil, err
	}
	return []byte(text), nil
}

// UnmarshalText is ParsePolicy.
func (p *Policy) UnmarshalText(text []byte) error {
	read, err := ParsePolicy(string(text))
	if err == nil {
		*p = read
	}
	return err
}

// Lends reports whether the policy lends: it may admit a request that costs more permits than are
// left, and later requests wait until that debt is paid.
func (p Policy) Lends() bool { return p.Borrow || lending>>p.Algorithm&1 != 0 }

// Cell compiles the policy for [cell.Cell], which decides without calling C. The policy must be a
// single token bucket without borrow and ban, otherwise the error is [ErrNotOneWord].
func (p Policy) Cell() (*cell.Policy, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if p.Algorithm != GCRA || p.Borrow || p.Ban != 0 || p.SecondLimit != 0 {
		return nil, refused(p.String(), ErrNotOneWord)
	}
	if p.HasInit {
		return cell.NewWithInit(p.Limit, p.Period, p.Burst, p.Init)
	}
	return cell.New(p.Limit, p.Period, p.Burst)
}
