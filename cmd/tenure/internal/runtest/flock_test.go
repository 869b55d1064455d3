package runtest
