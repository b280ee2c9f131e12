package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Cases are all cases.
func Cases() []Case {
	return slices.Concat(parsing, jobs, waiting, tubes, statistics)
}

// everyByte is all 256 values, a CRLF, and the CRLF behind a body, with the escapes
// of scripts.
var everyByte = func() string {
	var text strings.Builder
	for b := range 256 {
		fmt.Fprintf(&text, `\x%02x`, b)
	}
	return text.String() + `\r\n\r\n`
}()

// parsing: lines, numbers, names and bodies on the wire.
var parsing = []Case{
	{Name: "unknown command", Script: `
		a: nont10knowncommand => UNKNOWN_COMMAND
		a>
		a< UNKNOWN_COMMAND
		a: PUT 0 0 1 1 => UNKNOWN_COMMAND`},
	{Name: "prefixes decide", Script: `
		a: put => UNKNOWN_COMMAND
		a: delete => UNKNOWN_COMMAND
		a: use => UNKNOWN_COMMAND
		a: peek => UNKNOWN_COMMAND
		a: kick-job => UNKNOWN_COMMAND
		a: touch => UNKNOWN_COMMAND
		a: watch => UNKNOWN_COMMAND
		a: reservex => BAD_FORMAT
		a: statsx => BAD_FORMAT
		a: list-tubesx => BAD_FORMAT
		a: list-tube-usedx => BAD_FORMAT
		a: list-tubes-watchedx => BAD_FORMAT
		a: peek-readyx => BAD_FORMAT
		a: peek-delayed x => BAD_FORMAT
		a: peek-buried x => BAD_FORMAT
		a: reserve-with-timeout => BAD_FORMAT
		a: reserve-job => BAD_FORMAT
		a: stats-job => BAD_FORMAT
		a: stats-tube => BAD_FORMAT
		a: pause-tube => BAD_FORMAT
		a: pause-tubedefault 0 => PAUSED
		a> quitx
		a<eof`},
	{Name: "long line", Script: `
		a: {a*500} => BAD_FORMAT
		a: put 0 0 1 1 | A => INSERTED {j}
		a: {b*222} => UNKNOWN_COMMAND
		# The CR is the last byte that is looked at, so its LF is not seen.
		a> {b*223}
		a> use lost
		a< BAD_FORMAT
		a: use c => USING c`},
	{Name: "two commands in a packet", Script: `
		a>> use a\r\nuse b\r\n
		a< USING a
		a< USING b`},
	{Name: "a command in pieces", Script: `
		a>> us
		* 30ms
		a>> e abc\r
		* 30ms
		a>> \nput 0 0 1 5\r\nhe
		a< USING abc
		* 30ms
		a>> llo\r
		a~ 50ms
		a>> \n
		a< INSERTED {j}`},
	{Name: "lone CR and NUL", Script: `
		a>> a\rb\r\n
		a~ 200ms
		b>> use a\x00b\r\n
		b< BAD_FORMAT
		b: use ok => USING ok
		c>> use a\nb\r\n
		c< BAD_FORMAT`},
	{Name: "job too big", Script: `
		a> put 0 0 0 65536
		a> {d*65536}
		a> put 0 0 0 65535
		a> {d*65535}
		a> put 0 0 0 70000x
		a> {d*70000}
		a< JOB_TOO_BIG
		a< INSERTED {j}
		a< JOB_TOO_BIG`},
	{Name: "bad sizes", Script: `
		a: put 0 0 0 4294967296 => BAD_FORMAT
		a: put 0 0 0 10b => BAD_FORMAT
		a: put 0 0 0 --!@#$%^&&**()0b => BAD_FORMAT
		a: put 0 0 0 => BAD_FORMAT
		a> put 0 0 0 1 
		a< BAD_FORMAT
		a: put 0 0 0 1 1 => BAD_FORMAT
		a: put 0 0 0 -1 => BAD_FORMAT
		a: use x => USING x`},
	{Name: "a refused put line leaves its body", Script: `
		a> put 0 0 x 7
		a> use abc
		a< BAD_FORMAT
		a< USING abc`},
	{Name: "wrong end of a body", Script: `
		a> put 0 0 1 1
		a>> xyz
		a< EXPECTED_CRLF
		a: put 0 0 1 1 | x => INSERTED {j}`},
	{Name: "number limits", Script: `
		a> put 4294967295 0 1 0
		a>
		a< INSERTED {j}
		a: put 4294967296 0 1 0 => BAD_FORMAT
		a: put -1 0 1 0 => BAD_FORMAT
		a: put 0 -1 1 0 => BAD_FORMAT
		a: put 0 4294967296 1 0 => BAD_FORMAT
		a> put   0   0   1   0
		a>
		a< INSERTED {k}
		a: peek 18446744073709551615 => NOT_FOUND
		a: peek 18446744073709551616 => BAD_FORMAT
		a: peek -1 => BAD_FORMAT
		a: peek {k}x => BAD_FORMAT
		a> peek {k} 
		a< BAD_FORMAT
		a> peek   {k}
		a< FOUND {k} 0
		a<
		a: peek 0 => NOT_FOUND
		a: delete +{k} => BAD_FORMAT
		a: release {k} 0 => BAD_FORMAT
		a: release {k} 0 0 0 => BAD_FORMAT
		a: bury {k} => BAD_FORMAT
		a: stats-job 111 222 => BAD_FORMAT`},
	{Name: "lenient numbers", Script: `
		a: reserve-with-timeout 0 junk => TIMED_OUT
		a: kick 5x => KICKED 0
		a: kick -1 => KICKED 0
		a: kick +3 => KICKED 0
		a: kick x => BAD_FORMAT
		a: kick 99999999999999999999 => BAD_FORMAT
		a: kick 0 => KICKED 0`},
	{Name: "limits of a timeout", Since: "1.13", Script: `
		a: reserve-with-timeout -1 => BAD_FORMAT
		a: reserve-with-timeout 2147483648 => BAD_FORMAT`},
	{Name: "empty body", Script: `
		a> put 0 0 0 0
		a>
		a< INSERTED {j}
		a> reserve
		a< RESERVED {j} 0
		a<`},
	{Name: "binary body", Script: `
		a>> put 0 0 9 14\r\n\x00\x01\r\n\xff\xfe\r\n\x7f\x80abc\x00\r\n
		a< INSERTED {j}
		a> reserve
		a< RESERVED {j} 14
		a<< \x00\x01\r\n\xff\xfe\r\n\x7f\x80abc\x00\r\n
		a> peek {j}
		a< FOUND {j} 14
		a<< \x00\x01\r\n\xff\xfe\r\n\x7f\x80abc\x00\r\n`},
	{Name: "body of every byte", Script: `
		a>> put 0 0 9 258\r\n` + everyByte + `
		a< INSERTED {j}
		a> reserve
		a< RESERVED {j} 258
		a<< ` + everyByte},
	{Name: "tube names", Script: `
		a: use {n*200} => USING {n*200}
		a: use {n*201} => BAD_FORMAT
		a: use x_y => USING x_y
		a: use aA0+/;.$_()- => USING aA0+/;.$_()-
		a: use -x => BAD_FORMAT
		a: use  x => BAD_FORMAT
		a> use x 
		a< BAD_FORMAT
		a: use x y => BAD_FORMAT
		a: use x* => BAD_FORMAT
		a: watch -x => BAD_FORMAT
		a: ignore {n*201} => BAD_FORMAT
		a: stats-tube a% => BAD_FORMAT
		a: pause-tube -x 1 => BAD_FORMAT`},
	{Name: "pipelined run", Script: `
		a>> put 0 0 9 1\r\na\r\nput 0 0 9 1\r\nb\r\nput 0 0 x 1\r\nput 0 0 9 1\r\ncdeput 1 0 9 1\r\nf\r\nuse other\r\nput 0 0 9 1\r\ng\r\nreserve\r\nreserve-with-timeout 0\r\ndelete 0\r\n
		a< INSERTED {a}
		a< INSERTED {b}
		a< BAD_FORMAT
		a< EXPECTED_CRLF
		a< INSERTED {f}
		a< USING other
		a< INSERTED {g}
		a< RESERVED {a} 1
		a< a
		a< RESERVED {b} 1
		a< b
		a< NOT_FOUND
		a: delete {f} => DELETED
		a: reserve-with-timeout 0 => TIMED_OUT
		a: watch other => WATCHING 2
		a>> reserve\r\ndelete {a}\r\ndelete {b}\r\n
		a< RESERVED {g} 1
		a< g
		a< DELETED
		a< DELETED`},
}
