// Package kubernetes has manifests of five nodes and of a service that uses them, and the tests
// that read the manifests with the types of the API, start what they configure and measure what
// they promise. docs/operations.md explains them.
package kubernetes
