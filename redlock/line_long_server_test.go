//go:build long

package redlock_test

import "testing"

func TestThousandsOfAProcessWantOneKey(t *testing.T) { requireAllTake(t, 1, 10_000) }

func TestThousandsOfEightProcessesWantOneKey(t *testing.T) { requireAllTake(t, 8, 750) }
