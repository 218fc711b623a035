package core

import "math/bits"

// SyntaxError says where a text is wrong.
type SyntaxError struct {
	Code Code
	// Column at which the wrong part of the text begins, from 1.
	Column int
	// Expected says what the reader expected at the column. It is empty if the text follows the
	// grammar, but the policy is invalid.
	Expected string
}

// The options' names, in the order of their bits.
var options = []string{
	"burst", "algo", "init", "borrow", "anchor", "segments", "mode", "slack", "warm", "cold", "ban", "after", "curve", "refill", "count", "from",
	"zone", "unit", "reserve",
}

// library has the options that only the C library reads.
const library = optCurve | optRefill | optFrom | optZone | optReserve

type named struct {
	name  string
	value uint64
}

const (
	second = 1_000_000_000
	day    = 24 * 60 * 60 * second
)

// The units of time, in the order in which a text is printed: the first one that divides the time.
// Other names come after all.
var times = []named{
	{"day", day}, {"h", 3600 * second}, {"min", 60 * second}, {"s", second}, {"ms", 1_000_000}, {"us", 1_000}, {"ns", 1},
	{"d", day}, {"sec", second}, {"secs", second}, {"second", second}, {"seconds", second}, {"mins", 60 * second}, {"minute", 60 * second},
	{"minutes", 60 * second}, {"hr", 3600 * second}, {"hrs", 3600 * second}, {"hour", 3600 * second}, {"hours", 3600 * second}, {"days", day},
	{"w", 7 * day}, {"week", 7 * day}, {"weeks", 7 * day},
}

var sizes = []named{
	{"kb", 1_000}, {"mb", 1_000_000}, {"gb", 1_000_000_000}, {"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30},
}

var (
	anyOption    = listed(options)
	anyAlgorithm = func() string {
		names := make([]string, len(algorithms))
		for i, one := range algorithms {
			names[i] = one.name
		}
		return listed(names)
	}()
)

// listed is "`a`, `b` or `c`".
func listed(names []string) (text string) {
	for i, name := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			text += " or "
		default:
			text += ", "
		}
		text += "`" + name + "`"
	}
	return text
}

const (
	aPeriod = "a period such as `s`, `min`, `h`, `day`, `100ms`, `2 weeks`, `month` or `forever`"
	oneSpan = "1, because a calendar counts single months and years; a time such as `90days` may have any number"
	aSpan   = "a time such as `2s`, `100ms` or `1min`"
	aNumber = "a whole number"
)

// Parse reads a policy and compiles it. The code is [NeedsLibrary] for a text with a part that only
// the C library can read or step.
func Parse(text string) (Policy, Algorithm, *SyntaxError) {
	r := reader{text: []byte(text)}
	p, columns, wrong := r.policy()
	if wrong != nil {
		return p, nil, wrong
	}
	a, code := Compile(&p)
	switch {
	case code == NeedsLibrary:
		return p, nil, needsLibrary
	case code != 0:
		return p, nil, &SyntaxError{Code: code, Column: columns.blame(&p, code)}
	case r.peek() == ';':
		// A list of two policies.
		return p, nil, needsLibrary
	case r.at < len(r.text):
		return p, nil, r.wrong(anyOption)
	}
	return p, a, nil
}

var needsLibrary = &SyntaxError{Code: NeedsLibrary}

// columns has the column at which the text names each option, and at which it first gives a number
// with a size. 0: not given.
type columns struct {
	options [19]int
	size    int
	period  int
	// The period is `forever`.
	forever bool
	// The column at which the policy begins.
	start int
}

func (c *columns) of(option uint32) int { return c.options[bits.TrailingZeros32(option)] }

// stranger is the column of the first option that belongs to another algorithm. 0 if there is none.
func (c *columns) stranger(kind uint32) (first int) {
	for i, column := range c.options {
		if column != 0 && takes(kind)>>i&1 == 0 && (first == 0 || column < first) {
			first = column
		}
	}
	return first
}

// blame is the column of the fault in a policy that can be read but is refused.
func (c *columns) blame(p *Policy, code Code) int {
	column := 0
	switch code {
	case PeriodZero, BadQuota:
		column = c.period
	case BurstZero, BurstTooLarge:
		column = c.of(optBurst)
	case InitAboveBurst:
		column = c.of(optInit)
	case BadSegments:
		column = c.of(optSegments)
	case BadWarmUp:
		column = max(c.of(optWarm), c.of(optAlgo))
		if c.of(optCold) != 0 && p.WarmUp != 0 {
			column = c.of(optCold)
		}
	case BadBan:
		column = max(c.of(optBan), c.of(optAfter))
		if p.Ban != 0 && c.of(optAfter) != 0 {
			column = c.of(optAfter)
		}
	case OptionMismatch:
		if column = c.stranger(p.Kind); column == 0 {
			column = c.of(optBan)
		}
	}
	return max(column, c.start)
}

