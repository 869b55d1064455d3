package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

// row is one line of the table "How fast it must be": some work, and who does it.
type row struct {
	name, title string
	columns     []column
	run         func(ctx context.Context, s *stage, b *board) error
}

// rows are all, in the order in which they run.
func rows() []*row {
	return []*row{
		pairRow(), distinctRow(64), contendedRow(), handoverRow(), waiterRow(), crashRow(), frozenRow(), stallRow(),
		heldRow(), dueRow("due10", func(size) int { return 10 }), dueRow("due1000", func(sz size) int { return sz.due }), farRow(),
	}
}

// chosen returns those of all with names from a list with commas; none if it is empty.
func chosen[T any](names, what string, all []T, nameOf func(T) string) (some []T, err error) {
	if names == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(one T) bool { return nameOf(one) == strings.TrimSpace(name) })
		if i < 0 {
			var known []string
			for _, one := range all {
				known = append(known, nameOf(one))
			}
			return nil, fmt.Errorf("versus: there is no %s %q: use some of %s", what, name, strings.Join(known, ","))
		}
		some = append(some, all[i])
	}
	return some, nil
}

// everyKind are all that take part in some row, in the order of the tables.
func everyKind() []*rival.Kind {
	return append(rival.All(), tenureScheduler, gocronRedisLock, gocronAlone)
}

// flagName is how a rival is called on the command line: floor-batching is "floor, batching".
func flagName(k *rival.Kind) string {
	words := strings.FieldsFunc(strings.ReplaceAll(strings.ToLower(k.Name), "'", ""), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-")
}

// takePart leaves out the rivals that do not, and turns the order of the others by one place each
// round, so that nobody always comes after the same one.
func (s *stage) takePart(kinds []*rival.Kind, round int) []*rival.Kind {
	var some []*rival.Kind
	for _, k := range kinds {
		if len(s.only) == 0 || slices.Contains(s.only, k) {
			some = append(some, k)
		}
	}
	if len(some) == 0 {
		return nil
	}
	first := round % len(some)
	return slices.Concat(some[first:], some[:first])
}

// entrant is a rival that takes part in a row.
type entrant struct {
	*rival.Kind
	rival.Rival
}

// enter opens rivals.
func (s *stage) enter(kinds []*rival.Kind, c rival.Config) (es []*entrant, leave func() error, err error) {
	leave = func() error {
		var errs []error
		for _, e := range es {
			errs = append(errs, e.Close())
		}
		return errors.Join(errs...)
	}
	for _, k := range kinds {
		r, err := k.Open(c)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", k.Name, err), leave())
		}
		es = append(es, &entrant{k, r})
	}
	return es, leave, nil
}

// rounds has everybody do something in turn, round after round, on servers that are empty. Each
// round begins with another, so that nobody always comes after the same one.
func (s *stage) rounds(ctx context.Context, es []*entrant, do func(e *entrant) error) error {
	for round := range s.size.rounds {
		for i := range es {
			e := es[(round+i)%len(es)]
			if err := s.servers.Flush(ctx); err != nil {
				return err
			}
			if err := do(e); err != nil {
				return fmt.Errorf("%s, round %d: %w", e.Name, round+1, err)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
