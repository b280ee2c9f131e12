package raftwire

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// AppendEntriesPipeline implements raft.Transport. The pipeline has a connection of its own.
// One request may be sent while another one waits for its reply: with more, batches would
// only become smaller.
func (t *Transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	c, err := t.open(target)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		c.Close()
		return nil, err
	}
	p := &pipeline{c: c, id: id, sent: make(chan *appended, 1), replied: make(chan raft.AppendFuture, 1), stop: make(chan struct{})}
	p.running.Go(p.receive)
	return p, nil
}

// repeatAfter is how long appends that tell the follower nothing new are left out. Raft sends one
// seven times a second to each follower of a leader without traffic. One a second finds a
// connection on which nothing arrives any more.
const repeatAfter = time.Second

// pipeline ends at the first reply that is no success of the request's term, because Raft
// reads none after it. Raft may be sending then; that must not wait for a reader.
type pipeline struct {
	c       *clientConn
	id      raft.ServerID
	last    told
	sent    chan *appended         // has room for one, which is outstanding
	replied chan raft.AppendFuture // has room for one, so that the last does not wait for Raft
	stop    chan struct{}          // closed by end
	once    sync.Once
	running sync.WaitGroup
}

// AppendEntries implements raft.AppendPipeline. Raft calls it from one goroutine, and does not use
// the future that it returns.
func (p *pipeline) AppendEntries(request *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	select {
	case <-p.stop:
		return nil, raft.ErrPipelineShutdown
	default:
	}
	f := &appended{start: time.Now(), request: request, reply: reply, done: make(chan struct{}), stop: p.stop}
	if p.last.has(f) {
		close(f.done)
		return f, nil
	}
	if err := p.c.SetDeadline(f.start.Add(p.c.t.cfg.Timeout)); err != nil {
		return nil, err
	}
	if err := p.c.send(kindAppend, request); err != nil {
		return nil, err
	}
	p.last = told{f.start, request.Term, request.PrevLogEntry + uint64(len(request.Entries)), request.LeaderCommitIndex}
	select {
	case p.sent <- f:
		return f, nil
	case <-p.stop:
		return nil, raft.ErrPipelineShutdown
	}
}

// told is what the last request of a pipeline told the follower: an end of the log and how far it
// is committed, in a term.
type told struct {
	at                time.Time
	term, end, commit uint64
}

// has reports whether f tells nothing more, and need not be sent. Raft does not see it answered, so
// it counts neither as contact with the follower nor as a confirmation of the leader: the
// heartbeats are both. A follower that has lost the end of its log since has a new connection.
func (t told) has(f *appended) bool {
	r := f.request
	return len(r.Entries) == 0 && r.Term == t.term && r.PrevLogEntry == t.end && r.LeaderCommitIndex == t.commit &&
		f.start.Sub(t.at) < repeatAfter
}

// receive reads the replies in the order of the requests, until the pipeline ends. It reads also
// while nothing is outstanding, so it sees at once that the connection has ended.
//
// A request that failed is not delivered. Raft does not ask it for its error, and would
// take it for contact with the follower. It learns of the end from its next send.
func (p *pipeline) receive() {
	defer p.end()
	for {
		if _, err := p.c.r.Peek(1); err != nil {
			return
		}
		select {
		case f := <-p.sent:
			if f.err = p.reply(f); f.err != nil {
				p.end() // first, so that who has seen the error cannot send
				close(f.done)
				return
			}
			last := !f.reply.Success || f.reply.Term > f.request.Term // Raft owns f once it is delivered
			close(f.done)
			select {
			case p.replied <- f:
			case <-p.stop:
				return
			}
			if last {
				return
			}
		case <-p.stop:
			return
		}
	}
}

func (p *pipeline) reply(f *appended) error {
	cfg := &p.c.t.cfg
	if err := p.c.receive(f.reply); err != nil {
		return err
	}
	if cfg.Appended != nil {
		cfg.Appended(p.id, f.request, f.reply)
	}
	return p.c.SetReadDeadline(time.Now().Add(cfg.Timeout)) // the follower may have been busy with this one
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.replied }

// Close implements raft.AppendPipeline. It waits for the pipeline's goroutine.
func (p *pipeline) Close() error {
	p.end()
	p.running.Wait()
	return nil
}

// end ends the sends and receive. It may be called more than once, from any goroutine.
func (p *pipeline) end() {
	p.once.Do(func() {
		close(p.stop)
		p.c.Close()
	})
}

// appended is a request of a pipeline. The reply of one that failed, or that was left out, is the
// zero value, which is no success.
type appended struct {
	start   time.Time
	request *raft.AppendEntriesRequest
	reply   *raft.AppendEntriesResponse
	err     error
	done    chan struct{}   // closed after err and reply are set
	stop    <-chan struct{} // of the pipeline
}

func (f *appended) Start() time.Time                      { return f.start }
func (f *appended) Request() *raft.AppendEntriesRequest   { return f.request }
func (f *appended) Response() *raft.AppendEntriesResponse { return f.reply }

func (f *appended) Error() error {
	select {
	case <-f.done:
		return f.err
	case <-f.stop:
	}
	select {
	case <-f.done:
		return f.err
	default:
		return raft.ErrPipelineShutdown
	}
}
