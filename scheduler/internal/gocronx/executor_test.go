package gocronx_test

import "errors"

var errUnoffered = errors.New("nothing was offered")
