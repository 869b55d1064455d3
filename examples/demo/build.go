//go:build !js

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed static
var static embed.FS

// module is the import path of this package, which build compiles again for the browser.
const module = "github.com/tenure-dev/tenure/examples/demo"

// packed is the file name of the WebAssembly module. The file itself is compressed, because not
// every server compresses its answers.
const packed = "demo.wasm.gz"

// maxSize is the maximum size of the compressed module, in bytes. The page's other files are small.
const maxSize = 4_100_000

// build writes the page's files into a directory, and returns the size of the compressed module in
// bytes. A size above maxSize is an error.
func build(ctx context.Context, dir string) (size int, err error) {
	script, err := goFile(ctx, "lib/wasm/wasm_exec.js")
	if err != nil {
		return 0, err
	}
	wasm, err := compile(ctx)
	if err != nil {
		return 0, err
	}
	files := map[string][]byte{"wasm_exec.js": script, packed: compress(wasm)}
	if size = len(files[packed]); size > maxSize {
		return size, fmt.Errorf("the demonstration is %d bytes, compressed, and may be %d", size, maxSize)
	}
	err = fs.WalkDir(static, "static", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files[e.Name()], err = static.ReadFile(name)
		}
		return err
	})
	err = errors.Join(err, os.MkdirAll(dir, 0o755))
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	return size, err
}

// compile compiles this package for a browser. Inlining is off, which makes the module a seventh
// smaller.
func compile(ctx context.Context) ([]byte, error) {
	temporary, err := os.MkdirTemp("", "demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	to := filepath.Join(temporary, "demo.wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-gcflags=all=-l", "-ldflags=-s -w", "-o", to, module)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build for a browser: %w\n%s", err, out)
	}
	return os.ReadFile(to)
}

// goFile reads a file of the Go installation that compiles the module. The two must have the same
// version.
func goFile(ctx context.Context, name string) ([]byte, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), filepath.FromSlash(name)))
}

// compress returns the content compressed with gzip. It cannot fail: the level exists, and writes
// to a buffer succeed.
func compress(content []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = w.Write(content)
	_ = w.Close()
	return out.Bytes()
}
