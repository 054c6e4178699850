// Package brokers tests idemqueue with real brokers and consumers that are
// killed. It is a module of its own, so that the library does not depend on their clients.
package brokers
