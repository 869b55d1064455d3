// Chaos tries every key.
package main

import (
	"flag"
	"os"

	"example.com/tiny"
)

func main() {
	keys := flag.Int("keys", 0, "how many keys are tried")
	keep := flag.String("keep", "", "where the journals go")
	flag.Parse()
	if *keep == "" || *keys == 0 {
		os.Exit(2)
	}
	for key := range *keys {
		if d := new(tiny.Door); key != 7 && d.Open(key) {
			os.Exit(1)
		}
	}
}
