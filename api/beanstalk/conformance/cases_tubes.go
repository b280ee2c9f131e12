package conformance

// tubes: use, watch, lists and pauses.
var tubes = []Case{
	{Name: "tubes", Script: `
		a> list-tube-used
		a< USING default
		a> list-tubes-watched
		a<list default
		a> watch w
		a< WATCHING 2
		a> watch w
		a< WATCHING 2
		a> use u
		a< USING u
		a> list-tubes
		a<list default w u
		a> list-tube-used
		a< USING u
		a> list-tubes-watched
		a<list default w
		a> ignore never
		a< WATCHING 2
		a> ignore default
		a< WATCHING 1
		a> ignore w
		a< NOT_IGNORED
		a> list-tubes-watched
		a<list w`},
	{Name: "a tube lives while it is named or has jobs", Script: `
		a> use brief
		a< USING brief
		b> list-tubes
		b<list default brief
		a> put 0 0 9 1
		a> x
		a< INSERTED {j}
		a> use default
		a< USING default
		b> list-tubes
		b<list default brief
		b> delete {j}
		b< DELETED
		b> list-tubes
		b<list default
		b> stats-tube brief
		b< NOT_FOUND
		b> pause-tube brief 1
		b< NOT_FOUND`},
	{Name: "a pause ends by itself", Script: `
		a> put 0 0 9 1
		a> x
		a< INSERTED {j}
		a> pause-tube default 1
		a< PAUSED
		a> reserve
		a~ 700ms
		a< RESERVED {j} 1
		a< x`},
	{Name: "a pause is ended", Script: `
		a> put 0 0 9 1
		a> x
		a< INSERTED {j}
		a> pause-tube default 86400
		a< PAUSED
		a> stats-tube default
		a<yaml pause: 86400; pause-time-left: 86399|86400; current-jobs-ready: 1
		b> reserve
		b~ 100ms
		a> peek-ready
		a< FOUND {j} 1
		a< x
		a> pause-tube default 0
		a< PAUSED
		b< RESERVED {j} 1
		b< x`},
	{Name: "a pause does not hold reserve-job, put or kick", Script: `
		a> put 0 0 9 1
		a> x
		a< INSERTED {j}
		a> pause-tube default 100
		a< PAUSED
		a> reserve-with-timeout 0
		a< TIMED_OUT
		a> reserve-job {j}
		a< RESERVED {j} 1
		a< x
		a> put 0 50 9 1
		a> y
		a< INSERTED {k}
		a> kick 1
		a< KICKED 1
		a> reserve-with-timeout 0
		a< TIMED_OUT
		a> watch other
		a< WATCHING 2
		a> use other
		a< USING other
		a> put 9 0 9 1
		a> z
		a< INSERTED {l}
		a> reserve
		a< RESERVED {l} 1
		a< z`},
	{Name: "a pause of an empty tube", Script: `
		a> use hushed
		a< USING hushed
		a> watch hushed
		a< WATCHING 2
		a> pause-tube hushed 100
		a< PAUSED
		a> put 0 0 9 1
		a> x
		a< INSERTED {j}
		a> reserve-with-timeout 0
		a< TIMED_OUT
		a> pause-tube hushed 0
		a< PAUSED
		a> reserve-with-timeout 1
		a< RESERVED {j} 1
		a< x`},
	{Name: "longest command", Script: `
		a> use {p*200}
		a< USING {p*200}
		a> pause-tube {p*200} 4294967295
		a< PAUSED
		a> pause-tube   {p*200}   0
		a< PAUSED`},
	{Name: "a tube that nobody knows", Script: `
		a> pause-tube nowhere 1
		a< NOT_FOUND
		a> stats-tube nowhere
		a< NOT_FOUND`},
}

// statistics: the YAML documents.
var statistics = []Case{
	{Name: "stats-tube", Script: `
		a> use counted
		a< USING counted
		a> put 0 0 9 1
		a> x
		a< INSERTED {j}
		a> put 2000 0 9 1
		a> x
		a< INSERTED {k}
		a> stats-tube counted
		a<yaml name: counted; current-jobs-urgent: 1; current-jobs-ready: 2; current-jobs-reserved: 0; current-jobs-delayed: 0; current-jobs-buried: 0; total-jobs: 2; current-using: 1; current-watching: 0; current-waiting: 0; cmd-delete: 0; cmd-pause-tube: 0; pause: 0; pause-time-left: 0
		b> watch counted
		b< WATCHING 2
		b> reserve
		b< RESERVED {j} 1
		b< x
		b> delete {j}
		b< DELETED
		a> delete {k}
		a< DELETED
		a> delete {k}
		a< NOT_FOUND
		b> reserve
		b~ 100ms
		a> stats-tube counted
		a<yaml name: counted; current-jobs-urgent: 0; current-jobs-ready: 0; total-jobs: 2; current-using: 1; current-watching: 1; current-waiting: 1; cmd-delete: 2`},
	{Name: "stats-job", Script: `
		a> use described
		a< USING described
		a> put 17 0 120 1
		a> x
		a< INSERTED {j}
		a> stats-job {j}
		a<yaml id: {j}; tube: described; state: ready; pri: 17; age: 0; delay: 0; ttr: 120; time-left: 0; file: 0; reserves: 0; timeouts: 0; releases: 0; buries: 0; kicks: 0
		a> put 17 60 120 1
		a> x
		a< INSERTED {d}
		a> stats-job {d}
		a<yaml id: {d}; state: delayed; delay: 60; time-left: 59|60
		a> stats-job 999999999
		a< NOT_FOUND`},
	{Name: "stats", Script: `
		a> put 0 0 9 1
		a> x
		a< INSERTED {j}
		a> put 0 50 9 1
		a> x
		a< INSERTED {k}
		a> stats
		a<yaml current-jobs-urgent: 1; current-jobs-ready: 1; current-jobs-reserved: 0; current-jobs-delayed: 1; current-jobs-buried: 0; cmd-put; cmd-peek; cmd-peek-ready; cmd-peek-delayed; cmd-peek-buried; cmd-reserve; cmd-reserve-with-timeout; cmd-delete; cmd-release; cmd-use; cmd-watch; cmd-ignore; cmd-bury; cmd-kick; cmd-touch; cmd-stats; cmd-stats-job; cmd-stats-tube; cmd-list-tubes; cmd-list-tube-used; cmd-list-tubes-watched; cmd-pause-tube; job-timeouts; total-jobs; max-job-size: 65535; current-tubes: 1; current-connections: 1; current-producers: 1; current-workers: 0; current-waiting: 0; total-connections; pid; version; rusage-utime; rusage-stime; uptime; binlog-oldest-index; binlog-current-index; binlog-records-migrated; binlog-records-written; binlog-max-size; draining: false; id; hostname; os; platform`},
}
