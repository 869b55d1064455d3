package sample

func newest() *Owner { return nil }

type list[T any] struct{ all []T }

func (l *list[T]) push(v T) { l.all = append(l.all, v) }
func (l list[T]) size() int { return len(l.all) }
func (l list[T]) Size() int { return len(l.all) }
func (l list[T]) drop()     {}
func (l list[T]) trim()     {}
