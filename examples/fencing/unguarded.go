package main

import (
	"context"
	"errors"
	"fmt"
)

const overwriteSQL = `
INSERT INTO account (id, balance, fence) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET balance = excluded.balance`

// unguarded is the same table as accounts, written to by somebody who is handed the token and does
// not compare it. It is here to show what happens then.
type unguarded struct{ *accounts }

func (u unguarded) claim(ctx context.Context, id string, _ uint64) (int64, error) {
	balance, err := u.balance(ctx, id)
	if errors.Is(err, errNoAccount) {
		return 0, nil
	}
	return balance, err
}

func (u unguarded) set(ctx context.Context, id string, balance int64, token uint64) error {
	if _, err := u.db.ExecContext(ctx, overwriteSQL, id, balance, token); err != nil {
		return fmt.Errorf("fencing: cannot write account %q: %w", id, err)
	}
	return nil
}
