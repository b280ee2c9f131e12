// Package repository holds tests of what is in the repository beside the code: who may import whom and
// how long a file may be (architecture_test.go), the docs and their links, the files for Docker,
// Kubernetes, systemd, Prometheus and Grafana, and the table of the clients. It has no other code.
// Start with docs_test.go. Its tests run in the top folder of the repository.
package repository
