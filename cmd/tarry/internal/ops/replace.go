package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/sleep"
)

// replaceEvery is the pause between two looks at the members.
const replaceEvery = 500 * time.Millisecond

const replaceText = `Replaces a node by a new one: waits until NEW has joined, has caught up and votes, and only then
removes OLD for good. Start NEW before, on its own machine, with --join and without
--bootstrap-expect. OLD may be down. It asks first.

If NEW is no member within a minute, or within --wait if that is given, it gives up.

It can be interrupted at any time and run again: it goes on where it was, and does nothing if the
replacement is complete. Until NEW votes nothing is removed, so no majority is at risk. --dry-run
says what would be done.

If NEW votes already, nothing is waited for, and a removal may only make the cluster smaller. It
then says how many voters remain, and is refused without --force if fewer of them may fail than
now, unless OLD is down, or if OLD has no vote: perhaps the two are swapped.`

func replaceCommand() *cobra.Command {
	c := cli.NewCommand("replace", "replace a node by a new one: wait until NEW votes, then remove OLD", "OLD NEW", replaceText, "tarry cluster replace n2 n4", 2, 2)
	c.Sure = c.YesFlag()
	dry := c.Flags.Bool("dry-run", false, "say what would be done, and change nothing")
	force := c.Flags.Bool("force", false, "remove OLD although fewer voters may fail then, or OLD does not vote")
	wait := &cli.Duration{Value: 30 * time.Minute, Positive: true}
	c.Flags.Var(wait, "wait", "`time` to wait until NEW votes")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		r := &replacement{t: t, path: c.Path(), old: args[0], new: args[1], joins: min(joinTime, wait.Value)}
		if c.Given("wait") != "" {
			r.joins = wait.Value
		}
		if r.old == r.new {
			return cli.Usagef("OLD and NEW are both %s; a node that lost its data needs no replacement: start it again", r.old)
		}
		step, err := r.look(ctx)
		switch {
		case err != nil:
			return err
		case *dry:
			if *force {
				step.Shrinks = ""
			}
			return r.report(step, true)
		case step.Done:
			return r.report(step, false)
		case step.Shrinks != "" && !*force:
			return errors.New(step.Shrinks + ". Nothing was done; --force removes it nevertheless")
		}
		if err := t.Confirm(ctx, *c.Sure, func(context.Context, *cli.Terminal, []string) (string, error) {
			return fmt.Sprintf("Remove %s for good as soon as %s votes? Now %s.", r.old, r.new, step.Now), nil
		}, nil); err != nil {
			return err
		}
		if err := r.run(ctx, wait.Value); err != nil {
			return err
		}
		return r.report(replaceStep{Done: true, Now: fmt.Sprintf("%s votes, and %s is not a member", r.new, r.old)}, false)
	})
}

// replacement is a replacement of one node by another.
type replacement struct {
	t        *cli.Terminal
	path     string
	old, new string
	joins    time.Duration // in which NEW must be a member
	said     string        // the last note
}

// joinTime is how long a node may take to join that was started before. A name that no node has
// would be waited for in vain.
const joinTime = time.Minute

// replaceStep is how far a replacement is.
type replaceStep struct {
	Done   bool // OLD is no member, and NEW votes
	Votes  bool // NEW votes and has caught up
	Absent bool // NEW is no member
	// Shrinks is why the removal is perhaps not meant, if NEW votes already; empty: it is.
	Shrinks string
	Now     string // in words
}

// removalTime is how long the members may show a node that was removed.
const removalTime = 30 * time.Second

// maxLag is how many entries a voter may be behind to count as caught up: writes go on
// meanwhile.
const maxLag = 1000

// stepOf says how far a replacement is.
func (r *replacement) stepOf(members []client.Member) (replaceStep, error) {
	old, hasOld := memberOf(members, r.old)
	added, hasNew := memberOf(members, r.new)
	switch {
	case !hasOld && !hasNew:
		return replaceStep{}, &client.Error{Code: client.CodeNotFound, Message: fmt.Sprintf("neither %s nor %s is a member; see tarry cluster members", r.old, r.new)}
	case !hasNew:
		return replaceStep{Absent: true, Now: r.new + " is not a member: start it, with --join and without --bootstrap-expect"}, nil
	case !added.Alive:
		return replaceStep{Now: r.new + " is a member, and does not reply"}, nil
	case added.NonVoter && !added.Voter:
		return replaceStep{}, &client.Error{Code: client.CodeConflict, Message: fmt.Sprintf("%s was started with --non-voter and never votes: restart it without that flag, or remove %s with tarry cluster remove", r.new, r.old)}
	case !added.Voter:
		return replaceStep{Now: fmt.Sprintf("%s has joined and does not vote yet; it is %d log entries behind", r.new, added.Lag)}, nil
	case added.Lag > maxLag:
		return replaceStep{Now: fmt.Sprintf("%s votes, and is %d log entries behind", r.new, added.Lag)}, nil
	case !hasOld:
		return replaceStep{Done: true, Votes: true, Now: fmt.Sprintf("%s votes, and %s is not a member", r.new, r.old)}, nil
	}
	role := ""
	if old.Role == "leader" {
		role = ", which leads and gives that away first,"
	}
	remain := votersWithout(members, r.old)
	step := replaceStep{Votes: true, Now: fmt.Sprintf("%s votes, and %s%s can be removed; %s will vote then, of which %d may fail", r.new, r.old, role, nodesOf(remain), mayFail(remain))}
	switch {
	case !old.Voter:
		step.Shrinks = fmt.Sprintf("%s votes and %s does not: perhaps the two are swapped", r.new, r.old)
	case old.Alive && mayFail(remain) < mayFail(remain+1):
		step.Shrinks = fmt.Sprintf("both %s and %s vote: without %s there are %d voters instead of %d, of which %d may fail instead of %d", r.old, r.new, r.old, remain, remain+1, mayFail(remain), mayFail(remain+1))
	}
	return step, nil
}

