//go:build tollbar_purego

package tollbar

import (
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/library"
)

// The calls of call_purego.go whose arguments Go puts together. With cgo, C does that in functions
// of bridge.h.

// cNothing is a call that does next to nothing in C.
func cNothing(uintptr) int32 { return library.Call0(tollbar_version) }

func cLimiterNew(spec *tollbar_policy_spec, clock, credit uint32, out *uintptr) int32 {
	options := &tollbar_limiter_options{clock: clock, credit: credit}
	options.struct_size = uint32(unsafe.Sizeof(*options))
	return library.Call3(tollbar_limiter_new, uintptr(unsafe.Pointer(spec)), uintptr(unsafe.Pointer(options)),
		uintptr(unsafe.Pointer(out)))
}

func cLimiterTakeNow(limiter uintptr, cost uint64) int32 {
	peeked := newDecision()
	if code := cLimiterPeek(limiter, cost, &peeked); code != tollbar_allowed {
		return code
	}
	return cLimiterAllow(limiter, cost)
}

func cLimiterMany(limiter uintptr, at bool, now uint64, costs []uint64, verdicts []Verdict) int32 {
	first := unsafe.Pointer(unsafe.SliceData(costs))
	results := unsafe.Pointer(unsafe.SliceData(verdicts))
	if at {
		return library.Call5(tollbar_limiter_check_many_at, limiter, uintptr(first), uintptr(len(verdicts)),
			uintptr(now), uintptr(results))
	}
	return library.Call4(tollbar_limiter_check_many, limiter, uintptr(first), uintptr(len(verdicts)), uintptr(results))
}

func cLimiterCheckClass(limiter uintptr, at bool, now, cost uint64, class *className, out *tollbar_decision) int32 {
	if at {
		return library.Call5(tollbar_limiter_check_class_at, limiter, uintptr(cost), uintptr(unsafe.Pointer(class)),
			uintptr(now), uintptr(unsafe.Pointer(out)))
	}
	return library.Call4(tollbar_limiter_check_class, limiter, uintptr(cost), uintptr(unsafe.Pointer(class)),
		uintptr(unsafe.Pointer(out)))
}

func cTableOpen(path string, options *tollbar_table_options, specs []tollbar_policy_spec,
	out *uintptr) (int32, syscall.Errno) {
	// tollbar.h takes an array of addresses.
	addresses := make([]uintptr, max(len(specs), 1))
	for i := range specs {
		addresses[i] = library.Address(uintptr(unsafe.Pointer(&specs[i])))
	}
	defer runtime.KeepAlive(specs)
	policies := unsafe.Pointer(unsafe.SliceData(addresses))
	if path == "" {
		return library.WithErrno(func() int32 {
			return library.Call4(tollbar_table_new, uintptr(policies), uintptr(len(specs)),
				uintptr(unsafe.Pointer(options)), uintptr(unsafe.Pointer(out)))
		})
	}
	if len(specs) == 0 {
		policies = nil
	}
	return library.WithErrno(func() int32 {
		return library.Call5(tollbar_table_open, uintptr(library.Terminated(path)), uintptr(policies),
			uintptr(len(specs)), uintptr(unsafe.Pointer(options)), uintptr(unsafe.Pointer(out)))
	})
}

func cTableTakeNow(table uintptr, policy uint32, key string, cost uint64) int32 {
	peeked := newDecision()
	if code := cTablePeek(table, policy, key, cost, &peeked); code != tollbar_allowed {
		return code
	}
	return cTableCheck(table, policy, key, cost, nil)
}

func cTableCheckClass(table uintptr, policy uint32, key string, at bool, now, cost uint64, class *className,
	out *tollbar_decision) int32 {
	if at {
		return library.Call8(tollbar_table_check_class_at, table, uintptr(policy), uintptr(library.Text(key)),
			uintptr(len(key)),
			uintptr(cost), uintptr(unsafe.Pointer(class)), uintptr(now), uintptr(unsafe.Pointer(out)))
	}
	return library.Call7(tollbar_table_check_class, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(cost), uintptr(unsafe.Pointer(class)), uintptr(unsafe.Pointer(out)))
}

// chunk is the number of requests of a batch in one call.
const chunk = 128

// chunks has the requests of batches, whose addresses are in C while a call runs.
var chunks = sync.Pool{New: func() any { return new([chunk]tollbar_request) }}

func cTableMany(table uintptr, at bool, now uint64, keys []byte, items []batchItem, verdicts []Verdict) int32 {
	if !at {
		if code := cTableNow(table, &now); code != 0 {
			return code
		}
	}
	requests := chunks.Get().(*[chunk]tollbar_request)
	defer chunks.Put(requests)
	base, begin := library.Address(uintptr(library.First(keys))), uint64(0)
	defer runtime.KeepAlive(keys)
	for done := 0; done < len(items); done += chunk {
		n := min(len(items)-done, chunk)
		for i, item := range items[done : done+n] {
			requests[i] = tollbar_request{key: base + uintptr(begin), length: uintptr(item.end - begin),
				cost: item.cost, policy: item.policy, class_number: item.class}
			begin = item.end
		}
		if code := library.Call5(tollbar_table_check_many_at, table, uintptr(unsafe.Pointer(requests)), uintptr(n),
			uintptr(now), uintptr(unsafe.Pointer(&verdicts[done]))); code != 0 {
			return code
		}
	}
	return 0
}

