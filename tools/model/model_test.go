package model

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// page has what these tests see.
func page(t *testing.T) string {
	text, err := os.ReadFile("testdata/searches.md")
	require.NoError(t, err)
	return string(text)
}

// states are as many as the page says that a design has.
func states(t *testing.T, documented, name string) int {
	_, row, found := strings.Cut(documented, "| "+name+" | ")
	require.True(t, found, "searches.md has no row for %s", name)
	cell, _, _ := strings.Cut(row, " |")
	n, err := strconv.Atoi(cell)
	require.NoError(t, err)
	return n
}

func (r result[S]) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d |", name, r.states, r.transitions, r.depth)
}

func TestRealDesignsHold(t *testing.T) {
	documented := page(t)
	for _, c := range Designs() {
		holds(t, c.Name, newProtocol(c), documented)
	}
	for _, c := range RosterDesigns() {
		holds(t, c.Name, roster{c}, documented)
	}
	for _, c := range RegisterDesigns() {
		holds(t, c.Name, registers{c}, documented)
	}
}

// searched is a system whose counterexamples can be read.
type searched[S any] interface {
	system[S]
	report(trace []move[S]) string
}

func check[S any](sys system[S]) result[S] { return search(sys, runtime.GOMAXPROCS(0), stateLimit) }

// holds requires that nothing is violated, as the page says.
func holds[S any](t *testing.T, name string, sys searched[S], documented string) {
	if states(t, documented, name) > mostStates {
		return
	}
	t.Run(name, func(t *testing.T) {
		r := check(sys)
		t.Logf("%s %.1f s, violates: %v", r.row(name), r.elapsed.Seconds(), r.broken)
		require.Equal(t, none, r.broken, "violated after:\n%s", sys.report(r.trace))
		require.True(t, r.exhausted, "the search ended at its limit of %d states", stateLimit)
		assert.True(t, strings.Contains(documented, r.row(name)), "searches.md has other numbers")
	})
}

func TestDefectsAreFound(t *testing.T) {
	documented := page(t)
	for _, m := range Mistakes() {
		violates(t, m.Name, m.Only, newProtocol(m), documented)
	}
	for _, m := range RosterMistakes() {
		violates(t, m.Name, m.Only, roster{m}, documented)
	}
	for _, m := range RegisterMistakes() {
		violates(t, m.Name, WhatStandsIsRead, registers{m}, documented)
	}
}

// violates requires that a defect is found, as the page says.
func violates[S any](t *testing.T, name string, want Property, sys searched[S], documented string) {
	t.Run(name, func(t *testing.T) {
		r := check(sys)
		trace := sys.report(r.trace)
		t.Logf("%d states, %.1f s, violates %v after %d steps:\n%s", r.states, r.elapsed.Seconds(), r.broken, r.depth, trace)
		require.Equal(t, want, r.broken)
		require.Equal(t, r.depth, strings.Count(trace, "\n"), "the counterexample is complete")
		row := fmt.Sprintf("| %s | %v | %d | %d |", name, r.broken, r.depth, r.states)
		assert.True(t, strings.Contains(documented, row), "searches.md has other numbers")
	})
}

// A rule that the model does not need is named on the page, so that nobody takes the model for its
// proof.
func TestRulesThatTheModelDoesNotNeed(t *testing.T) {
	documented := page(t)
	for _, c := range Spares() {
		t.Run(c.Name, func(t *testing.T) {
			p := newProtocol(c)
			r := check(p)
			t.Logf("%s %.1f s, violates: %v", r.row(c.Name), r.elapsed.Seconds(), r.broken)
			require.Equal(t, none, r.broken, "now it is needed, and belongs to the defects:\n%s", p.report(r.trace))
			require.True(t, r.exhausted)
			assert.Contains(t, documented, c.Name)
		})
	}
}

// The counterexample that the page explains is the one that is found.
func TestPageHasTheCounterexample(t *testing.T) {
	c := restarted.with(RefillUnvouched, MutualExclusion)
	p := newProtocol(c)
	text := p.report(search(p, 1, stateLimit).trace) // with one worker it is always the same
	assert.Contains(t, page(t), text)
}

// docs/testing.md sums up what is searched, and how many rules are taken away.
func TestGuaranteesSumUpTheSearches(t *testing.T) {
	text, err := os.ReadFile("../../docs/testing.md")
	require.NoError(t, err)
	designs, sum := regexp.MustCompile(`(?m)^\| .+ \| (\d+) \| \d+ \| \d+ \|$`).FindAllStringSubmatch(page(t), -1), 0
	for _, row := range designs {
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		sum += n
	}
	rules := regexp.MustCompile(`(?m)^\| [^:|]+ \| [a-z -]+ \| \d+ \| \d+ \|$`).FindAllString(page(t), -1)
	require.Regexp(t, fmt.Sprintf(`%d\s+million\s+states\s+of\s+%d\s+configurations[^.]+\.\s+It[^.]+\s+each\s+of\s+%d\s+rules\s+that\s+are\s+taken\s+away`,
		sum/1_000_000, len(designs), len(rules)), string(text))
}
