package shared

import (
	"sync/atomic"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// Compiled versions of policies, as in src/table/policies/version.rs and compiled.rs. The garbage collector frees the
// replaced ones.

// version is a compiled version of a policy (Version). It never changes.
type version struct {
	stamp uint64
	// key is the version's number, shifted to its bits in a key word.
	key uint64
	// number of the policy.
	number uint32
	// salt makes this policy's hash of a key differ from other policies'.
	salt   uint64
	policy core.Policy
	terms  terms
	// algorithm for words of slots; nil for a policy that Go cannot step.
	algorithm core.Algorithm
	// wordsAreTimes: the greater of two words of at most core.TATMost expires no sooner.
	wordsAreTimes bool
}

// policies are a table's memory and the versions that this process has compiled, by their numbers.
type policies struct {
	*memory
	compiled [versionsMost]atomic.Pointer[version]
}

// salt is the function of that name.
func salt(policy uint32) uint64 {
	if policy == 0 {
		return 0
	}
	return mix(uint64(policy))
}

// version finds or compiles the version with stamp (Policies::version); nil if its record is damaged or belongs to
// another version by now.
func (p *policies) version(stamp uint64) *version {
	place := &p.compiled[versionOf(stamp)]
	if known := place.Load(); known != nil && known.stamp == stamp {
		return known
	}
	words, ok := p.records()[versionOf(stamp)].read(stamp)
	if !ok {
		return nil
	}
	policy, terms, foreign, ok := decode(&words)
	if !ok {
		return nil
	}
	v := &version{
		stamp: stamp, key: uint64(versionOf(stamp)) << tagBits, number: policyOf(stamp), salt: salt(policyOf(stamp)), policy: policy, terms: terms,
	}
	if !foreign {
		algorithm, code := core.Compile(&policy)
		if code != 0 && code != core.NeedsLibrary {
			return nil
		}
		if code == 0 {
			v.algorithm = core.InSlots(algorithm)
			v.wordsAreTimes = core.WordsAreTimes(v.algorithm)
		}
	}
	place.Store(v)
	return v
}

// current is the version that the key with hash is under: its override's, or the current one of its policy
// (Policies::current).
func (p *policies) current(policy uint32, hash uint64) (*version, core.Code) {
	stamp := p.stampFor(policy, hash)
	if stamp == 0 {
		return nil, errNoSuchPolicy
	}
	for range rounds {
		v := p.version(stamp)
		switch {
		case v != nil && v.algorithm == nil:
			return nil, core.NeedsLibrary
		case v != nil:
			return v, 0
		}
		// If this goroutine has slept through a hundred changes, the record may belong to another version.
		seen := p.stampFor(policy, hash)
		if seen == stamp {
			break
		}
		stamp = seen
	}
	return nil, errCorrupt
}

// named is the version that a key word names (Policies::named), or nil.
func (p *policies) named(key uint64) *version {
	v := p.version(p.records()[key>>tagBits].stamp.Load())
	// In damaged memory a record may hold the stamp of another version.
	if v == nil || v.key != key&^tagMask {
		return nil
	}
	return v
}

// stampFor is the stamp of the version that the key with hash is under (Policies::stamp_for). 0: there is no such
// policy.
func (p *policies) stampFor(policy uint32, hash uint64) uint64 {
	if policy >= PoliciesMost {
		// In damaged memory an override may be of such a policy.
		return 0
	}
	if p.header.special.Load()&specialOverrides != 0 {
		if stamp, ok := p.overrideOf(policy, hash); ok {
			return stamp
		}
	}
	return p.currentStamp(policy)
}

// countEvent counts what a request did to the table (Policies::count_event).
func (p *policies) countEvent(e event, retries uint64) {
	if counter := countersOfEvents[e]; counter >= 0 {
		p.count(counter, 1)
	}
	if retries != 0 {
		p.count(countRetries, retries)
	}
}

var countersOfEvents = [...]int{
	eventKnown: -1, eventInserted: countInserted, eventReclaimed: countReclaimed, eventRefused: countRefused, eventRefusedByDebt: countRefused,
	eventInherited: countInherited, eventUnremembered: countUnremembered, eventEvicted: countEvicted,
}
