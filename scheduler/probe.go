package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
)

// probe is a job as gocron makes it of a definition and options, in a scheduler that is never
// started.
type probe struct {
	name     string
	schedule gocron.JobSchedule
	ownCron  bool // the times are those of the user's own gocron.Cron
}

// newProbe makes one of a job of NewJob. Errors are *OptionError, and gocron's own.
func newProbe(definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption, now time.Time) (probe, error) {
	switch {
	case definition == nil:
		return probe{}, &OptionError{Option: "definition", Reason: "is nil: use gocron.CronJob, for example"}
	case task == nil:
		return probe{}, gocron.ErrNewJobTaskNil
	}
	p, err := probeAt(now, definition, task, opts)
	_, once := p.schedule.(gocron.OneTimeJobSchedule)
	switch {
	case once, errors.Is(err, gocron.ErrOneTimeJobStartDateTimePast):
		// gocron leaves out the times that have passed, and refuses a job when all have.
		p, err = probeAt(time.Time{}, definition, task, timeless(opts, now))
	case errors.Is(err, gocron.ErrWithStartDateTimePast):
		return p, &OptionError{Option: "gocron.WithStartAt", Reason: "the time has passed, as it has whenever a replica is started after it: " +
			"use gocron.WithStartDateTimePast, which takes such a time", Err: err}
	case errors.Is(err, gocron.ErrWithStopDateTimePast):
		return p, &OptionError{Option: "gocron.WithStopAt", Reason: "the time has passed: the job is over, so do not create it any more", Err: err}
	}
	if err == nil && strings.HasSuffix(p.name, "/scheduler.nameless") {
		err = &OptionError{Option: "gocron.WithName", Reason: "the job has no name: by it replicas agree on what they run, so give it one that stays the same"}
	}
	return p, err
}

// probeAt has gocron make the job as if it were a certain time.
func probeAt(now time.Time, definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (probe, error) {
	s, err := gocron.NewScheduler(gocron.WithClock(clockwork.NewFakeClockAt(now)), gocron.WithLocation(time.UTC))
	if err != nil {
		return probe{}, err
	}
	defer func() { _ = s.Shutdown() }()
	switch name, err := nameOf(s, task); {
	case err != nil:
		return probe{}, err
	case !isOwn(name):
		return probe{}, &OptionError{Option: "task", Reason: "is made by gocron.NewTask, which cannot be told of its lease: use scheduler.NewTask"}
	}
	// gocron asks this Cron only if the user has given none, which comes after it.
	first := gocron.WithCronImplementation(defaultCron{})
	j, err := s.NewJob(definition, gocron.NewTask(nameless), append([]gocron.JobOption{first}, opts...)...)
	ownCron := !errors.Is(err, errDefaultCron)
	if !ownCron {
		j, err = s.NewJob(definition, gocron.NewTask(nameless), opts...)
	}
	if err != nil {
		return probe{}, err
	}
	_, isCron := j.Schedule().(gocron.CronJobSchedule)
	return probe{name: j.Name(), schedule: j.Schedule(), ownCron: isCron && ownCron}, nil
}

// nameless is a task whose name shows that a job was given none.
func nameless() {}

var errDefaultCron = errors.New("scheduler: the crontab is for gocron's own Cron")

// defaultCron stands for gocron's own Cron, which reads the crontabs of jobs without another.
type defaultCron struct{}

func (defaultCron) IsValid(string, *time.Location, time.Time) error { return errDefaultCron }
func (defaultCron) Next(time.Time) time.Time                        { return time.Time{} }

// gocronRefuses returns what gocron has against a task.
func gocronRefuses(t gocron.Task) error {
	s, err := gocron.NewScheduler()
	if err != nil {
		return err
	}
	defer func() { _ = s.Shutdown() }()
	_, err = nameOf(s, t)
	return err
}

// nameOf has gocron make a job of a task that is given no name, and returns the one that gocron
// takes from the task's function. gocron panics for a nil parameter, and for too few before
// variadic ones.
func nameOf(s gocron.Scheduler, t gocron.Task) (name string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &OptionError{Option: "task", Reason: fmt.Sprintf("the parameters do not fit the function, or one is nil: gocron panics: %v", p)}
		}
	}()
	j, err := s.NewJob(gocron.DurationJob(time.Hour), t)
	if err != nil {
		return "", err
	}
	return j.Name(), nil
}

// isOwn reports whether a task was made by NewTask, from the name that gocron gives to its job.
// Tasks are opaque otherwise.
func isOwn(name string) bool { return strings.HasSuffix(name, "/scheduler.(*task).run-fm") }
