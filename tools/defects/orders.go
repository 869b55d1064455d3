package main

// inOrders are the defects of orders: which replica takes an order, and what its giver learns.
var inOrders = []defect{
	{"order-carried-out-again", "An order that was carried out is not carried out again when it is repeated.",
		[]edit{{"internal/orders/orders.go", "if a.id == o.ID {", "if false {"}},
		"./internal/orders", "TestTakerRepeatsItsAnswer"},
	{"order-carried-out-twice", "An order that is being carried out is not taken when it is repeated.",
		[]edit{{"internal/orders/orders.go", "if t.busy[o.ID] || len(t.busy) >= mostAtOnce {", "if len(t.busy) >= mostAtOnce {"}},
		"./internal/orders", "TestTakerRepeatsItsAnswer"},
	{"order-claimed-twice", "An order that one replica has claimed is not another's.",
		[]edit{{"internal/orders/orders.go", "if len(s.Value) > 0 {", "if len(s.Value) > 1<<20 {"}},
		"./internal/orders", "TestClaimOnce"},
	{"orders-not-waited-for", "Close waits for the orders that are carried out.",
		[]edit{{"internal/orders/orders.go", "t.work.Wait()", "_ = t.work.Wait"}},
		"./internal/orders", "TestCloseWaitsForOrders"},
	{"nobody-may-still-come", "Where it is said that nobody took an order, nobody can any more.",
		[]edit{{"admin/order.go", "err := orders.Claim(ctx, c.q, o.ID)", "err := error(nil)"}},
		"./admin", "TestRunNowOfNobody|TestRunNowWithoutAnAnswer"},
	{"another-run-cancelled", "An order to cancel is for one run.",
		[]edit{{"admin/order.go", "} else if is.FencingToken != run.FencingToken {", "} else if is.FencingToken == 0 {"}},
		"./admin", "TestResignAndCancelOfWhatIsNotThere"},
	{"dead-replica-not-late", "A job is late whose last replica died before it said what comes next.",
		[]edit{{"admin/read.go", "joblog.Later(l.record.Run.Ended, l.record.Cursor)", "time.Now()"}},
		"./admin", "TestLateJob"},
}
