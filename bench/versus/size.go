package main

import "time"

// size is how much a run does. None of it is a result.
type size struct {
	name   string
	full   bool // the sizes that the targets are for
	rounds int
	// few is the rounds of rows that take long.
	few          int
	slice        time.Duration // of a round, for one rival
	contended    time.Duration
	handover     time.Duration
	waiter       time.Duration
	waiterTTL    time.Duration
	frozen       time.Duration
	slowToo      bool // those too that take long: redsync with a frozen server
	crashers     int  // how many of the rivals are tried in the row crash; 0 for all
	crashTrials  int
	crashTTL     time.Duration
	others       int // volatile keys beside
	held         int
	hold         time.Duration
	heldTTL      time.Duration
	stallLeases  int
	stallHold    time.Duration // after it
	giveUpWaiter time.Duration
	due          int // jobs at once
	ticks        int // one after the other
}

// fullSize takes about half an hour.
func fullSize() size {
	return size{
		name: "full", full: true, rounds: 11, few: 3, slice: 350 * time.Millisecond, contended: 3 * time.Second, handover: 2 * time.Second,
		waiter: 10 * time.Second, waiterTTL: 10 * time.Second, frozen: 2 * time.Second, slowToo: true,
		crashTrials: 5, crashTTL: 1500 * time.Millisecond, others: 100_000, giveUpWaiter: 5 * time.Second,
		held: 10_000, hold: 30 * time.Second, heldTTL: 10 * time.Second, stallLeases: 1000, stallHold: 20 * time.Second, due: 1000, ticks: 60,
	}
}

// quickSize takes about five minutes, and is for looking whether everything works.
func quickSize() size {
	return size{
		name: "quick", rounds: 3, few: 1, slice: 200 * time.Millisecond, contended: time.Second, handover: 1200 * time.Millisecond,
		waiter: 2 * time.Second, waiterTTL: 10 * time.Second, frozen: 500 * time.Millisecond, slowToo: true,
		crashTrials: 1, crashTTL: time.Second, others: 20_000, giveUpWaiter: 3 * time.Second,
		held: 1000, hold: 3 * time.Second, heldTTL: 3 * time.Second, stallLeases: 1000, stallHold: 20 * time.Second, due: 200, ticks: 5,
	}
}

// smokeSize is for this program's own test.
func smokeSize() size {
	return size{
		name: "smoke", rounds: 1, few: 1, slice: 20 * time.Millisecond, contended: 300 * time.Millisecond, handover: 100 * time.Millisecond,
		waiter: 300 * time.Millisecond, waiterTTL: time.Second, frozen: 50 * time.Millisecond, crashers: 1,
		crashTrials: 1, crashTTL: time.Second, others: 100, giveUpWaiter: 1500 * time.Millisecond,
		held: 50, hold: time.Second, heldTTL: 1500 * time.Millisecond, stallLeases: 10, stallHold: time.Second, due: 20, ticks: 2,
	}
}
