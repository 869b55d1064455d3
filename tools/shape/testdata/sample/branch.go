package sample

func six(c chan int, all []int) {
	if len(all) > 1 && len(all) < 3 {
		return
	}
	for len(all) < 9 {
		all = append(all, 1)
	}
	for range all {
		func() {
			if len(all) > 2 {
				return
			}
		}()
	}
	switch {
	case len(all) > 5:
	}
	select {
	case <-c:
	}
}

func five(c chan int, all []int) {
	switch len(all) {
	case 1, 2:
	case 3:
	default:
	}
	select {
	case <-c:
	default:
	}
	if len(all) > 4 || newest().size > 4 {
		return
	}
	for {
	}
}

const script = `
two lines, and one between

`
