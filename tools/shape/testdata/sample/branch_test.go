package sample

func ignored() { six(nil, nil) }