func cTableManyInC(table uintptr, keys []byte, items []batchItem, verdicts []Verdict, rounds int) int32 {
	code := int32(0)
	for ; rounds > 0 && code == 0; rounds-- {
		code = cTableMany(table, false, 0, keys, items, verdicts)
	}
	return code
}

func cTakeMany(keys []byte, items []limitItem, at bool, now uint64, each *tollbar_decision, out *tollbar_taken) int32 {
	if len(items) > LimitsMost {
		return int32(ErrLimits)
	}
	limits, base, begin := new([LimitsMost]tollbar_limit), library.Address(uintptr(library.First(keys))), uint64(0)
	defer runtime.KeepAlive(keys)
	defer runtime.KeepAlive(items)
	for i := range items {
		item := &items[i]
		limits[i] = tollbar_limit{limiter: item.limiter, table: item.table, key: base + uintptr(begin),
			length: uintptr(item.end - begin), cost: item.cost, policy: item.policy, most: item.most,
			in_flight: item.inFlight}
		if item.inFlight != 0 {
			limits[i].ticket = library.Address(uintptr(unsafe.Pointer(&item.ticket)))
		}
		if item.class[0] != 0 {
			limits[i].class_name = library.Address(uintptr(unsafe.Pointer(&item.class)))
		}
		begin = item.end
	}
	if at {
		return library.Call5(tollbar_take_many_at, uintptr(unsafe.Pointer(limits)), uintptr(len(items)), uintptr(now),
			uintptr(unsafe.Pointer(each)), uintptr(unsafe.Pointer(out)))
	}
	return library.Call4(tollbar_take_many, uintptr(unsafe.Pointer(limits)), uintptr(len(items)),
		uintptr(unsafe.Pointer(each)), uintptr(unsafe.Pointer(out)))
}

func cTableTopRefused(table uintptr, now uint64, found []tollbar_table_refused, count *uintptr) int32 {
	return library.Call5(tollbar_table_top_refused, table, uintptr(now),
		uintptr(unsafe.Pointer(unsafe.SliceData(found))), uintptr(len(found)), uintptr(unsafe.Pointer(count)))
}

func cTableSync(table uintptr) (int32, syscall.Errno) {
	return library.WithErrno(func() int32 {
		return library.Call1(tollbar_table_sync, table)
	})
}

func cTableHealth(table uintptr, repair bool, now uint64, out *tollbar_table_health) int32 {
	if repair {
		return library.Call3(tollbar_table_repair, table, uintptr(now), uintptr(unsafe.Pointer(out)))
	}
	return library.Call3(tollbar_table_validate, table, uintptr(now), uintptr(unsafe.Pointer(out)))
}

func cInFlightOpen(path string, options *tollbar_in_flight_options, out *uintptr) (int32, syscall.Errno) {
	if path == "" {
		return library.WithErrno(func() int32 {
			return library.Call2(tollbar_in_flight_new, uintptr(unsafe.Pointer(options)), uintptr(unsafe.Pointer(out)))
		})
	}
	if options.capacity == 0 {
		options = nil
	}
	return library.WithErrno(func() int32 {
		return library.Call3(tollbar_in_flight_open, uintptr(library.Terminated(path)),
			uintptr(unsafe.Pointer(options)), uintptr(unsafe.Pointer(out)))
	})
}

func cAdaptiveInit(limit *tollbar_adaptive, options *tollbar_adaptive_options) int32 {
	return library.Call2(tollbar_adaptive_init, uintptr(unsafe.Pointer(limit)), uintptr(unsafe.Pointer(options)))
}

func cAdaptiveRead(limit *tollbar_adaptive, out *tollbar_adaptive_state) {
	library.Call2(tollbar_adaptive_read, uintptr(unsafe.Pointer(limit)), uintptr(unsafe.Pointer(out)))
}

func cPacingNew(options *tollbar_pacing_options, hosts int, out *uintptr) int32 {
	return library.Call3(tollbar_pacing_new, uintptr(unsafe.Pointer(options)), uintptr(hosts),
		uintptr(unsafe.Pointer(out)))
}

func cPacingAcquire(pacing uintptr, host string, now uint64, out *tollbar_pacing_ticket) int32 {
	return library.Call5(tollbar_pacing_acquire_at, pacing, uintptr(library.Text(host)), uintptr(len(host)),
		uintptr(now), uintptr(unsafe.Pointer(out)))
}

