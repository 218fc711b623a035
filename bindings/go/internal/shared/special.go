package shared

// Keys that a request must look up before its policy is known, as in src/table/memory/special.rs, slots/overrides.rs
// and policies/exempt.rs. Go looks them up; other processes make them.
//
//	changes of overrides 32 : overrides 20 : refusals recorded 1 : exempt keys 11

const (
	specialExempt    = 1<<11 - 1
	specialOverrides = 1<<32 - 1<<12
)

// overrideOf is the stamp of the key's override (Policies::override_of). A lookup that has found nothing repeats if a
// change was counted meanwhile (Places::lookup).
func (p *policies) overrideOf(policy uint32, hash uint64) (uint64, bool) {
	places := p.overrides()
	groups := uint64(len(places) / groupPlaces)
	if groups < 2 {
		return 0, false
	}
	// A tag of 0 would be an empty place, so it becomes 1 (known_hash).
	if tag(hash) == 0 {
		hash |= hashOfTag(1)
	}
	first := tag(hash) % groups
	second := (first + 1 + tag(hash)>>28%(groups-1)) % groups
	for range rounds {
		before := p.header.special.Load()
		for _, group := range [2]uint64{first, second} {
			for i := range groupPlaces {
				place := &places[group*groupPlaces+uint64(i)]
				if tag(place.Key()^hash) != 0 {
					continue
				}
				if pair := place.Pair(); tag(pair.Key^hash) == 0 {
					// In damaged memory the stamp may belong to another policy.
					return pair.State, policyOf(pair.State) == policy
				}
			}
		}
		if p.header.special.Load() == before {
			break
		}
	}
	return 0, false
}

// isExempt reports whether the key with this hash is exempt (Policies::is_exempt).
func (p *policies) isExempt(hash uint64) bool {
	if p.header.special.Load()&specialExempt == 0 {
		return false
	}
	const groups = exemptMost / groupPlaces
	// The hash that means an empty place becomes 1.
	hash = max(hash, 1)
	first := hash % groups
	second := (first + 1 + hash>>32%(groups-1)) % groups
	set := p.exempt()
	for _, group := range [2]uint64{first, second} {
		for i := range groupPlaces {
			if set[group*groupPlaces+uint64(i)].Load() == hash {
				return true
			}
		}
	}
	return false
}
