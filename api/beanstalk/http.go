package beanstalk

// maxMethod is longer, in bytes, than any HTTP method of a browser.
const maxMethod = 16

// startsHTTP reports whether the first bytes of a connection are those of an HTTP
// request: a method, a space, and the beginning of "/path", of "*" or of "http://".
// decided is false when it needs more bytes. No command of the protocol looks like
// that. A page in a browser can post to this port, and the lines of its body would be
// executed as commands.
func startsHTTP(data []byte) (http, decided bool) {
	for i, b := range data[:min(len(data), maxMethod)] {
		switch {
		case b >= 'A' && b <= 'Z':
		case b != ' ' || i == 0:
			return false, true
		case i+1 == len(data):
			return false, false
		default:
			next := data[i+1]
			return next == '/' || next == '*' || next == 'h', true
		}
	}
	return false, len(data) >= maxMethod
}
