// Package report has what operators are told of a cluster: its health, with a kind and a severity for
// each problem. The messages (report.proto) are those that nodes send each other, that the API
// replies with and that tests make up; nothing converts them.
package report
