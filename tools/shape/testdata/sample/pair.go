package sample

// Several is as large as Owner. Its file uses twin.go, which uses it: a smaller cycle.
type Several struct{ a, b, c, d, e, f, g int }

const pairs = twins + 1
