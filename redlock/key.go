package redlock

import (
	"fmt"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// keys makes the names of a key, or an *OptionError.
func (c *config) keys(key string) (wire.Keys, error) {
	switch {
	case key == "":
		return wire.Keys{}, &OptionError{"key", "is empty"}
	case len(key) > MaxKeyLength:
		return wire.Keys{}, &OptionError{"key", fmt.Sprintf("has %d bytes, more than %d", len(key), MaxKeyLength)}
	case key[0] == '}':
		return wire.Keys{}, &OptionError{"key", "starts with }, which would end the braces around it in its names on the servers"}
	}
	return wire.NewKeys(c.prefix, key), nil
}
