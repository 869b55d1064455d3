package node

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// listen runs a node in a bubble, and hands over what it tells of exchanges
// since the last time.
func listen(t *testing.T, c *fakeClient, change func(*Config), f func(n *Node, told func() []error)) {
	n := with(c)
	n.cfg.SampleEvery, n.cfg.LookEvery = time.Second, 10*time.Second
	if change != nil {
		change(&n.cfg)
	}
	go n.Run()
	defer func() {
		n.Close()
		n.Wait()
	}()
	w := n.cfg.Observer.(*watcher)
	f(n, func() (all []error) {
		synctest.Wait()
		w.add(func() { all, w.exchanged = w.exchanged, nil })
		return all
	})
}

// holding are what a server says that holds back what may write, as CLIENT PAUSE WRITE does.
func holding(words []string) string {
	if isScript(words) {
		return hangs
	}
	return asServer
}

// That a server answers INFO and TIME does not make good that it answers no script: it fails until
// it does, and is tried at a steady pace.
func TestServerThatHoldsWritesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, newServer("a"))
		listen(t, c, nil, func(n *Node, told func() []error) {
			synctest.Wait()
			require.NoError(t, n.Status().Reason())
			c.set(func() { c.say = holding })
			time.Sleep(time.Minute)
			all := told()
			failed := slices.IndexFunc(all, func(err error) bool { return err != nil })
			require.Equal(t, ErrTimeout, all[failed], "it may be silent")
			for _, err := range all[failed+1:] {
				require.Equal(t, ErrHeldBack, err)
			}
			require.InDelta(t, 50*time.Second/(recheckEvery+timeout), len(all)-failed, 8)
			require.NoError(t, n.Status().Reason(), "who may vouch for it has nothing against it")

			c.set(func() { c.say = nil })
			time.Sleep(recheckEvery + timeout)
			all = told()
			require.NotEmpty(t, all)
			require.NoError(t, all[len(all)-1], "it is well at once")
			time.Sleep(time.Minute)
			require.NotContains(t, told(), ErrHeldBack)
		})
	})
}

// A server that is silent altogether is not said to hold anything back. Once it answers anything it
// is tried, so it does not seem to fail for longer than it does.
func TestServerThatWasSilentIsTriedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, newServer("a"))
		listen(t, c, func(cfg *Config) { cfg.SampleEvery = timeout / 2 }, func(n *Node, told func() []error) {
			told()
			c.set(func() { c.say = func([]string) string { return hangs } })
			time.Sleep(time.Minute)
			require.Contains(t, told(), ErrTimeout)
			require.NotContains(t, told(), ErrHeldBack)
			for c.sent(); c.sent()["EVALSHA"] == 0; synctest.Wait() {
				time.Sleep(timeout / 10)
			}
			for told(); len(told()) == 0; { // the trial is not answered either, nor INFO after it: the next question is for the clock
				time.Sleep(timeout / 10)
			}
			c.set(func() { c.say = nil })
			time.Sleep(3 * timeout / 2) // before the trial comes that is due by itself
			all := told()
			require.NotEmpty(t, all)
			require.NoError(t, all[len(all)-1])
			require.NotContains(t, all, ErrHeldBack)
		})
	})
}

// What others may have agreed to do without is looked at anew, also where it has answered INFO and
// TIME all the while: it has not said who uses it.
func TestServerThatHoldsWritesBackIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, newServer("a"))
		listen(t, c, func(cfg *Config) { cfg.Absence = 30 * time.Second }, func(n *Node, told func() []error) {
			told()
			opened := n.Status().Opened
			c.set(func() { c.say = holding })
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, ErrHeldBack, n.Status().Reason())
			c.set(func() { c.say = nil })
			time.Sleep(MaxPause + timeout + recheckEvery)
			synctest.Wait()
			require.NoError(t, n.Status().Reason())
			require.Equal(t, opened+1, n.Status().Opened)
			time.Sleep(time.Minute)
			synctest.Wait()
			require.NoError(t, n.Status().Reason())
		})
	})
}
