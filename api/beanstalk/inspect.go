package beanstalk

import (
	"slices"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// inspect executes the commands that only read, and pause-tube.
func (c *conn) inspect(cmd command) {
	switch cmd.verb {
	case peekJob:
		c.peekJob(cmd.id)
	case peekReady:
		c.peek(jobpb.State_STATE_READY)
	case peekDelayed:
		c.peek(jobpb.State_STATE_DELAYED)
	case peekBuried:
		c.peek(jobpb.State_STATE_DEAD)
	case statsJob:
		c.statsJob(cmd.id)
	case statsTube:
		c.statsTube(cmd.tube)
	case stats:
		c.inTurn(c.stats)
	case listTubes:
		c.inTurn(c.listTubes)
	case pauseTube:
		c.pauseTube(cmd.tube, cmd.seconds)
	}
}

func (c *conn) peekJob(id uint64) {
	if id == 0 {
		c.say(notFound)
		return
	}
	c.found(c.job(id))
}

// job returns a job by its number. A retained job, which was finished or deleted,
// is not found.
func (c *conn) job(id uint64) (*jobpb.Job, error) {
	j, err := c.server.reads.JobBySeq(c.ctx, id, false)
	if err == nil && j.EndedMs != 0 {
		return nil, job.Errorf(job.CodeNotFound, "job %d was finished or deleted", id)
	}
	return j, err
}

func (c *conn) peek(state jobpb.State) {
	j, err := c.server.reads.Peek(c.ctx, c.used, state, false)
	c.found(j, err)
}

func (c *conn) found(j *jobpb.Job, err error) {
	if err != nil {
		c.fail(err)
		return
	}
	c.give("FOUND", j.Seq, j.Body)
}

// pageTopics is how many topics are read at once.
const pageTopics = 1000

// topics calls f with every topic of the cluster whose name is valid for a tube. It
// returns false when it has replied with a failure.
func (c *conn) topics(f func(*jobpb.Topic)) bool {
	for after := ""; ; {
		page, err := c.server.reads.Topics(c.ctx, after, pageTopics, false)
		if err != nil {
			c.fail(err)
			return false
		}
		for _, t := range page {
			if validTube(t.Name) {
				f(t)
			}
		}
		if len(page) < pageTopics {
			return true
		}
		after = page[len(page)-1].Name
	}
}

// alive reports whether a topic has jobs, which makes it a tube even if no
// connection names it.
func alive(t *jobpb.Topic) bool { return t.Ready+t.Delayed+t.Reserved+t.Dead > 0 }

// maxListings bounds the commands at a time that list the tubes of the node and of the cluster.
const maxListings = 16

// inTurn runs f while at most maxListings others run, and ends without it if the connection ends.
func (c *conn) inTurn(f func()) {
	select {
	case c.server.listings <- struct{}{}:
		defer func() { <-c.server.listings }()
		f()
	case <-c.ctx.Done():
	}
}

// namedTubes are those that connections of this node name, as far as the client may read them.
func (c *conn) namedTubes() []string {
	return slices.DeleteFunc(c.server.tubes.names(), func(tube string) bool { return !c.allows(auth.Read, tube) })
}

// listTubes lists the tubes that connections of this node name, in the order in which
// they were first named, and then those that have jobs, by name.
func (c *conn) listTubes() {
	names := c.namedTubes()
	named := len(names)
	known := make(map[string]bool, named)
	for _, name := range names {
		known[name] = true
	}
	ok := c.topics(func(t *jobpb.Topic) {
		if alive(t) && !known[t.Name] {
			names = append(names, t.Name)
		}
	})
	if ok {
		slices.Sort(names[named:])
		c.list(names)
	}
}
