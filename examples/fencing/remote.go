package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// remote is a store behind HTTP: the client of newHandler. It sends the lease's token with every
// write and turns a 412 into errStale, which it never tries again. It is safe for concurrent use.
type remote struct {
	base   string // such as http://127.0.0.1:8080
	client *http.Client
}

func (c *remote) claim(ctx context.Context, id string, token uint64) (int64, error) {
	return c.read(ctx, http.MethodPost, "/accounts/"+url.PathEscape(id)+"/claim", id, token)
}

func (c *remote) balance(ctx context.Context, id string) (int64, error) {
	return c.read(ctx, http.MethodGet, "/accounts/"+url.PathEscape(id), id, 0)
}

func (c *remote) set(ctx context.Context, id string, balance int64, token uint64) error {
	_, err := c.do(ctx, http.MethodPut, "/accounts/"+url.PathEscape(id), strconv.FormatInt(balance, 10), id, token)
	return err
}

func (c *remote) read(ctx context.Context, method, path, id string, token uint64) (int64, error) {
	text, err := c.do(ctx, method, path, "", id, token)
	if err != nil {
		return 0, err
	}
	balance, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("fencing: %s %s answered no balance: %w", method, path, err)
	}
	return balance, nil
}

// do sends a request, with the token unless it is zero, and returns the body of a good answer. An
// error other than a status leaves open whether the write was done. Sent again with the same token
// it is refused once a later holder has been there.
func (c *remote) do(ctx context.Context, method, path, body, id string, token uint64) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("fencing: cannot make a request: %w", err)
	}
	if token != 0 {
		setToken(request.Header, token)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return "", fmt.Errorf("fencing: cannot reach the accounts: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return "", fmt.Errorf("fencing: cannot read the answer to %s %s: %w", method, path, err)
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusNoContent:
		return string(text), nil
	case http.StatusPreconditionFailed:
		return "", fmt.Errorf("%w (%s)", &staleError{id: id, token: token}, response.Status)
	case http.StatusNotFound:
		return "", fmt.Errorf("%w: %q", errNoAccount, id)
	}
	return "", fmt.Errorf("fencing: %s %s answered %s: %s", method, path, response.Status, strings.TrimSpace(string(text)))
}