type reader struct {
	text []byte
	at   int
}

// policy reads one policy, up to a semicolon or the end, and makes the checks that do not need the
// compiled policy.
func (r *reader) policy() (p Policy, seen columns, wrong *SyntaxError) {
	r.blanks()
	seen.start = r.at + 1
	if p.Limit, wrong = r.amount("a limit: a whole number", &seen); wrong != nil {
		return p, seen, wrong
	}
	r.blanks()
	if start := r.at; r.peek() == '/' {
		r.at++
	} else if string(r.word()) != "per" {
		r.at = start
		return p, seen, r.wrong("`/` and a period")
	}
	r.blanks()
	seen.period = r.at + 1
	if p.Period, seen.forever, wrong = r.period(); wrong != nil {
		return p, seen, wrong
	}
	p.Burst = p.Limit
	given := map[uint32]uint64{}
	for {
		r.blanks()
		column := r.at + 1
		word := r.word()
		if len(word) == 0 {
			break
		}
		option := uint32(0)
		for i, name := range options {
			if name == string(word) {
				option = 1 << i
			}
		}
		if option == 0 {
			r.at = column - 1
			return p, seen, r.wrong(anyOption)
		}
		place := &seen.options[bits.TrailingZeros32(option)]
		if *place != 0 {
			return p, seen, &SyntaxError{Duplicate, column, "each option once"}
		}
		*place = column
		r.blanks()
		if option&library != 0 {
			return p, seen, needsLibrary
		}
		if given[option], wrong = r.value(option, &seen); wrong != nil {
			return p, seen, wrong
		}
	}
	return p, seen, p.set(given, &seen)
}

// value reads the value of an option, as a number.
func (r *reader) value(option uint32, seen *columns) (uint64, *SyntaxError) {
	switch option {
	case optBurst:
		return r.amount("a burst: a whole number", seen)
	case optAlgo:
		column := r.at + 1
		if kind, ok := find(algorithms, r.word()); ok {
			return kind, nil
		}
		return 0, &SyntaxError{NoAlgorithm, column, anyAlgorithm}
	case optInit, optSlack:
		return r.amount(aNumber, seen)
	case optAnchor:
		return r.choice("`first` or `epoch`", named{"first", 1}, named{"epoch", 0})
	case optSegments:
		return r.small("a number of segments")
	case optMode:
		return r.choice("`n`, `strict` or `interpolated`", named{"n", 0}, named{"strict", 1}, named{"interpolated", 2})
	case optWarm, optBan:
		return r.time(aSpan, false)
	case optCold:
		return r.small("a cold factor")
	case optAfter:
		return r.small("a number of refusals")
	case optCount:
		return r.choice("`rejected`", named{"rejected", 1})
	case optUnit:
		return r.choice("`bytes` or `permits`", named{"bytes", 1}, named{"permits", 0})
	}
	// borrow has no value.
	return 1, nil
}

// set gives the policy the options that the text has, and the defaults of the others.
func (p *Policy) set(given map[uint32]uint64, seen *columns) *SyntaxError {
	or := func(option uint32, implied uint64) uint64 {
		if value, ok := given[option]; ok {
			return value
		}
		return implied
	}
	p.Kind = uint32(or(optAlgo, kindGCRA))
	if seen.of(optAlgo) == 0 && seen.forever {
		p.Kind = kindQuota
	}
	p.Burst = or(optBurst, p.Limit)
	p.Borrow, p.AnchorFirst = given[optBorrow] != 0, given[optAnchor] != 0
	p.CountRejected, p.Bytes = given[optCount] != 0, given[optUnit] != 0
	p.Slack, p.WarmUp, p.Ban, p.Mode = given[optSlack], given[optWarm], given[optBan], uint32(given[optMode])
	p.Init = or(optInit, p.Burst)
	if p.Borrow {
		p.Init = or(optInit, 0)
	}
	p.Segments, p.Cold, p.BanAfter = uint32(given[optSegments]), uint32(given[optCold]), uint32(given[optAfter])
	if p.Kind == kindSlidingWindow {
		p.Segments = uint32(or(optSegments, segmentsDefault))
	}
	if p.Kind == kindWarmUp {
		p.Cold = uint32(or(optCold, coldDefault))
	}
	if seen.of(optBan) != 0 {
		p.BanAfter = uint32(or(optAfter, 1))
	}
	if seen.size != 0 && !p.Bytes {
		return &SyntaxError{NoSyntax, seen.size, "a plain number, or `unit bytes` too"}
	}
	if seen.forever && p.Kind != kindQuota {
		return &SyntaxError{Code: BadQuota, Column: seen.blame(p, BadQuota)}
	}
	// An option of another algorithm is refused even with that algorithm's default. A burst that
	// equals the limit is accepted.
	if stranger := seen.stranger(p.Kind); stranger != 0 && (stranger != seen.of(optBurst) || p.Burst != p.Limit) {
		return &SyntaxError{Code: OptionMismatch, Column: seen.blame(p, OptionMismatch)}
	}
	return nil
}