// votersWithout counts the voters other than one node.
func votersWithout(members []client.Member, id string) (n int) {
	for _, m := range members {
		if m.Voter && m.ID != id {
			n++
		}
	}
	return n
}

// mayFail is how many of so many voters may fail.
func mayFail(voters int) int { return max(0, voters-1) / 2 }

func (r *replacement) look(ctx context.Context) (replaceStep, error) {
	members, err := r.t.Client.Cluster().Members(ctx)
	if err != nil {
		return replaceStep{}, err
	}
	return r.stepOf(members)
}

// run waits until NEW votes and removes OLD. Nothing is done before the removal, so it can be
// interrupted; the leader completes a removal that has begun.
func (r *replacement) run(ctx context.Context, wait time.Duration) error {
	end, joined := time.Now().Add(wait), time.Now().Add(r.joins)
	for {
		step, err := r.look(ctx)
		switch {
		case ctx.Err() != nil:
			return errInterrupted
		case err != nil && (!passes(err) || time.Now().After(end)):
			return err
		case err != nil:
			step = replaceStep{Now: "the members cannot be asked: " + cli.Explain(err)}
		case step.Done:
			return nil
		}
		r.note(step)
		if step.Votes {
			break
		}
		if step.Absent && time.Now().After(joined) {
			return r.stranger(ctx)
		}
		if time.Now().After(end) {
			return fmt.Errorf("gave up after %v, and removed nothing: %s", wait, step.Now)
		}
		if !sleep.For(ctx, replaceEvery) {
			return errInterrupted
		}
	}
	if err := r.t.Client.Cluster().RemoveMember(ctx, r.old); err != nil && !errors.Is(err, client.CodeNotFound) {
		return err
	}
	for end := time.Now().Add(removalTime); ; {
		step, err := r.look(ctx)
		switch {
		case err != nil && !passes(err):
			return err
		case err == nil && step.Done:
			return nil
		case time.Now().After(end) || !sleep.For(ctx, replaceEvery):
			return fmt.Errorf("%s was removed, and the members do not show it yet: %s; run the command again", r.old, cli.Dash(step.Now))
		}
	}
}

// stranger is the error of a NEW that has not joined, with what the leader says of it.
func (r *replacement) stranger(ctx context.Context) error {
	why := "no node with this name is known: check the name, and start it with --join and without --bootstrap-expect"
	if h, err := r.t.Client.Cluster().Health(ctx); err == nil {
		for _, p := range h.Problems {
			if p.Node == r.new {
				why = p.Reason
			}
		}
	}
	return &client.Error{Code: client.CodeNotFound, Message: fmt.Sprintf("%s has not become a member within %v, and nothing was removed: %s", r.new, r.joins, why)}
}

// passes reports whether an error may pass by itself, as while a leader is elected.
func passes(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && (e.Code == client.CodeNotApplied || e.Unknown || e.Status == http.StatusServiceUnavailable)
}

var errInterrupted = errors.New("interrupted before anything was removed; run the command again to go on")

// note prints progress when it has changed.
func (r *replacement) note(step replaceStep) {
	if step.Now != r.said {
		r.said = step.Now
		r.t.Notes.Line("%s: %s", r.path, step.Now)
	}
}

// report prints the result.
func (r *replacement) report(step replaceStep, dry bool) error {
	if r.t.JSON {
		return r.t.PrintJSON(struct {
			Old    string `json:"old"`
			New    string `json:"new"`
			Done   bool   `json:"done"`
			State  string `json:"state"`
			DryRun bool   `json:"dry_run,omitzero"`
			// Refused is why the command would be refused without --force.
			Refused string `json:"refused,omitzero"`
		}{r.old, r.new, step.Done, step.Now, dry, step.Shrinks})
	}
	switch {
	case step.Done:
		return r.t.Out.Line("%s has replaced %s: %s", r.new, r.old, step.Now)
	case step.Shrinks != "":
		return r.t.Out.Line("nothing was done, and nothing would be without --force: %s", step.Shrinks)
	case step.Votes:
		return r.t.Out.Line("nothing was done: %s", step.Now)
	}
	return r.t.Out.Line("nothing was done: %s. The command would wait until it votes, and then remove %s for good", step.Now, r.old)
}
