package conformance

// tubes: use, watch, lists and pauses.
var tubes = []Case{
	{Name: "tubes", Script: `
		a: list-tube-used => USING default
		a: list-tubes-watched => list default
		a: watch w => WATCHING 2
		a: watch w => WATCHING 2
		a: use u => USING u
		a: list-tubes => list default w u
		a: list-tube-used => USING u
		a: list-tubes-watched => list default w
		a: ignore never => WATCHING 2
		a: ignore default => WATCHING 1
		a: ignore w => NOT_IGNORED
		a: list-tubes-watched => list w`},
	{Name: "a tube lives while it is named or has jobs", Script: `
		a: use brief => USING brief
		b: list-tubes => list default brief
		a: put 0 0 9 1 | x => INSERTED {j}
		a: use default => USING default
		b: list-tubes => list default brief
		b: delete {j} => DELETED
		b: list-tubes => list default
		b: stats-tube brief => NOT_FOUND
		b: pause-tube brief 1 => NOT_FOUND`},
	{Name: "a pause ends by itself", Script: `
		a: put 0 0 9 1 | x => INSERTED {j}
		a: pause-tube default 1 => PAUSED
		a> reserve
		a~ 700ms
		a< RESERVED {j} 1
		a< x`},
	{Name: "a pause is ended", Script: `
		a: put 0 0 9 1 | x => INSERTED {j}
		a: pause-tube default 86400 => PAUSED
		a: stats-tube default => yaml pause: 86400; pause-time-left: 86399|86400; current-jobs-ready: 1
		b> reserve
		b~ 100ms
		a: peek-ready => FOUND {j} 1 | x
		a: pause-tube default 0 => PAUSED
		b< RESERVED {j} 1
		b< x`},
	{Name: "a pause does not hold reserve-job, put or kick", Script: `
		a: put 0 0 9 1 | x => INSERTED {j}
		a: pause-tube default 100 => PAUSED
		a: reserve-with-timeout 0 => TIMED_OUT
		a: reserve-job {j} => RESERVED {j} 1 | x
		a: put 0 50 9 1 | y => INSERTED {k}
		a: kick 1 => KICKED 1
		a: reserve-with-timeout 0 => TIMED_OUT
		a: watch other => WATCHING 2
		a: use other => USING other
		a: put 9 0 9 1 | z => INSERTED {l}
		a: reserve => RESERVED {l} 1 | z`},
	{Name: "a pause of an empty tube", Script: `
		a: use hushed => USING hushed
		a: watch hushed => WATCHING 2
		a: pause-tube hushed 100 => PAUSED
		a: put 0 0 9 1 | x => INSERTED {j}
		a: reserve-with-timeout 0 => TIMED_OUT
		a: pause-tube hushed 0 => PAUSED
		a: reserve-with-timeout 1 => RESERVED {j} 1 | x`},
	{Name: "longest command", Script: `
		a: use {p*200} => USING {p*200}
		a: pause-tube {p*200} 4294967295 => PAUSED
		a: pause-tube   {p*200}   0 => PAUSED`},
	{Name: "a tube that nobody knows", Script: `
		a: pause-tube nowhere 1 => NOT_FOUND
		a: stats-tube nowhere => NOT_FOUND`},
}

// statistics: the YAML documents.
var statistics = []Case{
	{Name: "stats-tube", Script: `
		a: use counted => USING counted
		a: put 0 0 9 1 | x => INSERTED {j}
		a: put 2000 0 9 1 | x => INSERTED {k}
		a: stats-tube counted => yaml name: counted; current-jobs-urgent: 1; current-jobs-ready: 2; current-jobs-reserved: 0; current-jobs-delayed: 0; current-jobs-buried: 0; total-jobs: 2; current-using: 1; current-watching: 0; current-waiting: 0; cmd-delete: 0; cmd-pause-tube: 0; pause: 0; pause-time-left: 0
		b: watch counted => WATCHING 2
		b: reserve => RESERVED {j} 1 | x
		b: delete {j} => DELETED
		a: delete {k} => DELETED
		a: delete {k} => NOT_FOUND
		b> reserve
		b~ 100ms
		a: stats-tube counted => yaml name: counted; current-jobs-urgent: 0; current-jobs-ready: 0; total-jobs: 2; current-using: 1; current-watching: 1; current-waiting: 1; cmd-delete: 2`},
	{Name: "stats-job", Script: `
		a: use described => USING described
		a: put 17 0 120 1 | x => INSERTED {j}
		a: stats-job {j} => yaml id: {j}; tube: described; state: ready; pri: 17; age: 0; delay: 0; ttr: 120; time-left: 0; file: 0; reserves: 0; timeouts: 0; releases: 0; buries: 0; kicks: 0
		a: put 17 60 120 1 | x => INSERTED {d}
		a: stats-job {d} => yaml id: {d}; state: delayed; delay: 60; time-left: 59|60
		a: stats-job 999999999 => NOT_FOUND`},
	{Name: "stats", Script: `
		a: put 0 0 9 1 | x => INSERTED {j}
		a: put 0 50 9 1 | x => INSERTED {k}
		a: stats => yaml current-jobs-urgent: 1; current-jobs-ready: 1; current-jobs-reserved: 0; current-jobs-delayed: 1; current-jobs-buried: 0; cmd-put; cmd-peek; cmd-peek-ready; cmd-peek-delayed; cmd-peek-buried; cmd-reserve; cmd-reserve-with-timeout; cmd-delete; cmd-release; cmd-use; cmd-watch; cmd-ignore; cmd-bury; cmd-kick; cmd-touch; cmd-stats; cmd-stats-job; cmd-stats-tube; cmd-list-tubes; cmd-list-tube-used; cmd-list-tubes-watched; cmd-pause-tube; job-timeouts; total-jobs; max-job-size: 65535; current-tubes: 1; current-connections: 1; current-producers: 1; current-workers: 0; current-waiting: 0; total-connections; pid; version; rusage-utime; rusage-stime; uptime; binlog-oldest-index; binlog-current-index; binlog-records-migrated; binlog-records-written; binlog-max-size; draining: false; id; hostname; os; platform`},
}
