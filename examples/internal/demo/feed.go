package demo

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"
)

// The most that is kept for the page.
const (
	maxItems = 2000
	maxLines = 100
)

// feed is what the page is told. A reader asks for what is newer than the revision it has, so it
// may be as slow as it likes, and misses only versions that are out of date. The Demo's mutex
// guards it.
type feed struct {
	revision uint64
	lastID   int
	present  *State
	told     uint64 // the revision of present
	items    []*kept[Item]
	byID     map[int]*kept[Item]
	lines    []*kept[Line]
	more     chan struct{} // closed with the next change
}

// kept is an item or a line, with the revision of its last change.
type kept[T any] struct {
	value    *T
	revision uint64
}

func newFeed() *feed {
	return &feed{byID: make(map[int]*kept[Item]), more: make(chan struct{})}
}

// next is the revision of a change, of which readers hear.
func (f *feed) next() uint64 {
	f.revision++
	close(f.more)
	f.more = make(chan struct{})
	return f.revision
}

// add adds an item, and gives it its ID.
func (f *feed) add(i Item) *Item {
	f.lastID++
	i.Type, i.ID = "item", f.lastID
	k := &kept[Item]{&i, f.next()}
	f.items = append(f.items, k)
	f.byID[i.ID] = k
	return &i
}

// changed tells readers of an item again.
func (f *feed) changed(i *Item) {
	if k := f.byID[i.ID]; k != nil {
		k.revision = f.next()
	}
}

func (f *feed) line(kind, text string) {
	f.lastID++
	f.lines = append(f.lines, &kept[Line]{&Line{Type: "line", ID: f.lastID, At: time.Now().UnixMilli(), Kind: kind, Text: text}, f.next()})
	if surplus := len(f.lines) - maxLines; surplus > 0 {
		f.lines = slices.Delete(f.lines, 0, surplus)
	}
}

// state takes the present, and returns false if only its time is another one and it need not always
// be told.
func (f *feed) state(s State, always bool) bool {
	if f.present != nil && !always {
		last := *f.present
		last.Now = s.Now
		if reflect.DeepEqual(last, s) {
			return false
		}
	}
	f.present, f.told = &s, f.next()
	return true
}

// forget drops items that are over for long.
func (f *feed) forget(now time.Time) {
	f.items = slices.DeleteFunc(f.items, func(k *kept[Item]) bool {
		old := k.value.To != 0 && now.UnixMilli()-k.value.To > keepItems.Milliseconds()
		if old {
			delete(f.byID, k.value.ID)
		}
		return old
	})
	for len(f.items) > maxItems {
		delete(f.byID, f.items[0].value.ID)
		f.items = slices.Delete(f.items, 0, 1)
	}
}

func (f *feed) since(revision uint64) (messages [][]byte, now uint64, more <-chan struct{}) {
	if f.present != nil && f.told > revision {
		messages = append(messages, marshal(f.present))
	}
	for _, k := range f.items {
		if k.revision > revision {
			messages = append(messages, marshal(k.value))
		}
	}
	for _, k := range f.lines {
		if k.revision > revision {
			messages = append(messages, marshal(k.value))
		}
	}
	return messages, f.revision, f.more
}

// marshal makes a message: the types of protocol.go have nothing that JSON lacks.
func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
