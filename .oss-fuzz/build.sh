#!/bin/bash -eu
# Builds every fuzz test in an image of OSS-Fuzz, which has compile_native_go_fuzzer_v2.
cd "$SRC/tenure"
export GOWORK=off
# The builder has a package testing of its own, which the other tests do not compile with.
grep -rL --include='*_test.go' '^func Fuzz' . | xargs rm
go get github.com/AdamKorcz/go-118-fuzz-build/testing
grep -ro --include='*_test.go' '^func Fuzz[A-Za-z]*' . | sed 's,^\./,,; s,/[^/]*:func , ,' | sort |
	while read -r package name; do
		compile_native_go_fuzzer_v2 "github.com/tenure-dev/tenure/$package" "$name" "${package//\//_}_$name"
	done
