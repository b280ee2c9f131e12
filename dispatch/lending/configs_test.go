package lending

// Groups and nodes count from 0. "ab" waits for both topics. Those that are short are explored by each run of the tests.
var configs = []config{
	{name: "one", short: true, nodes: 2, groups: 1, waiters: 1, jobs: 1, max: ones, topics: just("a"), leader: [maxGroups]int{1, 1}, losses: 1, moves: 1, deletes: 1, deadlines: 1, hangUps: 1},
	{name: "two", nodes: 2, groups: 2, waiters: 2, jobs: 2, home: [maxWaiters]int{0, 1}, max: ones, topics: just("a"), jobGroup: [maxJobs]int{0, 1}, leader: [maxGroups]int{0, 1}, losses: 1, moves: 1, deletes: 1, deadlines: 1, hangUps: 1},
	{name: "onehome", nodes: 2, groups: 2, waiters: 2, jobs: 3, max: [maxWaiters]int{1, 2}, topics: just("a"), jobGroup: [maxJobs]int{0, 1, 1}, leader: [maxGroups]int{0, 1}, losses: 1, deletes: 1, deadlines: 1},
	{name: "topics", nodes: 2, groups: 2, waiters: 2, jobs: 2, max: ones, topics: [maxWaiters]string{"ab", "b"}, jobGroup: [maxJobs]int{0, 1}, jobTopic: [maxJobs]int{0, 1}, leader: [maxGroups]int{0, 1}, losses: 1, moves: 1, deletes: 1},
	{name: "three", nodes: 3, groups: 2, waiters: 2, jobs: 2, home: [maxWaiters]int{0, 2}, max: ones, topics: just("a"), jobGroup: [maxJobs]int{0, 1}, leader: [maxGroups]int{1, 2}, losses: 1},
	{name: "three-leave", nodes: 3, groups: 2, waiters: 2, jobs: 2, max: ones, topics: just("a"), jobGroup: [maxJobs]int{0, 1}, leader: [maxGroups]int{1, 2}, deletes: 1, deadlines: 1, hangUps: 1},
	{name: "three-move", nodes: 3, groups: 2, waiters: 1, jobs: 2, max: ones, topics: just("a"), jobGroup: [maxJobs]int{0, 1}, leader: [maxGroups]int{1, 2}, losses: 1, moves: 1, deadlines: 1},
	{name: "three-topics", nodes: 3, groups: 2, waiters: 2, jobs: 2, max: ones, topics: [maxWaiters]string{"ab", "a"}, jobGroup: [maxJobs]int{0, 1}, jobTopic: [maxJobs]int{0, 1}, leader: [maxGroups]int{1, 2}, moves: 1, deletes: 1},
	{name: "herd", nodes: 3, groups: 2, waiters: 3, jobs: 1, home: [maxWaiters]int{0, 0, 1}, max: ones, topics: just("a"), leader: [maxGroups]int{2, 2}, losses: 1, deadlines: 1},
	{name: "crash", nodes: 3, groups: 2, waiters: 2, jobs: 2, home: [maxWaiters]int{0, 1}, max: ones, topics: just("a"), jobGroup: [maxJobs]int{0, 1}, leader: [maxGroups]int{1, 2}, crashes: 1},
	{name: "soon", nodes: 2, groups: 2, waiters: 2, jobs: 2, max: ones, topics: just("a"), jobGroup: [maxJobs]int{0, 1}, leader: [maxGroups]int{0, 1}, soon: true, losses: 1, moves: 1, deletes: 1, deadlines: 1},
	{name: "soon-three", nodes: 3, groups: 2, waiters: 2, jobs: 2, home: [maxWaiters]int{0, 1}, max: ones, topics: [maxWaiters]string{"ab", "a"}, jobGroup: [maxJobs]int{0, 1}, jobTopic: [maxJobs]int{0, 1}, leader: [maxGroups]int{1, 2}, soon: true, moves: 1, deletes: 1},
	{name: "soon-topics", short: true, nodes: 2, groups: 2, waiters: 2, jobs: 2, home: [maxWaiters]int{0, 1}, max: ones, topics: [maxWaiters]string{"ab", "b"}, jobGroup: [maxJobs]int{1, 0}, jobTopic: [maxJobs]int{0, 1}, leader: [maxGroups]int{0, 1}, soon: true},
	{name: "soon-still", short: true, nodes: 2, groups: 2, waiters: 1, jobs: 2, max: ones, topics: just("a"), jobGroup: [maxJobs]int{0, 1}, leader: [maxGroups]int{0, 1}, soon: true},
	{name: "forget", nodes: 2, groups: 2, waiters: 2, jobs: 3, max: ones, topics: just("a"), jobGroup: [maxJobs]int{1, 1, 0}, leader: [maxGroups]int{0, 1}, moves: 1, deletes: 1, deadlines: 1, forgets: 2},
	{name: "herd-still", short: true, nodes: 3, groups: 2, waiters: 3, jobs: 1, home: [maxWaiters]int{0, 0, 1}, max: ones, topics: just("a"), leader: [maxGroups]int{2, 2}, deadlines: 1},
	{name: "topics-still", short: true, nodes: 2, groups: 2, waiters: 2, jobs: 2, max: ones, topics: [maxWaiters]string{"ab", "b"}, jobGroup: [maxJobs]int{0, 1}, jobTopic: [maxJobs]int{0, 1}, leader: [maxGroups]int{0, 1}, moves: 1},
	{name: "three-still", short: true, nodes: 3, groups: 2, waiters: 2, jobs: 2, home: [maxWaiters]int{0, 2}, max: [maxWaiters]int{1, 2}, topics: just("a"), jobGroup: [maxJobs]int{0, 1}, leader: [maxGroups]int{1, 2}},
	{name: "poll", nodes: 3, groups: 2, waiters: 2, jobs: 2, home: [maxWaiters]int{0, 0}, max: ones, topics: [maxWaiters]string{"ab", "a"}, poll: [maxWaiters]bool{true}, jobGroup: [maxJobs]int{0, 1}, jobTopic: [maxJobs]int{0, 1}, leader: [maxGroups]int{1, 2}, losses: 1, hangUps: 1},
	{name: "poll-soon", short: true, nodes: 2, groups: 1, waiters: 2, jobs: 2, max: ones, topics: just("a"), poll: [maxWaiters]bool{true}, leader: [maxGroups]int{1}, soon: true, deletes: 1},
}

var ones = [maxWaiters]int{1, 1, 1}

func just(t string) [maxWaiters]string { return [maxWaiters]string{t, t, t} }
