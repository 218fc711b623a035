package core

import "strconv"

// String is the canonical text of a valid policy, which leaves out defaults. [Parse] reads it as an
// equal policy.
func (p *Policy) String() string {
	text := strconv.FormatUint(p.Limit, 10) + "/"
	if p.Kind == kindQuota {
		text += "forever"
	} else {
		text += period(p.Period, true)
		if p.Burst != p.Limit {
			text += option("burst", p.Burst)
		}
	}
	if p.Kind != kindGCRA && p.Kind != kindQuota {
		for _, one := range algorithms {
			if one.value == uint64(p.Kind) {
				text += " algo " + one.name
				break
			}
		}
	}
	init := p.Burst
	if p.Borrow {
		init = 0
	}
	if p.Init != init {
		text += option("init", p.Init)
	}
	if p.Borrow {
		text += " borrow"
	}
	if p.AnchorFirst {
		text += " anchor first"
	}
	if p.Slack != 0 {
		text += option("slack", p.Slack)
	}
	if p.Ban != 0 {
		text += " ban " + period(p.Ban, false)
		if p.BanAfter != 1 {
			text += option("after", uint64(p.BanAfter))
		}
	}
	if p.CountRejected {
		text += " count rejected"
	}
	if p.Bytes {
		text += " unit bytes"
	}
	return text
}

func option(name string, value uint64) string {
	return " " + name + " " + strconv.FormatUint(value, 10)
}

// period is a time in the first unit that divides it. bare leaves out a number that is 1.
func period(nanos uint64, bare bool) string {
	for _, unit := range times {
		if nanos%unit.value != 0 || nanos == 0 && unit.value != second {
			continue
		}
		if nanos == unit.value && bare {
			return unit.name
		}
		return strconv.FormatUint(nanos/unit.value, 10) + unit.name
	}
	return ""
}
