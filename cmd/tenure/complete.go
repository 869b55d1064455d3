package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// completeWithin is how long a shell waits for names. Without nodes, or an answer, there are none.
const completeWithin = 2 * time.Second

// completeJobs completes names of jobs.
func (p *program) completeJobs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return p.complete(cmd, func(ctx context.Context, c *cluster) (names []string) {
		for j, err := range c.Jobs(ctx) {
			if err == nil {
				names = append(names, j.Name)
			}
		}
		return names
	})
}

// completeElections completes names of elections.
func (p *program) completeElections(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return p.complete(cmd, func(ctx context.Context, c *cluster) (names []string) {
		all, _ := c.Elections(ctx)
		for _, e := range all {
			names = append(names, e.Name)
		}
		return names
	})
}

func (p *program) complete(cmd *cobra.Command, names func(context.Context, *cluster) []string) ([]string, cobra.ShellCompDirective) {
	if p.fromEnvironment(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := p.reach(levelOff)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.q.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completeWithin)
	defer cancel()
	var safe []string
	for _, name := range names(ctx, c) {
		if line(name) == name { // what a shell might do something with is not offered
			safe = append(safe, name)
		}
	}
	return safe, cobra.ShellCompDirectiveNoFileComp
}
