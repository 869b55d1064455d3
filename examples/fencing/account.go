package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// The account table. The fence is the largest token that has written to the row. It is part of the
// row, so both are created and deleted together. A token is below 2^53 and does not fit into 32
// bits; SQLite's INTEGER has 64. If a program forgets the token, the fence is zero and the CHECK
// refuses it.
const createSQL = `
CREATE TABLE IF NOT EXISTS account (
	id      TEXT PRIMARY KEY,
	balance INTEGER NOT NULL DEFAULT 0,
	fence   INTEGER NOT NULL CHECK (fence > 0)
) STRICT`

// The guarded write. It compares and writes in one statement, and makes the row if there is none.
const setSQL = `
INSERT INTO account (id, balance, fence) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET balance = excluded.balance, fence = excluded.fence
WHERE account.fence <= excluded.fence`

// The guarded read. It leaves the reader's token in the row, so no earlier holder can change the
// balance after it was read.
const claimSQL = `
INSERT INTO account (id, fence) VALUES (?, ?)
ON CONFLICT (id) DO UPDATE SET fence = excluded.fence
WHERE account.fence <= excluded.fence
RETURNING balance`

// errStale is matched by the error of a write whose token is smaller than the largest that the
// resource has seen. The process must stop its work: a later holder exists, so its own lease is
// over, even if the process believes otherwise.
var errStale = errors.New("another holder exists, stop")

func stale(id string, token uint64) error {
	return fmt.Errorf("fencing: account %q has seen a greater token than %d: %w", id, token, errStale)
}

// accounts is a table of accounts that refuses stale tokens. It is safe for concurrent use, also by
// several processes on one file.
type accounts struct{ db *sql.DB }

// openAccounts opens the database in a file, and makes the table if there is none.
func openAccounts(ctx context.Context, file string) (*accounts, error) {
	source := url.URL{Scheme: "file", Path: filepath.ToSlash(file), RawQuery: url.Values{
		"_pragma": {"busy_timeout(30000)", "journal_mode(WAL)", "synchronous(FULL)"}, // FULL: a commit survives a power failure
	}.Encode()}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, createSQL); err != nil {
		return nil, errors.Join(fmt.Errorf("fencing: cannot make the account table: %w", err), db.Close())
	}
	return &accounts{db: db}, nil
}

func (a *accounts) close() error { return a.db.Close() }

// set writes the balance, unless the row has seen a greater token. The holder of the largest token
// may write as often as it likes. The first write makes the row.
func (a *accounts) set(ctx context.Context, id string, balance int64, token uint64) error {
	result, err := a.db.ExecContext(ctx, setSQL, id, balance, token)
	if err != nil {
		return fmt.Errorf("fencing: cannot write account %q: %w", id, err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("fencing: cannot tell whether account %q was written: %w", id, err)
	}
	if n == 0 {
		return stale(id, token)
	}
	return nil
}

// claim leaves the token in the row, unless the row has seen a greater one, and returns the
// balance. It makes a row with a balance of zero if there is none.
func (a *accounts) claim(ctx context.Context, id string, token uint64) (balance int64, err error) {
	switch err := a.db.QueryRowContext(ctx, claimSQL, id, token).Scan(&balance); {
	case errors.Is(err, sql.ErrNoRows):
		return 0, stale(id, token)
	case err != nil:
		return 0, fmt.Errorf("fencing: cannot claim account %q: %w", id, err)
	}
	return balance, nil
}
