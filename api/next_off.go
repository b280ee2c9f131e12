//go:build !chaos || !next

package api

// nextRoutes are what a build that stands for the next release has more.
func (s *server) nextRoutes() []route { return nil }
