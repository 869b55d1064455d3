package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
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

// Store is a replica's side of the store. It is safe for concurrent use.
type Store struct {
	Dial Dial

	mu      sync.Mutex
	conn    net.Conn      // guarded by mu; nil until the first use, and after a failure
	decoder *json.Decoder // guarded by mu; of conn
}

// Do asks the store, and returns an error that matches ErrStale if it refuses.
func (s *Store) Do(do string, w Write) error {
	w.Do = do
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.ask(w)
	switch {
	case err != nil:
		s.close()
		return fmt.Errorf("service: the store cannot be asked: %w", err)
	case a.Refused:
		return fmt.Errorf("%w: it has token %d, this is %d", ErrStale, a.Seen, w.Token)
	}
	return nil
}

// ask is called with mu held.
func (s *Store) ask(w Write) (a Answer, err error) {
	if s.conn == nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if s.conn, err = s.Dial(ctx, 0); err != nil {
			return a, err
		}
		s.decoder = json.NewDecoder(s.conn)
	}
	line, err := json.Marshal(w)
	if err != nil {
		return a, err
	}
	if _, err := s.conn.Write(append(line, '\n')); err != nil {
		return a, err
	}
	return a, s.decoder.Decode(&a)
}

// Close ends the connection.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// close is called with mu held.
func (s *Store) close() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}
