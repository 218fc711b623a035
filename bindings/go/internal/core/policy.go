package core

import "math"

// Code is an error's number, as tollbar.h has it. 0 is no error.
type Code int32

// The errors of policies.
const (
	NoSyntax       Code = -10
	Overflow       Code = -11
	NoAlgorithm    Code = -12
	Duplicate      Code = -13
	PeriodZero     Code = -20
	BurstZero      Code = -21
	RateTooHigh    Code = -22
	BurstTooLarge  Code = -23
	InitAboveBurst Code = -24
	OptionMismatch Code = -25
	BadSegments    Code = -26
	BadWarmUp      Code = -27
	LogTooLarge    Code = -28
	BadBan         Code = -30
	BadQuota       Code = -32
	NeedsLibrary   Code = math.MinInt32
)

// Forever is a quota's period.
const Forever = math.MaxUint64

const (
	segmentsDefault = 10
	coldDefault     = 3
)

// Policy is a policy of one rate, without classes, knots and calendars: as much as this package can
// step. Fields that an algorithm does not have are 0.
type Policy struct {
	Kind                       uint32
	Limit, Period, Burst, Init uint64
	Borrow, AnchorFirst        bool
	CountRejected, Bytes       bool
	Slack, WarmUp              uint64
	Segments, Mode, Cold       uint32
	Ban                        uint64
	BanAfter                   uint32
}

// Options by the bit of their place in the grammar.
const (
	optBurst = 1 << iota
	optAlgo
	optInit
	optBorrow
	optAnchor
	optSegments
	optMode
	optSlack
	optWarm
	optCold
	optBan
	optAfter
	optCurve
	optRefill
	optCount
	optFrom
	optZone
	optUnit
	optReserve
)

// takes returns the options that an algorithm has.
func takes(kind uint32) uint32 { return taken[kind] | optAlgo | optUnit }

// sets returns the options of the policy that differ from their defaults.
func (p *Policy) sets() (set uint32) {
	for _, one := range []struct {
		differs bool
		option  uint32
	}{
		{p.Burst != p.Limit, optBurst}, {p.Init != p.Burst, optInit}, {p.Borrow, optBorrow}, {p.AnchorFirst, optAnchor},
		{p.Segments != 0, optSegments}, {p.Mode != 0, optMode}, {p.Slack != 0, optSlack}, {p.WarmUp != 0, optWarm}, {p.Cold != 0, optCold},
		{p.Ban != 0, optBan}, {p.BanAfter != 0, optAfter}, {p.CountRejected, optCount},
	} {
		if one.differs {
			set |= one.option
		}
	}
	return set
}

// validate checks that all options are in range and belong to the algorithm.
func (p *Policy) validate() Code {
	switch {
	case p.Period == 0:
		return PeriodZero
	case p.Burst == 0 && p.Limit != 0:
		return BurstZero
	case p.Init > p.Burst:
		return InitAboveBurst
	case p.sets()&^takes(p.Kind) != 0:
		return OptionMismatch
	case p.Kind == kindSlidingWindow && (p.Segments == 0 || p.Segments > 1024):
		return BadSegments
	case p.Kind == kindWarmUp && (p.WarmUp == 0 || p.Cold == 0 || p.Cold > 1000):
		return BadWarmUp
	case p.Ban != 0 && (p.Borrow || p.Init != p.Burst):
		return OptionMismatch
	case (p.Ban == 0) != (p.BanAfter == 0) || p.BanAfter > 1000:
		return BadBan
	case p.Kind == kindQuota && p.Period != Forever:
		return BadQuota
	case p.Kind == kindSlidingLog && p.Limit > 1<<24:
		return LogTooLarge
	}
	return 0
}

// Compile makes the algorithm of a policy. The error is [NeedsLibrary] for a policy that only the C
// library can step.
func Compile(p *Policy) (Algorithm, Code) {
	if p.Kind >= algorithmsCount {
		return nil, NeedsLibrary
	}
	if code := p.validate(); code != 0 {
		return nil, code
	}
	switch p.Kind {
	case kindGCRA, kindInterval, kindFixedWindow, kindWeightedWindow, kindPacer, kindQuota:
	default:
		return nil, NeedsLibrary
	}
	if p.Limit == 0 {
		return Closed{}, 0
	}
	switch {
	case p.Kind == kindPacer || p.Borrow:
		return compiled(NewPacer(p))
	case p.Ban != 0:
		return compiled(NewBan(p))
	case p.Kind == kindInterval && p.AnchorFirst && p.Burst > p.Limit:
		return nil, BurstTooLarge
	case p.Kind == kindInterval && p.AnchorFirst:
		return compiled(NewFixedWindow(p, p.Burst))
	case p.Kind == kindInterval:
		return compiled(NewInterval(p))
	case p.Kind == kindFixedWindow:
		return compiled(NewFixedWindow(p, p.Limit))
	case p.Kind == kindWeightedWindow:
		return compiled(NewWeightedWindow(p))
	case p.Kind == kindQuota:
		return compiled(NewQuota(p))
	case p.Kind == kindGCRA:
		return compiled(NewBucket(p))
	}
	return nil, NeedsLibrary
}

func compiled[A Algorithm](a A, code Code) (Algorithm, Code) {
	if code != 0 {
		return nil, code
	}
	return a, 0
}
