package conformance

// jobs: what can be done with one.
var jobs = []Case{
	{Name: "time-left is of whole seconds", Script: `
		a: put 0 10 10 1 | x => INSERTED {d}
		a: stats-job {d} => yaml state: delayed; time-left: 9
		a: put 0 0 10 1 | x => INSERTED {j}
		a: reserve => RESERVED {j} 1 | x
		a: stats-job {j} => yaml state: reserved; time-left: 9
		a: touch {j} => TOUCHED
		a: stats-job {j} => yaml state: reserved; time-left: 9
		a: pause-tube default 10 => PAUSED
		a: stats-tube default => yaml pause: 10; pause-time-left: 9
		a: pause-tube default 0 => PAUSED`},
	{Name: "ttr is at least one second", Script: `
		a: put 0 0 0 1 | x => INSERTED {j}
		a: stats-job {j} => yaml ttr: 1
		a: put 0 0 4295 1 | x => INSERTED {k}
		a: stats-job {k} => yaml ttr: 4295
		a: put 0 0 21600 1 | x => INSERTED {l}
		a: stats-job {l} => yaml ttr: 21600`},
	{Name: "peek-delayed gives the earliest", Script: `
		a: put 0 99 0 1 | x => INSERTED {late}
		a: put 0 1 0 1 | y => INSERTED {soon}
		a: peek-delayed => FOUND {soon} 1 | y
		a: delete {soon} => DELETED
		a: peek-delayed => FOUND {late} 1 | x
		a: delete {late} => DELETED
		a: peek-delayed => NOT_FOUND
		a: peek-ready => NOT_FOUND
		a: peek-buried => NOT_FOUND`},
	{Name: "only the holder buries, releases and touches", Script: `
		a: put 0 0 100 1 | x => INSERTED {j}
		a: bury {j} 0 => NOT_FOUND
		a: release {j} 0 0 => NOT_FOUND
		a: touch {j} => NOT_FOUND
		b: reserve => RESERVED {j} 1 | x
		a: bury {j} 0 => NOT_FOUND
		a: release {j} 0 0 => NOT_FOUND
		a: touch {j} => NOT_FOUND
		a: delete {j} => NOT_FOUND
		a: reserve-job {j} => NOT_FOUND
		b: reserve-job {j} => NOT_FOUND
		a: peek {j} => FOUND {j} 1 | x
		b: touch {j} => TOUCHED
		b: bury {j} 7 => BURIED
		b: bury {j} 7 => NOT_FOUND
		b: touch {j} => NOT_FOUND
		a: stats-job {j} => yaml state: buried; pri: 7; time-left: 0; reserves: 1; buries: 1
		a: delete {j} => DELETED
		a: delete {j} => NOT_FOUND
		a: stats-job {j} => NOT_FOUND`},
	{Name: "kick", Script: `
		a: put 0 0 9 1 | x => INSERTED {j}
		a: put 0 50 9 1 | y => INSERTED {d}
		a: reserve => RESERVED {j} 1 | x
		a: bury {j} 0 => BURIED
		a: peek-buried => FOUND {j} 1 | x
		a: kick 100 => KICKED 1
		a: peek-ready => FOUND {j} 1 | x
		a: stats-job {j} => yaml state: ready; kicks: 1
		a: kick 100 => KICKED 1
		a: kick 100 => KICKED 0
		a: stats-job {d} => yaml state: ready; kicks: 1; delay: 50`},
	{Name: "kick takes the oldest buried and the earliest delayed", Script: `
		a: put 0 0 9 1 | x => INSERTED {i}
		a: put 0 0 9 1 | y => INSERTED {j}
		a: reserve-job {j} => RESERVED {j} 1 | y
		a: bury {j} 9 => BURIED
		a: reserve-job {i} => RESERVED {i} 1 | x
		a: bury {i} 0 => BURIED
		a: peek-buried => FOUND {j} 1 | y
		a: kick 1 => KICKED 1
		a: peek-buried => FOUND {i} 1 | x
		a: use elsewhere => USING elsewhere
		a: kick 1 => KICKED 0`},
	{Name: "kick-job", Script: `
		a: put 0 0 9 1 | x => INSERTED {j}
		a: kick-job {j} => NOT_FOUND
		a: put 0 50 9 1 | y => INSERTED {d}
		b: use elsewhere => USING elsewhere
		b: kick-job {d} => KICKED
		b: kick-job {d} => NOT_FOUND
		a: reserve => RESERVED {j} 1 | x
		a: kick-job {j} => NOT_FOUND
		a: bury {j} 0 => BURIED
		a: kick-job {j} => KICKED
		a: kick-job 999999999 => NOT_FOUND`},
	{Name: "delete in every state", Script: `
		a: put 0 0 100 1 | x => INSERTED {r}
		a: put 0 100 100 1 | x => INSERTED {d}
		b: delete {r} => DELETED
		b: delete {d} => DELETED
		b: delete {d} => NOT_FOUND`},
	{Name: "priority over tubes", Script: `
		a: use abc => USING abc
		a: put 999999 0 9 1 | x => INSERTED {low}
		a: use def => USING def
		a: put 99 0 9 1 | y => INSERTED {high}
		a: watch abc => WATCHING 2
		a: watch def => WATCHING 3
		a: reserve => RESERVED {high} 1 | y
		a: reserve => RESERVED {low} 1 | x`},
	{Name: "release sets priority and delay", Script: `
		a: put 5 0 100 1 | x => INSERTED {j}
		a: put 3 0 100 1 | y => INSERTED {k}
		a: reserve-job {j} => RESERVED {j} 1 | x
		a: release {j} 1 0 => RELEASED
		a: reserve => RESERVED {j} 1 | x
		a: release {j} 2 50 => RELEASED
		a: stats-job {j} => yaml state: delayed; pri: 2; delay: 50; time-left: 49|50; releases: 2; reserves: 2; timeouts: 0
		a: release {j} 2 50 => NOT_FOUND
		a: reserve => RESERVED {k} 1 | y
		a>> release {k} 4 0\r\ndelete {k}\r\n
		a< RELEASED
		a< DELETED`},
	{Name: "reserve-job", Script: `
		a: use off => USING off
		a: put 0 100 100 1 | x => INSERTED {d}
		a: reserve-job 999999999 => NOT_FOUND
		a: reserve-job {d} => RESERVED {d} 1 | x
		a: release {d} 0 0 => RELEASED
		a: stats-job {d} => yaml state: ready
		a: reserve-job {d} => RESERVED {d} 1 | x
		a: bury {d} 0 => BURIED
		a: reserve-job {d} => RESERVED {d} 1 | x
		a: stats-job {d} => yaml state: reserved; reserves: 3; buries: 1; kicks: 0; time-left: 99|100
		a: delete {d} => DELETED`},
	{Name: "buried jobs by reserve-job in any order", Script: `
		a: put 0 0 100 1 | x => INSERTED {i}
		a: put 0 0 100 1 | y => INSERTED {j}
		a>> reserve\r\nbury {i} 0\r\nreserve\r\nbury {j} 0\r\n
		a< RESERVED {i} 1
		a< x
		a< BURIED
		a< RESERVED {j} 1
		a< y
		a< BURIED
		a: reserve-job {j} => RESERVED {j} 1 | y
		a: reserve-job {i} => RESERVED {i} 1 | x`},
	{Name: "order within a priority", Script: `
		a: put 0 1 9 1 | x => INSERTED {late}
		a: put 0 0 9 1 | y => INSERTED {now}
		* 1500ms
		a: reserve => RESERVED {late} 1 | x`, Tarry: `
		a: put 0 1 9 1 | x => INSERTED {late}
		a: put 0 0 9 1 | y => INSERTED {now}
		* 1500ms
		a: reserve => RESERVED {now} 1 | y`},
}
