package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// The guarded update of a row that must exist, relative to what it holds.
const addSQL = `
UPDATE account SET balance = balance + ?, fence = ?
WHERE id = ? AND fence <= ?`

// transfer moves an amount from one account to another under one token: both rows are checked and
// written, or none. The lease that the token comes from must be the one that guards both accounts.
//
// Each row is checked where it is written, inside the transaction, and one refusal undoes
// everything. A database that locks rows needs a fixed order of them besides, or two transfers in
// opposite directions block each other.
func (a *accounts) transfer(ctx context.Context, from, to string, amount int64, token uint64) (err error) {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("fencing: cannot begin a transfer: %w", err)
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // also ends by itself when ctx or the connection does
		}
	}()
	for _, change := range []struct {
		id     string
		amount int64
	}{{from, -amount}, {to, amount}} {
		result, err := tx.ExecContext(ctx, addSQL, change.amount, token, change.id, token)
		if err != nil {
			return fmt.Errorf("fencing: cannot change account %q: %w", change.id, err)
		}
		n, err := result.RowsAffected()
		if err != nil {
			return fmt.Errorf("fencing: cannot tell whether account %q was changed: %w", change.id, err)
		}
		if n == 0 {
			return a.refusal(ctx, tx, change.id, token)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("fencing: cannot commit a transfer: %w", err)
	}
	return nil
}

// refusal tells why an update changed no row: an update, unlike an upsert, also finds nothing where
// nothing is. The decision has been made; this only names it, and reads the same state because it
// is in the same transaction.
func (a *accounts) refusal(ctx context.Context, tx *sql.Tx, id string, token uint64) error {
	var balance int64
	switch err := tx.QueryRowContext(ctx, balanceSQL, id).Scan(&balance); {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: %q", errNoAccount, id)
	case err != nil:
		return fmt.Errorf("fencing: cannot read account %q: %w", id, err)
	}
	return &staleError{id: id, token: token}
}
