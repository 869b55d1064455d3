// Package scrape has no code. Its test pins what Prometheus scrapes of the metrics of package
// tenureotel: the names, the types and the labels that dashboards and rules are written for.
package scrape
