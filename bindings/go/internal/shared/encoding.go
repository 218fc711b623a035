package shared

import "github.com/tollbar/tollbar/bindings/go/internal/core"

// The encoding of a policy as the words of a version's record, as in src/table/policies/encoding.rs.

// keep says what keys keep of their debts when they come to a version (Keep).
type keep uint64

const (
	keepCount keep = 0
	keepTime  keep = 1
	keepReset keep = 2
)

// terms say how debts come to a version of a policy, and from an override's version back to the policy (Terms).
type terms struct {
	keep       keep
	isOverride bool
}

// from is what keys under old keep when they come under these terms (Terms::keep_from).
func (t terms) from(old terms) keep {
	if old.isOverride && !t.isOverride {
		return old.keep
	}
	return t.keep
}

const (
	// Words of the record by their index.
	wordKind    = 3
	wordBorrow  = 5
	wordChoices = 6
	wordCounts  = 7
	wordFlags   = 12
	wordLast    = 13
	// firstWords are before those of the classes.
	firstWords = 14
	// kinds is the number of algorithms.
	kinds = 12
)

// encode is the words of a policy (encode). Go makes no versions of overrides.
func encode(p *core.Policy, k keep) (words [recordWords]uint64) {
	copy(words[:], []uint64{
		p.Limit, p.Period, p.Burst, uint64(p.Kind), p.Init, bit(p.Borrow), bit(p.AnchorFirst) | uint64(p.Mode)<<1,
		uint64(p.Segments) | uint64(p.Cold)<<32, p.Slack, p.WarmUp, p.Ban, uint64(p.BanAfter), bit(p.CountRejected), bit(p.Bytes) | uint64(k)<<1,
	})
	return words
}

func bit(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}

// decode is the policy of words (decode). foreign: the words are a policy that Go cannot step, and says no more
// about. !ok: no policy has such words.
func decode(words *[recordWords]uint64) (p core.Policy, t terms, foreign, ok bool) {
	last := words[wordLast]
	t = terms{keep(last >> 1 & 3), last>>3 != 0}
	if words[wordKind] >= kinds || last>>4 != 0 || t.keep > keepReset {
		return p, t, false, false
	}
	p = core.Policy{
		Kind: uint32(words[wordKind]), Limit: words[0], Period: words[1], Burst: words[2], Init: words[4], Borrow: words[wordBorrow] == 1,
		AnchorFirst: words[wordChoices]&1 != 0, Mode: uint32(words[wordChoices] >> 1), Segments: uint32(words[wordCounts]),
		Cold: uint32(words[wordCounts] >> 32), Slack: words[8], WarmUp: words[9], Ban: words[10], BanAfter: uint32(words[11]),
		CountRejected: words[wordFlags] == 1, Bytes: last&1 != 0,
	}
	for _, word := range words[firstWords:] {
		foreign = foreign || word != 0
	}
	// A list, knots, a calendar or classes: their words are not these fields.
	if foreign || words[wordFlags] > 1 || encode(&p, t.keep)[wordFlags] != words[wordFlags] {
		return p, t, true, true
	}
	again := encode(&p, t.keep)
	again[wordLast] |= bit(t.isOverride) << 3
	return p, t, false, again == *words
}
