package moving

import (
	"context"
	"errors"

	"github.com/go-co-op/gocron/v2"
)

type both struct{ old, new gocron.Locker } // new: scheduler.NewLocker(q)

func (b both) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	first, err := b.old.Lock(ctx, job)
	if err != nil {
		return nil, err
	}
	second, err := b.new.Lock(ctx, job)
	if err != nil {
		return nil, errors.Join(err, first.Unlock(context.WithoutCancel(ctx)))
	}
	return locks{first, second}, nil
}

type locks struct{ first, second gocron.Lock }

func (l locks) Unlock(ctx context.Context) error {
	return errors.Join(l.second.Unlock(ctx), l.first.Unlock(ctx))
}
