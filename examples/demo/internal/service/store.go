package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// What a Write is.
const (
	Claim = "claim" // a lease has begun: the store takes note of its token, and writes nothing
	Put   = "put"
)

// Write is what a run asks of the store: a line of JSON, to which the store answers with one.
type Write struct {
	Do      string `json:"do"`
	Token   uint64 `json:"token"`
	Tick    int64  `json:"tick"`
	Attempt int    `json:"attempt"`
}

// Answer is the store's.
type Answer struct {
	Seen    uint64 `json:"seen"` // the largest token
	Refused bool   `json:"refused"`
}

// ErrStale is matched by the error of a write that was refused: a later holder has been here, so
// this lease is over.
var ErrStale = errors.New("service: the store has seen a later holder")

// patience is how long the store may take to answer. It is in no partition.
const patience = 10 * time.Second

// ask asks the store, on a connection of its own, and returns an error that matches ErrStale if it
// refuses.
func ask(dial Dial, w Write) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := dial(ctx, 0)
	if err != nil {
		return fmt.Errorf("service: the store cannot be asked: %w", err)
	}
	defer conn.Close()
	var a Answer
	if err := errors.Join(json.NewEncoder(conn).Encode(w), json.NewDecoder(conn).Decode(&a)); err != nil {
		return fmt.Errorf("service: the store cannot be asked: %w", err)
	}
	if a.Refused {
		return fmt.Errorf("%w: it has token %d, this is %d", ErrStale, a.Seen, w.Token)
	}
	return nil
}
