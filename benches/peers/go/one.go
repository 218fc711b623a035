package main

import (
	"time"

	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

func limiter(allows bool) *rate.Limiter {
	if allows {
		return rate.NewLimiter(1e9, 1<<50)
	}
	limiter := rate.NewLimiter(rate.Every(24*time.Hour), 1)
	limiter.Allow()
	return limiter
}

// Half of the requests, in an order that no branch predictor knows.
var coin = func() []bool {
	coin := make([]bool, 1<<14)
	word := uint64(1)
	for i := range coin {
		word ^= word << 13
		word ^= word >> 7
		word ^= word << 17
		coin[i] = word>>40&1 == 0
	}
	return coin
}()

// One limit, kept from turn to turn.
var ones = map[string]runner{}

func one(peer, work string) runner {
	name := peer + " " + work
	if ones[name] == nil {
		ones[name] = newOne(peer, work)
	}
	return ones[name]
}

func newOne(peer, work string) runner {
	yes, no := limiter(true), limiter(false)
	var only *rate.Limiter
	switch work {
	case "allowed":
		only = yes
	case "denied":
		only = no
	}
	start := time.Now()
	switch peer {
	case "x-time":
		return func(from, to int) (passed int) {
			for i := from; i < to; i++ {
				if pick(only, yes, no, i).Allow() {
					passed++
				}
			}
			return passed
		}
	case "x-time-at":
		return func(from, to int) (passed int) {
			now := start
			for i := from; i < to; i++ {
				now = now.Add(1)
				if pick(only, yes, no, i).AllowN(now, 1) {
					passed++
				}
			}
			return passed
		}
	case "uber":
		// A rate so high that it never has to wait.
		limiter := uber.New(1_000_000_000)
		return func(from, to int) (passed int) {
			for i := from; i < to; i++ {
				limiter.Take()
				passed++
			}
			return passed
		}
	}
	panic("no such peer: " + peer)
}

func pick(only, yes, no *rate.Limiter, i int) *rate.Limiter {
	if only != nil {
		return only
	}
	if coin[i&(len(coin)-1)] {
		return yes
	}
	return no
}
