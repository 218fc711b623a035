package core

// [lists: algorithms] written by cargo xtask lists

// The algorithms, with their numbers in tollbar.h.
const (
	kindGCRA           = 0
	kindInterval       = 1
	kindFixedWindow    = 2
	kindWeightedWindow = 3
	kindSlidingWindow  = 4
	kindSlidingLog     = 5
	kindPacer          = 6
	kindWarmUp         = 7
	kindQuota          = 8
	kindCurve          = 9
	kindLevelRefill    = 10
	kindCalendar       = 11
	algorithmsCount    = 12
)

// The algorithms' names, each with its other names after it.
var algorithms = []named{
	{"gcra", kindGCRA},
	{"token-bucket", kindGCRA},
	{"leaky-bucket", kindGCRA},
	{"interval", kindInterval},
	{"fixed-window", kindFixedWindow},
	{"weighted-window", kindWeightedWindow},
	{"sliding-window", kindSlidingWindow},
	{"sliding-log", kindSlidingLog},
	{"pacer", kindPacer},
	{"warm-up", kindWarmUp},
	{"quota", kindQuota},
	{"curve", kindCurve},
	{"level-refill", kindLevelRefill},
	{"calendar", kindCalendar},
}

// taken has the options of each algorithm, without algo and unit, which all of them have.
var taken = [algorithmsCount]uint32{
	kindGCRA:           optBurst | optInit | optBorrow | optBan | optAfter | optReserve,
	kindInterval:       optBurst | optAnchor | optReserve,
	kindFixedWindow:    optAnchor | optCount | optReserve,
	kindWeightedWindow: optReserve,
	kindSlidingWindow:  optAnchor | optSegments | optMode,
	kindSlidingLog:     optCount,
	kindPacer:          optBurst | optSlack,
	kindWarmUp:         optBurst | optWarm | optCold,
	kindQuota:          optReserve,
	kindCurve:          optCurve,
	kindLevelRefill:    optBurst | optRefill,
	kindCalendar:       optFrom | optZone,
}

// [lists: end]