func cPacingWait(pacing uintptr, ticket *tollbar_pacing_ticket, now uint64) (wait uint64) {
	library.Call4(tollbar_pacing_wait_at, pacing, uintptr(unsafe.Pointer(ticket)), uintptr(now),
		uintptr(unsafe.Pointer(&wait)))
	return wait
}

func cPacingRespond(pacing uintptr, ticket *tollbar_pacing_ticket, status uint32, lines string, utc, now uint64) {
	library.Call7(tollbar_pacing_respond_at, pacing, uintptr(unsafe.Pointer(ticket)), uintptr(status),
		uintptr(library.Text(lines)), uintptr(len(lines)), uintptr(utc), uintptr(now))
}

func cPacingLeave(pacing uintptr, ticket *tollbar_pacing_ticket, now uint64) {
	library.Call3(tollbar_pacing_leave_at, pacing, uintptr(unsafe.Pointer(ticket)), uintptr(now))
}

func cPacingRead(pacing uintptr, host string, now uint64, out *tollbar_pacing_state) int32 {
	return library.Call5(tollbar_pacing_read_at, pacing, uintptr(library.Text(host)), uintptr(len(host)), uintptr(now),
		uintptr(unsafe.Pointer(out)))
}

func cHTTPWrite(items []httpItem, names []byte, what uint32, number uint64, buffer []byte, length *uintptr) int32 {
	limits, at := make([]tollbar_http_limit, max(len(items), 1)), library.Address(uintptr(library.First(names)))
	defer runtime.KeepAlive(names)
	defer runtime.KeepAlive(items)
	for i := range items {
		item := &items[i]
		limits[i] = tollbar_http_limit{name: at, name_length: item.name, partition: at + item.name,
			partition_length: item.partition, more_after_ns: item.more,
			policy:   library.Address(uintptr(unsafe.Pointer(&item.policy))),
			decision: library.Address(uintptr(unsafe.Pointer(&item.decision)))}
		at += item.name + item.partition
	}
	all := unsafe.Pointer(unsafe.SliceData(limits))
	if what == 0 {
		return library.Call6(tollbar_http_problem, uintptr(all), uintptr(len(items)), uintptr(uint32(number)),
			uintptr(library.First(buffer)), uintptr(len(buffer)), uintptr(unsafe.Pointer(length)))
	}
	return library.Call7(tollbar_http_fields, uintptr(all), uintptr(len(items)), uintptr(what), uintptr(number),
		uintptr(library.First(buffer)), uintptr(len(buffer)), uintptr(unsafe.Pointer(length)))
}

func cHTTPRead(lines string, utc uint64, out *tollbar_http_seen) int32 {
	return library.Call4(tollbar_http_read, uintptr(library.Text(lines)), uintptr(len(lines)), uintptr(utc),
		uintptr(unsafe.Pointer(out)))
}

func cMetrics(items []metricsItem, names []byte, format uint32, buffer []byte, length *uintptr) int32 {
	sources, at := make([]tollbar_metrics_source, max(len(items), 1)), library.Address(uintptr(library.First(names)))
	defer runtime.KeepAlive(names)
	for i, item := range items {
		sources[i] = tollbar_metrics_source{name: at, name_length: uintptr(item.name), limiter: item.limiter,
			table: item.table}
		at += uintptr(item.name)
	}
	return library.Call6(tollbar_metrics, uintptr(unsafe.Pointer(unsafe.SliceData(sources))), uintptr(len(items)),
		uintptr(format), uintptr(library.First(buffer)), uintptr(len(buffer)), uintptr(unsafe.Pointer(length)))
}

func cHierarchyNew(rate string, burst uint64, classes, policy uint32, out *uintptr) int32 {
	return library.Call5(tollbar_hierarchy_new, uintptr(library.Terminated(rate)), uintptr(burst),
		uintptr(classes), uintptr(policy), uintptr(unsafe.Pointer(out)))
}

func cHierarchyAdd(of uintptr, parent uint32, name, guaranteed, ceiling string, keys uint32, number *uint32) int32 {
	return library.Call7(tollbar_hierarchy_add, of, uintptr(parent), uintptr(library.Terminated(name)),
		uintptr(library.Terminated(guaranteed)),
		uintptr(library.Terminated(ceiling)), uintptr(keys), uintptr(unsafe.Pointer(number)))
}

func cHierarchyTake(of, table uintptr, leaf uint32, key string, cost uint64, at bool, now uint64,
	share *tollbar_share) int32 {
	if at {
		return library.Call8(tollbar_hierarchy_take_at, of, table, uintptr(leaf), uintptr(library.Text(key)),
			uintptr(len(key)), uintptr(cost), uintptr(now), uintptr(unsafe.Pointer(share)))
	}
	return library.Call7(tollbar_hierarchy_take, of, table, uintptr(leaf), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(cost), uintptr(unsafe.Pointer(share)))
}
