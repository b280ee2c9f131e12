package conformance

// waiting: reserve, time to run, and connections that end.
var waiting = []Case{
	{Name: "a waiting reserve gets the next job", Script: `
		a> reserve
		a~ 100ms
		b: put 0 0 9 1 | x => INSERTED {j}
		a< RESERVED {j} 1
		a< x`},
	{Name: "a waiting reserve gets a delayed job when it is due", Script: `
		b: put 0 1 9 1 | x => INSERTED {j}
		a> reserve
		a~ 700ms
		a< RESERVED {j} 1
		a< x`},
	{Name: "two that wait get one each", Script: `
		a> reserve
		a~ 50ms
		b> reserve
		b~ 50ms
		c: put 0 0 9 1 | x => INSERTED {i}
		c: put 0 0 9 1 | x => INSERTED {j}
		a< RESERVED {first} 1
		a< x
		b< RESERVED {second} 1
		b< x
		a: delete {first} => DELETED
		b: delete {second} => DELETED`, Tarry: `
		# beanstalkd is only roughly fair; here the longest waiting is first.
		a> reserve
		a~ 50ms
		b> reserve
		b~ 50ms
		c: put 0 0 9 1 | x => INSERTED {i}
		c: put 0 0 9 1 | y => INSERTED {j}
		a< RESERVED {i} 1
		a< x
		b< RESERVED {j} 1
		b< y`},
	{Name: "a timed reserve ends", Script: `
		a: watch foo => WATCHING 2
		b: watch foo => WATCHING 2
		b>> reserve-with-timeout 1\r\nuse after\r\n
		b~ 600ms
		a: use foo => USING foo
		b< TIMED_OUT
		b< USING after
		b: reserve-with-timeout 0 => TIMED_OUT`},
	{Name: "a reserve holds back what follows", Script: `
		a>> reserve\r\nuse next\r\n
		a~ 100ms
		b: put 0 0 9 1 | x => INSERTED {j}
		a< RESERVED {j} 1
		a< x
		a< USING next`},
	{Name: "deadline soon at once", Script: `
		a: put 0 0 1 1 | x => INSERTED {j}
		a: reserve => RESERVED {j} 1 | x
		a: reserve-with-timeout 1 => DEADLINE_SOON
		a: reserve-with-timeout 0 => DEADLINE_SOON
		a: reserve => DEADLINE_SOON
		a: stats-job {j} => yaml state: reserved
		a: release {j} 0 0 => RELEASED
		a: stats-job {j} => yaml state: ready`},
	{Name: "deadline soon while waiting", Script: `
		a: put 0 0 2 1 | x => INSERTED {j}
		a: reserve => RESERVED {j} 1 | x
		a> reserve-with-timeout 5
		a~ 500ms
		a< DEADLINE_SOON
		a: touch {j} => TOUCHED
		a: reserve-with-timeout 0 => TIMED_OUT`},
	{Name: "a ready job comes before deadline soon", Script: `
		a: put 0 0 1 1 | x => INSERTED {i}
		a: reserve => RESERVED {i} 1 | x
		a: put 0 0 1 1 | y => INSERTED {j}
		a: reserve => RESERVED {j} 1 | y`},
	// beanstalkd 1.12 sees the end only when that connection speaks again, if it
	// got the job by reserve-job.
	{Name: "time to run ends", Since: "1.13", Script: `
		a: put 0 0 1 1 | x => INSERTED {j}
		a: reserve-job {j} => RESERVED {j} 1 | x
		* 1300ms
		b: stats-job {j} => yaml state: ready; timeouts: 1; reserves: 1
		a: touch {j} => NOT_FOUND
		b: reserve => RESERVED {j} 1 | x
		a: release {j} 0 0 => NOT_FOUND
		a: delete {j} => NOT_FOUND
		b: delete {j} => DELETED`},
	{Name: "a lost job can be deleted once it is ready", Script: `
		a: put 0 0 1 1 | x => INSERTED {j}
		a: reserve => RESERVED {j} 1 | x
		* 1300ms
		a: delete {j} => DELETED`},
	// beanstalkd 1.12 hands it out only when another command comes, and then
	// perhaps that command's job.
	{Name: "a waiting reserve gets a job whose time ran out", Since: "1.13", Script: `
		a: put 0 0 1 1 | x => INSERTED {j}
		a: reserve => RESERVED {j} 1 | x
		b> reserve
		b~ 500ms
		b< RESERVED {j} 1
		b< x`},
	{Name: "close returns jobs", Script: `
		a: put 0 0 100 1 | x => INSERTED {j}
		a: reserve => RESERVED {j} 1 | x
		b> reserve
		b~ 100ms
		ax
		b< RESERVED {j} 1
		b< x
		b: stats-job {j} => yaml state: reserved; timeouts: 0; releases: 0; reserves: 2`},
	{Name: "quit returns jobs", Script: `
		a: put 7 0 100 1 | x => INSERTED {j}
		a: reserve => RESERVED {j} 1 | x
		a> quit
		a<eof
		b: reserve => RESERVED {j} 1 | x
		b: stats-job {j} => yaml pri: 7`},
	{Name: "half-close ends a wait", Script: `
		a> reserve
		a~ 50ms
		a/
		a< TIMED_OUT
		a<eof`},
	{Name: "half-close behind commands", Script: `
		a>> use x\r\nput 0 0 9 1\r\ny\r\n
		a/
		a< USING x
		a< INSERTED {j}
		a<eof`},
	{Name: "an unfinished put is dropped", Script: `
		a>> put 0 0 9 5\r\nhel
		* 50ms
		ax
		b: reserve-with-timeout 0 => TIMED_OUT`},
	{Name: "a waiter that left gets nothing", Script: `
		a> reserve
		a~ 50ms
		ax
		* 100ms
		b: put 0 0 9 1 | x => INSERTED {j}
		b: reserve-with-timeout 1 => RESERVED {j} 1 | x`},
}
