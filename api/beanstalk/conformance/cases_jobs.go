package conformance

// jobs: what can be done with one.
var jobs = []Case{
	{Name: "time-left is of whole seconds", Script: `
		a> put 0 10 10 1
		a> x
		a< INSERTED {d}
		a> stats-job {d}
		a<yaml state: delayed; time-left: 9
		a> put 0 0 10 1
		a> x
		a< INSERTED {j}
		a> reserve
		a< RESERVED {j} 1
		a< x
		a> stats-job {j}
		a<yaml state: reserved; time-left: 9
		a> touch {j}
		a< TOUCHED
		a> stats-job {j}
		a<yaml state: reserved; time-left: 9
		a> pause-tube default 10
		a< PAUSED
		a> stats-tube default
		a<yaml pause: 10; pause-time-left: 9
		a> pause-tube default 0
		a< PAUSED`},
	{Name: "ttr is at least one second", Script: `
		a> put 0 0 0 1
		a> x
		a< INSERTED {j}
		a> stats-job {j}
		a<yaml ttr: 1
		a> put 0 0 4295 1
		a> x
		a< INSERTED {k}
		a> stats-job {k}
		a<yaml ttr: 4295
		a> put 0 0 21600 1
		a> x
		a< INSERTED {l}
		a> stats-job {l}
		a<yaml ttr: 21600`},
	{Name: "peek-delayed gives the earliest", Script: `
		a> put 0 99 0 1
		a> x
		a< INSERTED {late}
		a> put 0 1 0 1
		a> y
		a< INSERTED {soon}
		a> peek-delayed
		a< FOUND {soon} 1
		a< y
		a> delete {soon}
		a< DELETED
		a> peek-delayed
		a< FOUND {late} 1
		a< x
		a> delete {late}
		a< DELETED
		a> peek-delayed
		a< NOT_FOUND
		a> peek-ready
		a< NOT_FOUND
		a> peek-buried
		a< NOT_FOUND`},
	{Name: "only the holder buries, releases and touches", Script: `
		a> put 0 0 100 1
		a> x
		a< INSERTED {j}
		a> bury {j} 0
		a< NOT_FOUND
		a> release {j} 0 0
		a< NOT_FOUND
		a> touch {j}
		a< NOT_FOUND
		b> reserve
		b< RESERVED {j} 1
		b< x
		a> bury {j} 0
		a< NOT_FOUND
		a> release {j} 0 0
		a< NOT_FOUND
		a> touch {j}
		a< NOT_FOUND
		a> delete {j}
		a< NOT_FOUND
		a> reserve-job {j}
		a< NOT_FOUND
		b> reserve-job {j}
		b< NOT_FOUND
		a> peek {j}
		a< FOUND {j} 1
		a< x
		b> touch {j}
		b< TOUCHED
		b> bury {j} 7
		b< BURIED
		b> bury {j} 7
		b< NOT_FOUND
		b> touch {j}
		b< NOT_FOUND
		a> stats-job {j}
		a<yaml state: buried; pri: 7; time-left: 0; reserves: 1; buries: 1
		a> delete {j}
		a< DELETED
		a> delete {j}
		a< NOT_FOUND
		a> stats-job {j}
		a< NOT_FOUND`},
	{Name: "kick", Script: `
		a> put 0 0 9 1
		a> x
		a< INSERTED {j}
		a> put 0 50 9 1
		a> y
		a< INSERTED {d}
		a> reserve
		a< RESERVED {j} 1
		a< x
		a> bury {j} 0
		a< BURIED
		a> peek-buried
		a< FOUND {j} 1
		a< x
		a> kick 100
		a< KICKED 1
		a> peek-ready
		a< FOUND {j} 1
		a< x
		a> stats-job {j}
		a<yaml state: ready; kicks: 1
		a> kick 100
		a< KICKED 1
		a> kick 100
		a< KICKED 0
		a> stats-job {d}
		a<yaml state: ready; kicks: 1; delay: 50`},
	{Name: "kick takes the oldest buried and the earliest delayed", Script: `
		a> put 0 0 9 1
		a> x
		a< INSERTED {i}
		a> put 0 0 9 1
		a> y
		a< INSERTED {j}
		a> reserve-job {j}
		a< RESERVED {j} 1
		a< y
		a> bury {j} 9
		a< BURIED
		a> reserve-job {i}
		a< RESERVED {i} 1
		a< x
		a> bury {i} 0
		a< BURIED
		a> peek-buried
		a< FOUND {j} 1
		a< y
		a> kick 1
		a< KICKED 1
		a> peek-buried
		a< FOUND {i} 1
		a< x
		a> use elsewhere
		a< USING elsewhere
		a> kick 1
		a< KICKED 0`},
	{Name: "kick-job", Script: `
		a> put 0 0 9 1
		a> x
		a< INSERTED {j}
		a> kick-job {j}
		a< NOT_FOUND
		a> put 0 50 9 1
		a> y
		a< INSERTED {d}
		b> use elsewhere
		b< USING elsewhere
		b> kick-job {d}
		b< KICKED
		b> kick-job {d}
		b< NOT_FOUND
		a> reserve
		a< RESERVED {j} 1
		a< x
		a> kick-job {j}
		a< NOT_FOUND
		a> bury {j} 0
		a< BURIED
		a> kick-job {j}
		a< KICKED
		a> kick-job 999999999
		a< NOT_FOUND`},
	{Name: "delete in every state", Script: `
		a> put 0 0 100 1
		a> x
		a< INSERTED {r}
		a> put 0 100 100 1
		a> x
		a< INSERTED {d}
		b> delete {r}
		b< DELETED
		b> delete {d}
		b< DELETED
		b> delete {d}
		b< NOT_FOUND`},
	{Name: "priority over tubes", Script: `
		a> use abc
		a< USING abc
		a> put 999999 0 9 1
		a> x
		a< INSERTED {low}
		a> use def
		a< USING def
		a> put 99 0 9 1
		a> y
		a< INSERTED {high}
		a> watch abc
		a< WATCHING 2
		a> watch def
		a< WATCHING 3
		a> reserve
		a< RESERVED {high} 1
		a< y
		a> reserve
		a< RESERVED {low} 1
		a< x`},
	{Name: "release sets priority and delay", Script: `
		a> put 5 0 100 1
		a> x
		a< INSERTED {j}
		a> put 3 0 100 1
		a> y
		a< INSERTED {k}
		a> reserve-job {j}
		a< RESERVED {j} 1
		a< x
		a> release {j} 1 0
		a< RELEASED
		a> reserve
		a< RESERVED {j} 1
		a< x
		a> release {j} 2 50
		a< RELEASED
		a> stats-job {j}
		a<yaml state: delayed; pri: 2; delay: 50; time-left: 49|50; releases: 2; reserves: 2; timeouts: 0
		a> release {j} 2 50
		a< NOT_FOUND
		a> reserve
		a< RESERVED {k} 1
		a< y
		a>> release {k} 4 0\r\ndelete {k}\r\n
		a< RELEASED
		a< DELETED`},
	{Name: "reserve-job", Script: `
		a> use off
		a< USING off
		a> put 0 100 100 1
		a> x
		a< INSERTED {d}
		a> reserve-job 999999999
		a< NOT_FOUND
		a> reserve-job {d}
		a< RESERVED {d} 1
		a< x
		a> release {d} 0 0
		a< RELEASED
		a> stats-job {d}
		a<yaml state: ready
		a> reserve-job {d}
		a< RESERVED {d} 1
		a< x
		a> bury {d} 0
		a< BURIED
		a> reserve-job {d}
		a< RESERVED {d} 1
		a< x
		a> stats-job {d}
		a<yaml state: reserved; reserves: 3; buries: 1; kicks: 0; time-left: 99|100
		a> delete {d}
		a< DELETED`},
	{Name: "buried jobs by reserve-job in any order", Script: `
		a> put 0 0 100 1
		a> x
		a< INSERTED {i}
		a> put 0 0 100 1
		a> y
		a< INSERTED {j}
		a>> reserve\r\nbury {i} 0\r\nreserve\r\nbury {j} 0\r\n
		a< RESERVED {i} 1
		a< x
		a< BURIED
		a< RESERVED {j} 1
		a< y
		a< BURIED
		a> reserve-job {j}
		a< RESERVED {j} 1
		a< y
		a> reserve-job {i}
		a< RESERVED {i} 1
		a< x`},
	{Name: "order within a priority", Script: `
		a> put 0 1 9 1
		a> x
		a< INSERTED {late}
		a> put 0 0 9 1
		a> y
		a< INSERTED {now}
		* 1500ms
		a> reserve
		a< RESERVED {late} 1
		a< x`, Tarry: `
		a> put 0 1 9 1
		a> x
		a< INSERTED {late}
		a> put 0 0 9 1
		a> y
		a< INSERTED {now}
		* 1500ms
		a> reserve
		a< RESERVED {now} 1
		a< y`},
}
