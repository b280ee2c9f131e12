package gossip

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"
)

// fill makes the pool take so many nodes that do not exist for alive. It never finds that
// they are dead.
func (p *Pool) fill(nodes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range nodes {
		m := named(fmt.Sprint("ghost", i), 1)
		p.live[m.ServerID+"@1"] = Member{Meta: m}
	}
}

func ghost(t *testing.T, i int, addr net.IP, port int) *memberlist.Node {
	m := named(fmt.Sprint("late", i), 1)
	meta, err := m.Encode()
	require.NoError(t, err)
	return &memberlist.Node{Name: m.ServerID + "@1", Addr: addr, Port: uint16(port), Meta: meta}
}

func TestANodeThatAnswersIsLetInAmongNodesThatDoNotExist(t *testing.T) {
	a, b := open(t, named("a", 1)), open(t, named("b", 1))
	a.fill(maxLive)
	b.fill(maxLive)
	_, err := b.list.Join([]string{"127.0.0.1:" + portOf(a.addr())})
	require.NoError(t, err)
	eventually(t, func() bool {
		_, ofA := b.Find("a.1")
		_, ofB := a.Find("b.1")
		return ofA && ofB
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Len(t, a.live, maxLive+2)
}

func TestNodesThatDoNotAnswerStayOutOfAFullPool(t *testing.T) {
	a := open(t, named("a", 1))
	a.fill(maxLive)
	silent, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer silent.Close()
	at := silent.LocalAddr().(*net.UDPAddr)
	d := (*delegate)(a)
	for i := range 3 * maxChecks {
		require.ErrorContains(t, d.NotifyAlive(ghost(t, i, at.IP, at.Port)), "has not answered")
		a.mu.Lock()
		require.LessOrEqual(t, len(a.newcomers.waiting), maxChecks)
		a.mu.Unlock()
	}
	packet := make([]byte, 1<<10)
	_, _, err = silent.ReadFromUDP(packet)
	require.NoError(t, err, "they are pinged")
	eventually(t, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.newcomers.waiting) == 0 })
	require.ErrorContains(t, d.NotifyAlive(ghost(t, 0, at.IP, at.Port)), "has not answered")
	// A node of another name answers there: this one.
	require.Error(t, d.NotifyAlive(ghost(t, 1, net.IPv4(127, 0, 0, 1), int(a.list.LocalNode().Port))))
	eventually(t, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.newcomers.waiting) == 0 })
	require.Len(t, a.Members(), maxLive+1)
}

func TestThePoolIsBoundedForNodesThatAnswer(t *testing.T) {
	a, b := open(t, named("a", 1)), open(t, named("b", 1))
	a.fill(2 * maxLive)
	_, err := a.Join(context.Background(), []string{b.addr()})
	_ = err // ::1, the other address of localhost, may not answer
	_, found := a.Find("b.1")
	require.False(t, found)
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Empty(t, a.newcomers.waiting)
}
