package dispatch

// A dispatcher keeps its orders in heaps whose elements know their index: with a hundred
// thousand waiters and a million topics, nothing may iterate over them while the state
// machine waits for the lock.

// absent is the index of an element that is in no heap.
const absent = -1

// queue holds the places of the waiters of one topic, longest waiting first. It
// implements heap.Interface.
type queue []*place

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].waiter.number < q[j].waiter.number }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(x any) {
	p := x.(*place)
	p.index = len(*q)
	*q = append(*q, p)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	p.index = absent
	return p
}

// dueSupplies holds the supplies of one source, earliest instant first for which nothing is claimed
// ahead. It implements heap.Interface.
type dueSupplies []*supply

func (d dueSupplies) Len() int           { return len(d) }
func (d dueSupplies) Less(i, j int) bool { return d[i].unclaimed < d[j].unclaimed }
func (d dueSupplies) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].dueIndex, d[j].dueIndex = i, j
}

func (d *dueSupplies) Push(x any) {
	s := x.(*supply)
	s.dueIndex = len(*d)
	*d = append(*d, s)
}

func (d *dueSupplies) Pop() any {
	last := len(*d) - 1
	s := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	s.dueIndex = absent
	return s
}