// peek is the next byte, or 0 at the end.
func (r *reader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *reader) blanks() {
	for r.peek() == ' ' || r.peek() == '\t' {
		r.at++
	}
}

func (r *reader) wrong(expected string) *SyntaxError {
	return &SyntaxError{NoSyntax, r.at + 1, expected}
}

// word reads letters, `-` and `_`.
func (r *reader) word() []byte {
	start := r.at
	for c := r.peek(); 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_'; c = r.peek() {
		r.at++
	}
	return r.text[start:r.at]
}

func (r *reader) digits(expected string) (uint64, *SyntaxError) {
	start, number, fits := r.at, uint64(0), true
	for c := r.peek(); '0' <= c && c <= '9'; c = r.peek() {
		high, low := bits.Mul64(number, 10)
		sum, carry := bits.Add64(low, uint64(c-'0'), 0)
		number, fits = sum, fits && high == 0 && carry == 0
		r.at++
	}
	if r.at == start {
		return 0, r.wrong(expected)
	}
	return product(number, 1, fits, start, expected)
}

// product is number · by, or the error of a number that does not fit.
func product(number, by uint64, fits bool, start int, expected string) (uint64, *SyntaxError) {
	high, low := bits.Mul64(number, by)
	if high != 0 || !fits {
		return 0, &SyntaxError{Overflow, start + 1, expected}
	}
	return low, nil
}

// amount reads a number that may carry a size.
func (r *reader) amount(expected string, seen *columns) (uint64, *SyntaxError) {
	start := r.at
	number, wrong := r.digits(expected)
	suffix := r.at
	word := r.word()
	if wrong != nil || len(word) == 0 {
		return number, wrong
	}
	size, ok := find(sizes, word)
	if !ok {
		r.at = suffix
		return 0, r.wrong(expected)
	}
	if seen.size == 0 {
		seen.size = suffix + 1
	}
	return product(number, size, true, start, expected)
}

func (r *reader) small(expected string) (uint64, *SyntaxError) {
	column := r.at + 1
	number, wrong := r.digits(expected)
	if wrong == nil && number > 1<<32-1 {
		wrong = &SyntaxError{Overflow, column, expected}
	}
	return number, wrong
}

// time reads a time; bare allows a unit alone.
func (r *reader) time(expected string, bare bool) (uint64, *SyntaxError) {
	start, number := r.at, uint64(1)
	var wrong *SyntaxError
	if c := r.peek(); '0' <= c && c <= '9' {
		number, wrong = r.digits(expected)
	} else if !bare {
		wrong = r.wrong(expected)
	}
	if wrong != nil {
		return 0, wrong
	}
	column := r.at
	r.blanks()
	if r.at < len(r.text) {
		column = r.at
	}
	unit, ok := find(times, r.word())
	if !ok {
		r.at = column
		return 0, r.wrong(expected)
	}
	return product(number, unit, true, start, expected)
}

func (r *reader) period() (period uint64, forever bool, wrong *SyntaxError) {
	start, number := r.at, uint64(1)
	if c := r.peek(); '0' <= c && c <= '9' {
		if number, wrong = r.digits(aPeriod); wrong != nil {
			return 0, false, wrong
		}
	}
	bare := r.at == start
	r.blanks()
	switch string(r.word()) {
	case "forever":
		if bare {
			return Forever, true, nil
		}
	case "month", "months", "year", "years":
		if number != 1 {
			r.at = start
			return 0, false, r.wrong(oneSpan)
		}
		return 0, false, needsLibrary
	}
	r.at = start
	period, wrong = r.time(aPeriod, true)
	return period, false, wrong
}

func (r *reader) choice(expected string, from ...named) (uint64, *SyntaxError) {
	column := r.at
	if value, ok := find(from, r.word()); ok {
		return value, nil
	}
	r.at = column
	return 0, r.wrong(expected)
}

func find(in []named, word []byte) (uint64, bool) {
	for _, one := range in {
		if one.name == string(word) {
			return one.value, true
		}
	}
	return 0, false
}
