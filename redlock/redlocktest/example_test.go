package redlocktest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// connect opens a plain valkey-go client for a node. Code under test would hand
// fleet.URLs() and fleet.ClientOption to redlock.Open instead.
func connect(fleet *redlocktest.Fleet, url string) valkey.Client {
	o := valkey.MustParseURL(url)
	o.ForceSingleClient = true
	o.DisableRetry = true
	o.PipelineMultiplex = -1 // one connection
	fleet.ClientOption(url, &o)
	client, err := valkey.NewClient(o)
	if err != nil {
		panic(err)
	}
	return client
}

func ExampleNew() {
	fleet, err := redlocktest.New(3)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fleet.Close()

	for _, url := range fleet.URLs() {
		client := connect(fleet, url)
		client.Do(context.Background(), client.B().Set().Key("greeting").Value("hello").Px(time.Minute).Build())
		client.Close()
	}
	for _, node := range fleet.Nodes() {
		value, _ := node.Get("greeting")
		fmt.Println(value, node.Keys())
	}
	// Output:
	// hello [greeting]
	// hello [greeting]
	// hello [greeting]
}

// A node that is frozen answers nothing, and runs what it received when it
// thaws: the client has given up long before the key appears.
func ExampleNode_Freeze() {
	fleet, err := redlocktest.New(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fleet.Close()
	node := fleet.Node(0)
	client := connect(fleet, node.URL())
	defer client.Close()

	node.Freeze()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err = client.Do(ctx, client.B().Set().Key("late").Value("v").Build()).Error()
	fmt.Println(err, node.Keys())

	node.Thaw()
	for len(node.Keys()) == 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(node.Keys())
	// Output:
	// context deadline exceeded []
	// [late]
}

// A node that restarts empty has forgotten what it granted.
func ExampleNode_Restart() {
	fleet, err := redlocktest.New(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fleet.Close()
	node := fleet.Node(0)
	client := connect(fleet, node.URL())
	client.Do(context.Background(), client.B().Set().Key("key").Value("v").Build())
	client.Close()

	node.Kill()
	fmt.Println("killed:", node.Keys())
	node.Restart(true)
	fmt.Println("with its data:", node.Keys())
	node.Restart(false)
	fmt.Println("without:", node.Keys())
	// Output:
	// killed: [key]
	// with its data: [key]
	// without: []
}
