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
	p := &pipeline{c: c, id: id, sent: make(chan *appended), replied: make(chan raft.AppendFuture, 1), stop: make(chan struct{})}
	p.running.Go(p.receive)
	return p, nil
}

// pipeline ends at the first reply that is no success of the request's term, because Raft
// reads none after it. Raft may be sending then; that must not wait for a reader.
type pipeline struct {
	c       *clientConn
	id      raft.ServerID
	sent    chan *appended
	replied chan raft.AppendFuture // has room for one, so that the last does not wait for Raft
	stop    chan struct{}          // closed by end
	once    sync.Once
	running sync.WaitGroup
}

// AppendEntries implements raft.AppendPipeline. Raft calls it from one goroutine.
func (p *pipeline) AppendEntries(request *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	select {
	case <-p.stop:
		return nil, raft.ErrPipelineShutdown
	default:
	}
	f := &appended{start: time.Now(), request: request, reply: reply, done: make(chan struct{})}
	if err := p.c.SetWriteDeadline(f.start.Add(p.c.t.cfg.Timeout)); err != nil {
		return nil, err
	}
	if err := p.c.send(kindAppend, request); err != nil {
		return nil, err
	}
	select {
	case p.sent <- f:
		return f, nil
	case <-p.stop:
		return nil, raft.ErrPipelineShutdown
	}
}

// receive reads the replies in the order of the requests, until the pipeline ends.
//
// A request that failed is not delivered. Raft does not ask it for its error, and would
// take it for contact with the follower. It learns of the end from its next send.
func (p *pipeline) receive() {
	defer p.end()
	for {
		select {
		case f := <-p.sent:
			f.err = p.reply(f)
			last := f.err != nil || !f.reply.Success || f.reply.Term > f.request.Term // Raft owns f once it is delivered
			close(f.done)
			if f.err != nil {
				return
			}
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
	if err := p.c.SetReadDeadline(time.Now().Add(cfg.Timeout)); err != nil {
		return err
	}
	if err := p.c.receive(f.reply); err != nil {
		return err
	}
	if cfg.Appended != nil {
		cfg.Appended(p.id, f.request, f.reply)
	}
	return nil
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

// appended is a request of a pipeline. The reply of one that failed is the zero value,
// which is no success.
type appended struct {
	start   time.Time
	request *raft.AppendEntriesRequest
	reply   *raft.AppendEntriesResponse
	err     error
	done    chan struct{} // closed after err and reply are set
}

func (f *appended) Start() time.Time                      { return f.start }
func (f *appended) Request() *raft.AppendEntriesRequest   { return f.request }
func (f *appended) Response() *raft.AppendEntriesResponse { return f.reply }

func (f *appended) Error() error {
	<-f.done
	return f.err
}
